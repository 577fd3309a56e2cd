//! What can go wrong between this folder and the rest of the store.

use std::path::PathBuf;

use super::data_dir::DataDirError;
use super::failure::NodeFailure;
pub use super::log_store::OpenLogError;
pub use super::snapshot::SnapshotError;

/// Why a node does not start. Nothing was served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] OpenLogError),
    /// A snapshot cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// This node has voted before, and its log has no vote.
    #[error("the Raft log in {} is empty, but this node has voted before: the log was lost. The node must not go on, \
             since it could vote twice. On a cluster, remove this node and join it again under a new id; a single node \
             is restored from a backup", dir.display())]
    LogLost {
        /// The folder of the log.
        dir: PathBuf,
    },
    /// The log begins after an entry that no snapshot holds.
    #[error("the Raft log in {} begins after entry {purged}, and no snapshot holds the entries up to it. On a \
             cluster, remove this node and join it again under a new id; a single node is restored from a backup", dir.display())]
    SnapshotLost {
        /// The folder of the log.
        dir: PathBuf,
        /// The last entry that is gone from the log.
        purged: u64,
    },
    /// Loading the state failed.
    #[error("loading the state failed")]
    Failed(#[from] NodeFailure),
    /// Raft refuses its configuration or its state.
    #[error("Raft does not start: {reason}")]
    Raft {
        /// What it said.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread {
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// Why a proposal has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// It was refused before it was appended: it has not been applied and never will be.
    #[error("the proposal was refused, and never applied: {reason}")]
    NotApplied {
        /// Why.
        reason: Refusal,
    },
    /// Nobody can tell: it may have been applied, or may be later.
    #[error("the proposal may or may not be applied: {reason}")]
    Unknown {
        /// Why.
        reason: Loss,
    },
}

/// Why a proposal was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The leadership it was made in is over, or this node does not lead.
    #[error("its leadership is over")]
    LeadershipOver {
        /// The node that leads now, if this one knows.
        leader: Option<u64>,
    },
    /// It is longer than an entry may be.
    #[error("{bytes} bytes are more than the {max} of one entry")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// What is allowed.
        max: usize,
    },
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// Why the fate of a proposal is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// Another leader took over while it was on its way.
    #[error("another leader took over")]
    LeaderChanged {
        /// The node that leads now, if this one knows.
        leader: Option<u64>,
    },
    /// The node stopped while it was on its way.
    #[error("the node stopped")]
    Stopped,
}

impl ProposeError {
    /// Whether the same request may succeed later, at this node or another.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::NotApplied {
                reason: Refusal::TooLong { .. }
            }
        )
    }

    /// Whether the proposal may have been applied all the same.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

/// Why a read cannot be shown to be up to date. Reads change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// This node does not lead.
    #[error("this node does not lead")]
    NotLeader {
        /// The node that leads, if this one knows.
        leader: Option<u64>,
    },
    /// Too few nodes answer.
    #[error("no quorum answers")]
    NoQuorum,
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

impl ReadError {
    /// Whether the same read may succeed later, at this node or another.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        true
    }
}
