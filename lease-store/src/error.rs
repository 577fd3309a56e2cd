//! What a call of the store can fail with, beside the machine's own answers.

use std::sync::Arc;

use thiserror::Error;

use crate::raft::failure::NodeFailure;

/// Why the store has no answer.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nobody leads, or this node does not. Nothing was applied.
    #[error("no leader: nothing was applied, try again")]
    Unavailable {
        /// Who leads, as far as this node knows.
        leader: Option<u64>,
    },
    /// The command went into the log and its fate is not known. It may have been applied.
    #[error("the outcome is unknown: it may have been applied, try again with the same request id")]
    Unknown,
    /// The command is larger than one log entry may be. Nothing was applied.
    #[error("the command is too large for one log entry")]
    TooLarge,
    /// The store was shut down. Nothing was applied.
    #[error("the store was shut down")]
    ShutDown,
    /// The node stopped, since its storage failed or a bug was met. It may have been applied; restart the node.
    #[error("the node has stopped")]
    Failed(#[source] Arc<NodeFailure>),
}

impl StoreError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unknown)
    }

    /// Whether the command may have been applied.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        matches!(self, Self::Unknown | Self::Failed(_))
    }
}
