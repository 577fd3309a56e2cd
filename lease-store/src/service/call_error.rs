use lease_core::InvalidValue;
use lease_core::machine::Refusal;
use lease_core::script::LoadError;
use lease_core::wire::{ErrorWord, Reply};
use thiserror::Error;

use crate::error::StoreError;

/// Why a call has no answer of its own kind.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The store could not decide it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine refused it. Nothing was applied.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A value is not allowed. Nothing was applied.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// The same request came again elsewhere, and waits there.
    #[error("the same request came again on another connection, which will get the answer")]
    Moved,
    /// The wait ended while nobody held the lease, and it was not granted.
    #[error("the wait is over without a grant: try again")]
    WaitOver,
    /// No script of that digest is held. Nothing was applied.
    #[error("No matching script. Please use EVAL.")]
    NoScript,
    /// A script is not taken. Nothing was applied.
    #[error(transparent)]
    Script(#[from] LoadError),
    /// The machine answered what no command of this kind is answered: a bug of ours.
    #[error("unexpected outcome of {command}")]
    Unexpected {
        /// The command.
        command: &'static str,
    },
}

impl CallError {
    /// The word that programs switch on.
    #[must_use]
    pub const fn word(&self) -> ErrorWord {
        match self {
            Self::Store(StoreError::Unavailable { .. } | StoreError::ShutDown) => ErrorWord::ClusterDown,
            Self::Store(StoreError::Unknown | StoreError::Failed(_))
            | Self::Unexpected { .. }
            | Self::Moved => ErrorWord::Unknown,
            Self::Store(StoreError::TooLarge) => ErrorWord::Limit,
            Self::Refused(refusal) => refusal_word(refusal),
            Self::Invalid(_) | Self::Script(_) => ErrorWord::Err,
            Self::NoScript => ErrorWord::NoScript,
            Self::WaitOver => ErrorWord::ClusterDown,
        }
    }

    /// The error as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::error(self.word(), self)
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.word().is_retryable()
    }

    /// Whether the command may have been applied.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        self.word().may_have_applied()
    }
}

const fn refusal_word(refusal: &Refusal) -> ErrorWord {
    match refusal {
        Refusal::Limit { .. }
        | Refusal::TooManyRenewals { .. }
        | Refusal::TooManyKeys { .. }
        | Refusal::TokensExhausted => ErrorWord::Limit,
        // The node is not open for grants yet, or is an earlier life of itself: another one may serve.
        Refusal::NoTokenFloor | Refusal::StaleIncarnation { .. } => ErrorWord::ClusterDown,
        _ => ErrorWord::Err,
    }
}
