//! What happened when, and who did it: the record that the drawings are made from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who acts, or is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    A,
    B,
    C,
    Books,
    Outside,
}

impl Lane {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::Books => "ledger",
            Self::Outside => "outside",
        }
    }
}

/// How a write came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Done, and rightly.
    Done,
    /// Done, and it had been done before.
    Again,
    /// Refused, and nothing was done.
    Refused,
    /// Answered as before, and nothing was done.
    Replayed,
    /// Nothing was done, and the writer was told nothing to go on with.
    Nothing,
    /// Done, and the answer never came.
    AnswerLost,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A lock is held from here on.
    Granted(String),
    /// A lock is not held any more, as far as its holder is concerned.
    Released(String),
    Stops,
    Wakes,
    Dies,
    CutOff,
    Heals,
    /// Something to know, and no more.
    Note(String),
    Wrote {
        to: Lane,
        what: String,
        answer: String,
        verdict: Verdict,
    },
}

/// One row of a timeline.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) at: Duration,
    pub(crate) lane: Lane,
    pub(crate) what: What,
}

impl Mark {
    /// In words, without who did it.
    pub(crate) fn text(&self) -> String {
        match &self.what {
            What::Granted(label) => format!("has the lock, {label}"),
            What::Released(answer) => format!("releases: {answer}"),
            What::Stops => "stops, with the lock in its hand".to_owned(),
            What::Wakes => "goes on, as if no time had passed".to_owned(),
            What::Dies => "dies".to_owned(),
            What::CutOff => "is cut off from the lock service".to_owned(),
            What::Heals => "reaches the lock service again".to_owned(),
            What::Note(text) => text.clone(),
            What::Wrote { what, answer, .. } => format!("{what}: {answer}"),
        }
    }
}

/// The record of one course of events; a clone is the same one.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    started: Instant,
    marks: Arc<Mutex<Vec<Mark>>>,
}

impl Timeline {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock of this example"
    )]
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            marks: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes what has just happened.
    pub(crate) fn add(&self, lane: Lane, what: What) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that marks stand in the order of their times.
        let at = self.now();
        marks.push(Mark { at, lane, what });
    }

    pub(crate) fn note(&self, lane: Lane, text: impl Into<String>) {
        self.add(lane, What::Note(text.into()));
    }

    pub(crate) fn marks(&self) -> Vec<Mark> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
