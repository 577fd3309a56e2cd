use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::invalid::{InvalidValue, check_range};
use crate::limits::TTL_MS_MAX;

/// Time to live of a lease: 1 to 2^63 - 1 milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Ttl(u64);

impl Ttl {
    /// A time to live from milliseconds.
    ///
    /// # Errors
    /// [`InvalidValue::Range`] for 0 and above 2^63 - 1.
    pub fn from_millis(millis: u64) -> Result<Self, InvalidValue> {
        check_range("ttl in milliseconds", 1, TTL_MS_MAX, millis)?;
        Ok(Self(millis))
    }

    /// A time to live from a duration, rounded down to the millisecond.
    ///
    /// # Errors
    /// [`InvalidValue::Range`] below one millisecond and above 2^63 - 1.
    pub fn from_duration(duration: Duration) -> Result<Self, InvalidValue> {
        Self::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// Milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The same as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl TryFrom<u64> for Ttl {
    type Error = InvalidValue;
    fn try_from(millis: u64) -> Result<Self, InvalidValue> {
        Self::from_millis(millis)
    }
}

impl From<Ttl> for u64 {
    fn from(ttl: Ttl) -> Self {
        ttl.0
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}
