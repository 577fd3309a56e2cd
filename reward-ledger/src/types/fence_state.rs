use std::sync::Arc;

use lease_core::FenceToken;

use super::{InvalidField, UnixMillis, check_text};
use crate::limits::REASON_BYTES_MAX;

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

/// Why a fence is reset: 1 to 256 bytes without control characters.
#[derive(Debug, Clone)]
pub(crate) struct Reason(Arc<str>);

impl Reason {
    pub(crate) fn new(text: &str) -> Result<Self, InvalidField> {
        check_text("reason", 1, REASON_BYTES_MAX, text)?;
        Ok(Self(Arc::from(text)))
    }

    pub(crate) fn into_text(self) -> Arc<str> {
        self.0
    }
}
