//! Runs a program: pure, total, and alike on every replica.

mod budget;
mod expression;
mod library;
mod replies;
mod statement;
mod value;

pub use budget::{ScriptBound, StepsLeft};

use self::budget::Budget;
use self::statement::Flow;
use self::value::{Tables, Value};
use super::program::Program;
use super::reply::ScriptReply;
use super::{ScriptDigest, Verb};
use crate::limits::SCRIPT_NEST_MAX;
use crate::types::SharedBytes;

/// What carries out a script's commands.
pub trait Host {
    /// Why it goes no further, whatever the script would do next.
    type Stop;

    /// Carries out one command; its arguments are as many as it takes. An error is an answer.
    ///
    /// # Errors
    /// The script ends here, and the host knows why.
    fn call(&mut self, verb: Verb, arguments: &[SharedBytes]) -> Result<ScriptReply, Self::Stop>;
}

/// Why a script has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<S> {
    /// It has reached a bound: nothing that it did may be kept.
    Bound(ScriptBound),
    /// Its host went no further.
    Stopped(S),
}

/// A script and what it is called with.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// What it does.
    pub program: &'a Program,
    /// Its name, which errors show.
    pub digest: ScriptDigest,
    /// `KEYS`
    pub keys: &'a [SharedBytes],
    /// `ARGV`
    pub arguments: &'a [SharedBytes],
}

/// Runs a script, which takes of the steps that are `left`. An error that it raises is its answer, and names the script and
/// the line as Redis does.
///
/// # Errors
/// [`Ended`] if it has no answer.
pub fn run<H: Host>(
    invocation: &Invocation<'_>,
    left: &mut StepsLeft,
    host: &mut H,
) -> Result<ScriptReply, Ended<H::Stop>> {
    let Invocation {
        program,
        digest,
        keys,
        arguments,
    } = *invocation;
    let mut run = Run {
        program,
        host,
        frames: Vec::new(),
        slots: Vec::new(),
        tables: Tables::default(),
        budget: Budget::of(*left),
        nest: 0,
        line: 0,
    };
    let ended = run.main(keys, arguments);
    *left = run.budget.settle(*left);
    match ended {
        Ok(reply) => Ok(reply),
        Err(Halt::Raised(text)) => {
            let line = run.line;
            let mut said = text;
            said.extend_from_slice(format!(" script: {digest}, on @user_script:{line}.").as_bytes());
            Ok(ScriptReply::error(said))
        }
        Err(Halt::Bound(bound)) => Err(Ended::Bound(bound)),
        Err(Halt::Stopped(stop)) => Err(Ended::Stopped(stop)),
    }
}

/// Why a script does not go on.
enum Halt<S> {
    /// An error, with its word; it happened on the current line.
    Raised(Vec<u8>),
    Bound(ScriptBound),
    Stopped(S),
}

impl<S> From<ScriptBound> for Halt<S> {
    fn from(bound: ScriptBound) -> Self {
        Self::Bound(bound)
    }
}

type Halting<T, S> = Result<T, Halt<S>>;

/// A script that is running.
struct Run<'a, H: Host> {
    program: &'a Program,
    host: &'a mut H,
    frames: Vec<Frame>,
    /// The variables of all frames.
    slots: Vec<Value>,
    tables: Tables,
    budget: Budget,
    nest: usize,
    /// The line of the statement or call that is carried out.
    line: u32,
}

/// A function that is being carried out.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Where its variables begin.
    base: usize,
    /// The frame of the function around it in the text.
    outer: usize,
}

impl<'a, H: Host> Run<'a, H> {
    fn main(&mut self, keys: &[SharedBytes], arguments: &[SharedBytes]) -> Halting<ScriptReply, H::Stop> {
        for list in [keys, arguments] {
            let values = list.iter().cloned().map(Value::Text);
            self.tables.make_list(values, &mut self.budget)?;
        }
        let values = self.enter(0, 0, Vec::new())?;
        self.reply(values.into_iter().next().unwrap_or(Value::Nil))
    }

    /// Carries out a function, in a frame of its own.
    fn enter(
        &mut self,
        number: usize,
        outer: usize,
        mut arguments: Vec<Value>,
    ) -> Halting<Vec<Value>, H::Stop> {
        let Some(function) = self.program.functions.get(number) else {
            return self.raise("a function is not there");
        };
        let base = self.slots.len();
        arguments.truncate(usize::from(function.parameters));
        arguments.resize_with(usize::from(function.slots), || Value::Nil);
        self.budget.take_steps(arguments.len())?;
        self.slots.extend(arguments);
        self.frames.push(Frame { base, outer });
        let flow = self.block(&function.body)?;
        self.frames.pop();
        self.slots.truncate(base);
        Ok(match flow {
            Flow::Return(values) => values,
            Flow::Next | Flow::Break => Vec::new(),
        })
    }

    /// The frame so many functions further out in the text.
    fn frame(&self, up: u8) -> usize {
        let mut at = self.frames.len().saturating_sub(1);
        for _ in 0..up {
            at = self.frames.get(at).map_or(0, |frame| frame.outer);
        }
        at
    }

    fn slot(&self, up: u8, slot: u8) -> usize {
        let base = self.frames.get(self.frame(up)).map_or(0, |frame| frame.base);
        base.saturating_add(usize::from(slot))
    }

    fn set_slot(&mut self, up: u8, slot: u8, value: Value) {
        let at = self.slot(up, slot);
        if let Some(place) = self.slots.get_mut(at) {
            *place = value;
        }
    }

    /// Goes one level deeper, so far as the stack of this process surely bears it.
    fn deeper<T>(&mut self, go: impl FnOnce(&mut Self) -> Halting<T, H::Stop>) -> Halting<T, H::Stop> {
        if self.nest >= SCRIPT_NEST_MAX {
            return Err(Halt::Bound(ScriptBound::Depth));
        }
        self.nest = self.nest.saturating_add(1);
        let result = go(self);
        self.nest = self.nest.saturating_sub(1);
        result
    }

    /// An error of the script's own making, as Lua says it.
    fn raise<T>(&self, what: impl std::fmt::Display) -> Halting<T, H::Stop> {
        Err(Halt::Raised(
            format!("ERR user_script:{}: {what}", self.line).into_bytes(),
        ))
    }
}
