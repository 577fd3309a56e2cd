//! The one counter behind every fencing token of the store.

use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::limits::ISSUED_TOKEN_MAX;
use crate::types::FenceToken;

/// The counter. It never falls, and issues nothing before a floor has opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TokenCounter {
    /// No floor was ever applied.
    Closed,
    /// Open.
    Open {
        /// The last token issued, or the floor.
        last: u64,
    },
}

impl TokenCounter {
    /// Never lowers the counter. A floor above the range leaves nothing to issue, which every later grant says.
    pub(super) fn raise(&mut self, floor: u64) {
        *self = Self::Open {
            last: self.last().max(floor.min(ISSUED_TOKEN_MAX)),
        };
    }

    pub(super) fn issue(&mut self) -> Result<FenceToken, Refusal> {
        let Self::Open { last } = *self else {
            return Err(Refusal::NoTokenFloor);
        };
        let token = FenceToken::next(FenceToken::new(last).ok()).ok_or(Refusal::TokensExhausted)?;
        *self = Self::Open { last: token.get() };
        Ok(token)
    }

    /// The last token issued, or the floor; 0 if neither.
    pub(super) const fn last(self) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Open { last } => last,
        }
    }
}
