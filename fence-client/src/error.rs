//! What each operation can end in, one enum an operation.
//!
//! Each answers two questions: can the same call help later (`is_retryable`), and may the request have been applied
//! (`may_have_applied`)? Unknown is not failed.

use std::time::Duration;

use lease_core::wire::{ErrorReply, LossReason as EndReason};
use lease_core::{FenceToken, InvalidValue, OwnerId};
use thiserror::Error;

use crate::call_error::CallError;
use crate::endpoint::InvalidEndpoint;
use crate::loss::Lost;

/// Who holds a lease, as the store said when it refused it to us.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Who.
    pub owner: OwnerId,
    /// Under which token.
    pub token: FenceToken,
    /// For how long still, at the time of the answer; `None` without a deadline.
    pub remaining: Option<Duration>,
    /// Since when.
    pub held_for: Duration,
    /// How many stand in the queue.
    pub waiters: u64,
}

/// A client could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An address is none.
    #[error("the list of endpoints cannot be read")]
    Endpoint {
        /// Which one, and why.
        source: InvalidEndpoint,
    },
    /// Two settings contradict each other.
    #[error("{what} is {value:?}, but must be {rule}")]
    Config {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: Duration,
        /// What it must be.
        rule: &'static str,
    },
    /// The assumed error of clock rates is out of its range.
    #[error("the clock rate error is {ppm} parts per million, but must be at most {max}")]
    RateError {
        /// The setting.
        ppm: u32,
        /// The highest that makes sense.
        max: u32,
    },
    /// The database or the owner breaks its rule.
    #[error("a setting is invalid: {invalid}")]
    Invalid {
        /// Which rule.
        invalid: InvalidValue,
    },
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
    /// A client needs a tokio runtime from its beginning on.
    #[error("a client must be made within a tokio runtime")]
    NoRuntime,
    /// No server could be reached, or it refused the client.
    #[error("no server could be reached")]
    Unreachable {
        /// What the last attempt failed with.
        source: CallError,
    },
}

impl ConnectError {
    /// Whether the same call can help later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { source } => source.is_retryable(),
            Self::Endpoint { .. }
            | Self::Config { .. }
            | Self::RateError { .. }
            | Self::Invalid { .. }
            | Self::NoRandomness
            | Self::NoRuntime => false,
        }
    }

    /// Whether anything was applied: never.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}

/// A lease was not acquired.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody else holds it, and still did when the wait was over.
    #[error("held by {} under token {} for {:?}", holder.owner, holder.token, holder.held_for)]
    Held {
        /// Who.
        holder: Holder,
    },
    /// The grant of this request was over before its answer arrived, or the request was given up.
    #[error("the grant of this request is over already ({reason})")]
    Ended {
        /// The token it had; `None` if it had none.
        token: Option<FenceToken>,
        /// Why it is over.
        reason: EndReason,
    },
    /// The grant came after the time that it was sure for. It is released.
    #[error("the grant of token {token} arrived after its deadline")]
    AnsweredTooLate {
        /// Its token.
        token: FenceToken,
    },
    /// With this time to live, less drift and margin, too little is left to renew in.
    #[error("a ttl of {ttl:?} is too short: with a margin of {margin:?} it must be at least {least:?}")]
    TtlTooShort {
        /// What was asked for.
        ttl: Duration,
        /// What is taken off each deadline.
        margin: Duration,
        /// The shortest possible.
        least: Duration,
    },
    /// A name, owner, time to live or metadata breaks its rule.
    #[error("{invalid}")]
    Invalid {
        /// Which rule.
        invalid: InvalidValue,
    },
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
    /// The store refused: nothing was applied.
    #[error("the store refused: {reply}")]
    Refused {
        /// What it said.
        reply: ErrorReply,
    },
    /// The store could not be reached in time: nothing was applied.
    #[error("the lease store is unavailable")]
    Unavailable {
        /// What the last attempt failed with.
        source: CallError,
    },
    /// No answer came in time: the lease may have been granted. It is given up in the background, and ends with its
    /// time to live in any case.
    #[error("it is not known whether the lease was granted")]
    Unknown {
        /// What the last attempt failed with.
        source: CallError,
    },
}

impl AcquireError {
    /// Whether the same call can help later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Held { .. }
            | Self::Ended { .. }
            | Self::AnsweredTooLate { .. }
            | Self::Unavailable { .. }
            | Self::Unknown { .. } => true,
            Self::Refused { reply } => reply.is_retryable(),
            Self::TtlTooShort { .. } | Self::Invalid { .. } | Self::NoRandomness => false,
        }
    }

    /// Whether the lease may stand in the store all the same, until it is given up or its time to live is over.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::AnsweredTooLate { .. })
    }

    /// Whether the store could not be asked, as opposed to having said no.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unknown { .. })
    }
}

/// A lease was not released.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// It was lost before.
    #[error("the lease was over before its release")]
    Lost {
        /// Why.
        source: Lost,
    },
    /// The store refused: nothing was applied, and the handle stays valid.
    #[error("the store refused: {reply}")]
    Refused {
        /// What it said.
        reply: ErrorReply,
    },
    /// The store could not be reached in time: nothing was applied, and the handle stays valid.
    #[error("the lease store is unavailable")]
    Unavailable {
        /// What the last attempt failed with.
        source: CallError,
    },
    /// No answer came in time: the lease may have been released. The handle is no longer valid; releasing it again is
    /// safe, and says what became of it.
    #[error("it is not known whether the lease was released")]
    Unknown {
        /// What the last attempt failed with.
        source: CallError,
    },
}

impl ReleaseError {
    /// Whether releasing again can help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Unknown { .. } => true,
            Self::Refused { reply } => reply.is_retryable(),
            Self::Lost { .. } => false,
        }
    }

    /// Whether the lease may have been released.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

/// A question to the store, or a command of an operator, got no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A name, owner, request id or reason breaks its rule.
    #[error("{invalid}")]
    Invalid {
        /// Which rule.
        invalid: InvalidValue,
    },
    /// The store refused: nothing was applied.
    #[error("the store refused: {reply}")]
    Refused {
        /// What it said.
        reply: ErrorReply,
    },
    /// No answer came.
    #[error("the lease store did not answer")]
    Failed {
        /// What the last attempt failed with.
        source: CallError,
        /// Whether one of the attempts may have been applied.
        may_have_applied: bool,
    },
}

impl RequestError {
    /// Whether the same call can help later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Invalid { .. } => false,
            Self::Refused { reply } => reply.is_retryable(),
            Self::Failed { source, .. } => source.is_retryable(),
        }
    }

    /// Whether the request may have been applied all the same.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        match self {
            Self::Invalid { .. } | Self::Refused { .. } => false,
            Self::Failed { may_have_applied, .. } => *may_have_applied,
        }
    }
}
