use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::invalid::{InvalidValue, check_range};
use crate::limits::{FENCE_TOKEN_MAX, ISSUED_TOKEN_MAX};

/// A fencing token: the version of an authority. It grows with every grant, and a guarded resource refuses whoever
/// shows a lower one than it has seen.
///
/// 1 to 2^63 - 1, so that it fits a signed 64-bit column; tokens of this store stay below 2^53. Zero is refused,
/// since it is what an unset variable holds. There is no default and no arithmetic but [`FenceToken::next`].
///
/// Source: M. Kleppmann, "How to do distributed locking" (2016), section "Making the lock safe with fencing".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct FenceToken(u64);

impl FenceToken {
    /// A token from its number.
    ///
    /// # Errors
    /// [`InvalidValue::Range`] for 0 and above 2^63 - 1.
    pub fn new(value: u64) -> Result<Self, InvalidValue> {
        check_range("fence token", 1, FENCE_TOKEN_MAX, value)?;
        Ok(Self(value))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The token after the last one issued (`None`: none yet); `None` when the store's range is used up.
    #[must_use]
    pub fn next(last: Option<Self>) -> Option<Self> {
        let value = last.map_or(0, Self::get).checked_add(1)?;
        (value <= ISSUED_TOKEN_MAX).then_some(Self(value))
    }
}

impl TryFrom<u64> for FenceToken {
    type Error = InvalidValue;
    fn try_from(value: u64) -> Result<Self, InvalidValue> {
        Self::new(value)
    }
}

impl From<FenceToken> for u64 {
    fn from(token: FenceToken) -> Self {
        token.0
    }
}

impl fmt::Display for FenceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FenceToken {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::new(
            text.parse()
                .map_err(|_| InvalidValue::NotANumber { what: "fence token" })?,
        )
    }
}
