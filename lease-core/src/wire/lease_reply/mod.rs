//! The answers to `LEASE.*` as data: the server writes them, the client reads them.
//!
//! Newer servers may append fields, and give reasons and events that are not known here: readers pass over the first
//! and take the second as unknown.

mod acquire;
mod fields;
mod history;
mod leader;
mod release;
mod renew;
mod view;

pub use acquire::AcquireReply;
pub use history::{HistoryEntry, HistoryEvent, HistoryReply};
pub use leader::LeaderReply;
pub use release::{CancelReply, ForceReply, ReleaseReply, TokenReply};
pub use renew::{RenewManyReply, RenewReply};
pub use view::{GetReply, LeaseView, ListEntry, ListReply};

use thiserror::Error;

use super::{ErrorReply, LeaseVerb};

/// No answer came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The server refused, or does not know what became of the request.
    #[error("{} failed: {reply}", verb.name())]
    Refused {
        /// The request.
        verb: LeaseVerb,
        /// What the server said.
        reply: ErrorReply,
    },
    /// The server answered something that is no answer to this request.
    #[error("the answer to {} is not of its form", verb.name())]
    Unexpected {
        /// The request.
        verb: LeaseVerb,
    },
}

impl AnswerError {
    /// Whether sending the same request again can help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { reply, .. } => reply.is_retryable(),
            Self::Unexpected { .. } => false,
        }
    }

    /// Whether the request may have been applied all the same.
    #[must_use]
    pub fn may_have_applied(&self) -> bool {
        match self {
            Self::Refused { reply, .. } => reply.may_have_applied(),
            Self::Unexpected { .. } => true,
        }
    }
}
