//! One attempt of one client, and the book in which all of them are written.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::clock::now;

/// Microseconds since the history began.
pub type Micros = u64;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// To be granted a lease. Refused: somebody else holds it under `token`, if that was said.
    Acquire,
    /// To extend the lease of `token`.
    Renew,
    /// To end the lease of `token`.
    Release,
    /// To end the lease, whoever holds it.
    Force,
    /// Who holds the lease: `token`, or nobody.
    Read,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, or answered.
    Ok,
    /// It was refused, and is not done.
    Fail,
    /// It has no answer: it may have been done, or may be later.
    Unknown,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who asked.
    pub process: u32,
    /// What for.
    pub op: Op,
    /// Which lease.
    pub resource: String,
    /// The request that this attempt belongs to; every retry has the same one.
    pub request_id: Option<String>,
    /// When it was sent.
    pub call: Micros,
    /// When its answer came; `None` if none did.
    pub returned: Option<Micros>,
    /// What came of it.
    pub outcome: Outcome,
    /// The token that was asked about, or answered.
    pub token: Option<u64>,
    /// The time that was granted, or asked for, in milliseconds from the call: of a grant what it had waited and what
    /// remains. `None` without a deadline.
    pub ttl_ms: Option<u64>,
}

/// The book of a run. Threads write into it at once.
#[derive(Debug)]
pub struct History {
    began: Instant,
    records: Mutex<Vec<Record>>,
}

impl History {
    /// An empty one, whose clock starts now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            began: now(),
            records: Mutex::default(),
        }
    }

    /// Now, on its clock.
    #[must_use]
    pub fn now(&self) -> Micros {
        u64::try_from(now().duration_since(self.began).as_micros()).unwrap_or(u64::MAX)
    }

    /// Writes an attempt down.
    pub fn add(&self, record: Record) {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record);
    }

    /// All that was written down.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}
