//! What went wrong, counted where it shows: in the table, in the ledger, in the outside's own books.

use std::fmt;

/// What a course of events ended with. All zero is what must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Effects beyond the first: a reward paid again, an item handed out again, a card charged again.
    pub(crate) duplicates: u64,
    /// Effects that are due and never came.
    pub(crate) lost: u64,
    /// Callers in good standing that were told nothing they could answer with, although the reward is paid.
    pub(crate) unanswered: u64,
}

impl Counts {
    /// From how many effects there are of how many that are due, `present` of which are there at least once.
    pub(crate) const fn of_effects(due: u64, present: u64, effects: u64) -> Self {
        Self {
            duplicates: effects.saturating_sub(present),
            lost: due.saturating_sub(present),
            unanswered: 0,
        }
    }

    pub(crate) const fn with_unanswered(self, unanswered: u64) -> Self {
        Self { unanswered, ..self }
    }

    pub(crate) const fn are_zero(self) -> bool {
        self.duplicates == 0 && self.lost == 0 && self.unanswered == 0
    }

    /// For a label: one or two words.
    pub(crate) fn label(self) -> String {
        if self.are_zero() {
            return "holds".to_owned();
        }
        self.to_string()
    }

    /// For a cell of a narrow table: `7`, `-1`, `?7`.
    pub(crate) fn short(self) -> String {
        let mut parts = Vec::new();
        if self.duplicates > 0 {
            parts.push(format!("{}", self.duplicates));
        }
        if self.lost > 0 {
            parts.push(format!("-{}", self.lost));
        }
        if self.unanswered > 0 {
            parts.push(format!("?{}", self.unanswered));
        }
        if parts.is_empty() {
            parts.push("0".to_owned());
        }
        parts.join(" ")
    }
}

/// In words.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [
            (self.duplicates, "duplicate", "duplicates"),
            (self.lost, "lost", "lost"),
            (self.unanswered, "unanswered", "unanswered"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
        if parts.is_empty() {
            f.write_str("nothing went wrong")
        } else {
            f.write_str(&parts.join(", "))
        }
    }
}
