//! One attempt of one client, and the book in which all of them are written.

use std::sync::{Mutex, PoisonError};

/// Microseconds on the clock of the run: any that never falls, a simulated one too.
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
    /// Nothing is asked: a client says that it holds the lease of `token`, for `ttl_ms` from the call on.
    Hold,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, or answered.
    Ok,
    /// It was refused, and is not done.
    Fail,
    /// Of an acquire: an earlier attempt of its request was granted `token`, if that was said, and that is over.
    Ended,
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
    /// The time that was granted, or asked for without an answer, in milliseconds from the call: of a grant what it had
    /// waited and what remains. `None` without a deadline. Of a read the time that remains, if it was told.
    pub ttl_ms: Option<u64>,
}

/// The book of a run. Threads write into it at once.
#[derive(Debug, Default)]
pub struct History {
    records: Mutex<Vec<Record>>,
}

impl History {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
