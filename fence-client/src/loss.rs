use std::fmt;

use lease_core::Fence;
use lease_core::wire::LossReason as EndReason;
use thiserror::Error;

/// Why a handle no longer holds its lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// No renewal was confirmed before the client's own deadline.
    DeadlinePassed,
    /// The work showed no progress ([`crate::Lease::feed`]), so renewal stopped, and then the deadline passed.
    NotFed,
    /// The lease was held for as long as it was to be held at the most.
    MaximumHold,
    /// The store says that the grant is over.
    Ended {
        /// Why, as the store has it.
        reason: EndReason,
    },
    /// Its holder released it, or asked to and does not know whether it was done.
    Released,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlinePassed => f.write_str("no renewal was confirmed before its deadline"),
            Self::NotFed => f.write_str("the work showed no progress, so it was no longer renewed"),
            Self::MaximumHold => f.write_str("its maximum hold is over"),
            Self::Ended { reason } => write!(f, "the store ended it ({reason})"),
            Self::Released => f.write_str("released by its holder"),
        }
    }
}

/// The lease is no longer held. Work under it must stop; what it writes with its token is refused once somebody else
/// has written with a later one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("lease {fence} is lost: {reason}")]
#[non_exhaustive]
pub struct Lost {
    /// The lease and the token of the grant that is over.
    pub fence: Fence,
    /// Why.
    pub reason: LossReason,
}

impl Lost {
    pub(crate) const fn new(fence: Fence, reason: LossReason) -> Self {
        Self { fence, reason }
    }

    /// Whether calling again can help: never, acquire anew.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        false
    }

    /// Whether anything may have been applied in the store by the call that says this: no.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}
