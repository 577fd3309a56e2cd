//! What the writer is doing, for the watchdog to see.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::monotonic_now;

/// The stages of a group, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Waits for requests.
    Idle,
    /// Reads rows and decides.
    Deciding,
    /// Hands the group's writes to the database, as one batch.
    Applying,
    /// Waits until the database has written its buffers to the files.
    Flushing,
    /// Waits until the files are on the disk.
    Syncing,
    /// Notes how far it came, and answers.
    Answering,
    /// Lets go of the files.
    Closing,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Deciding => "deciding",
            Self::Applying => "applying",
            Self::Flushing => "flushing",
            Self::Syncing => "syncing",
            Self::Answering => "answering",
            Self::Closing => "closing",
        })
    }
}

#[derive(Debug)]
pub(super) struct Progress(Mutex<(Stage, Instant)>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Mutex::new((Stage::Idle, monotonic_now())))
    }

    pub(super) fn enter(&self, stage: Stage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (stage, monotonic_now());
    }

    /// The stage, and for how long it lasts already.
    pub(super) fn look(&self) -> (Stage, Duration) {
        let (stage, since) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (stage, monotonic_now().saturating_duration_since(since))
    }
}
