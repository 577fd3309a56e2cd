//! The first failure that makes a node unfit to go on, kept for whoever must stop the process.
//!
//! A failed write or fsync is never retried: after one, nobody knows what the disk holds. The node answers nothing
//! more, and a restart reads back what is really there.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use super::applier::CannotApply;
use super::snapshot::SnapshotError;

/// Why a node had to stop.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFailure {
    /// A disk operation failed: full, broken, or taken away.
    #[error(
        "the storage failed at {operation}: the node stops, since what the disk holds is no longer known"
    )]
    Storage {
        /// What was being done.
        operation: &'static str,
        /// The error of the operating system.
        #[source]
        source: Arc<io::Error>,
    },
    /// An entry that the cluster committed cannot be applied here.
    #[error("entry {index} cannot be applied")]
    Apply {
        /// The index of the entry.
        index: u64,
        /// Why not.
        #[source]
        source: CannotApply,
    },
    /// Applying an entry panicked: a bug of ours.
    #[error("applying entry {index} panicked")]
    ApplyPanicked {
        /// The index of the entry.
        index: u64,
    },
    /// A snapshot is damaged, or cannot be written or read.
    #[error("a snapshot failed")]
    Snapshot {
        /// Which, and why.
        #[source]
        source: Arc<SnapshotError>,
    },
    /// Raft stopped by itself.
    #[error("Raft stopped: {reason}")]
    Raft {
        /// What it said.
        reason: String,
    },
}

impl NodeFailure {
    pub(super) fn storage(operation: &'static str, source: io::Error) -> Self {
        Self::Storage {
            operation,
            source: Arc::new(source),
        }
    }
}

impl From<NodeFailure> for io::Error {
    fn from(failure: NodeFailure) -> Self {
        Self::other(failure)
    }
}

/// Where the first failure is kept. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstFailure {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    first: OnceLock<NodeFailure>,
    happened: Notify,
}

impl FirstFailure {
    /// Keeps `failure` if it is the first.
    pub(super) fn set(&self, failure: NodeFailure) {
        if self.shared.first.set(failure).is_ok() {
            self.shared.happened.notify_waiters();
        }
    }

    pub(super) fn get(&self) -> Option<NodeFailure> {
        self.shared.first.get().cloned()
    }

    /// Waits for the first failure; for ever, if there is none.
    pub(super) async fn wait(&self) -> NodeFailure {
        loop {
            let mut happened = std::pin::pin!(self.shared.happened.notified());
            // Registers before the look, so that a failure in between is not missed.
            happened.as_mut().enable();
            if let Some(failure) = self.get() {
                return failure;
            }
            happened.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_failure_is_kept_and_wakes_all_waiters() {
        let failure = FirstFailure::default();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let failure = failure.clone();
                async move { failure.wait().await.to_string() }
            })
            .collect();
        failure.set(NodeFailure::ApplyPanicked { index: 3 });
        failure.set(NodeFailure::ApplyPanicked { index: 9 });
        for waiter in waiters {
            assert!(waiter.await.contains("entry 3"));
        }
    }
}
