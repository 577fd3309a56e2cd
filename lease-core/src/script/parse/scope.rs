//! What a name means where it stands.

use crate::script::program::{Callee, Library, Variable};

/// Variables that one function may have at once, as Lua has it.
const SLOTS_MAX: u8 = 200;

/// What a name was declared to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Slot(u8),
    /// A local function.
    Function(u8),
    /// A library's function under a name of the script's own.
    Alias(Given),
}

/// A function that scripts are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    Library(Library),
    Call,
    ProtectedCall,
    EachPair,
}

/// What a name means, seen from where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Variable(Variable),
    Function(Callee),
    Alias(Given),
}

/// The functions that are being read, one within the other.
#[derive(Debug)]
pub(super) struct Scopes {
    frames: Vec<Frame>,
}

#[derive(Debug)]
struct Frame {
    names: Vec<(String, Meaning)>,
    /// The next free slot, and the most that were taken at once.
    next: u8,
    most: u8,
    loops: usize,
}

/// Where a block began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    names: usize,
    next: u8,
}

impl Scopes {
    pub(super) const fn new() -> Self {
        Self { frames: Vec::new() }
    }

    pub(super) fn enter_function(&mut self) {
        self.frames.push(Frame {
            names: Vec::new(),
            next: 0,
            most: 0,
            loops: 0,
        });
    }

    /// How many slots the function takes.
    pub(super) fn leave_function(&mut self) -> u8 {
        self.frames.pop().map_or(0, |frame| frame.most)
    }

    pub(super) fn begin_block(&self) -> Mark {
        self.frames
            .last()
            .map_or(Mark { names: 0, next: 0 }, |frame| Mark {
                names: frame.names.len(),
                next: frame.next,
            })
    }

    pub(super) fn end_block(&mut self, mark: Mark) {
        if let Some(frame) = self.frames.last_mut() {
            frame.names.truncate(mark.names);
            frame.next = mark.next;
        }
    }

    pub(super) fn begin_loop(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.loops = frame.loops.saturating_add(1);
        }
    }

    pub(super) fn end_loop(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.loops = frame.loops.saturating_sub(1);
        }
    }

    pub(super) fn is_in_loop(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.loops > 0)
    }

    /// A slot for a variable, which gets its name later; `None` if the function has no more.
    pub(super) fn take_slot(&mut self) -> Option<u8> {
        let frame = self.frames.last_mut()?;
        let slot = frame.next;
        if slot >= SLOTS_MAX {
            return None;
        }
        frame.next = slot.saturating_add(1);
        frame.most = frame.most.max(frame.next);
        Some(slot)
    }

    pub(super) fn declare(&mut self, name: String, meaning: Meaning) {
        if let Some(frame) = self.frames.last_mut() {
            frame.names.push((name, meaning));
        }
    }

    /// The latest declaration of a name, from the innermost function outwards.
    pub(super) fn find(&self, name: &str) -> Option<Found> {
        for (up, frame) in (0_u8..).zip(self.frames.iter().rev()) {
            let Some((_, meaning)) = frame.names.iter().rev().find(|(known, _)| known == name) else {
                continue;
            };
            return Some(match *meaning {
                Meaning::Slot(slot) => Found::Variable(Variable { up, slot }),
                Meaning::Function(number) => Found::Function(Callee::Function { up, number }),
                Meaning::Alias(given) => Found::Alias(given),
            });
        }
        None
    }
}
