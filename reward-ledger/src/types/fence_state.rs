use std::sync::Arc;

use lease_core::FenceToken;

use super::UnixMillis;

/// What the ledger knows of a resource's tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FenceState {
    /// Highest token that a claim has shown; `None` after a reset to nothing.
    pub seen: Option<FenceToken>,
    /// The last reset by an operator, if there was one.
    pub last_reset: Option<FenceReset>,
}

impl FenceState {
    pub(crate) const fn new(seen: Option<FenceToken>, last_reset: Option<FenceReset>) -> Self {
        Self { seen, last_reset }
    }
}

/// An operator's reset of a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FenceReset {
    /// Highest token seen before the reset.
    pub from: Option<FenceToken>,
    /// When, by the ledger's wall clock.
    pub at: UnixMillis,
    /// Why, in the operator's words.
    pub reason: Arc<str>,
}

impl FenceReset {
    pub(crate) const fn new(from: Option<FenceToken>, at: UnixMillis, reason: Arc<str>) -> Self {
        Self { from, at, reason }
    }
}
