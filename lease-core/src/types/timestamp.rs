use std::fmt;

use serde::{Deserialize, Serialize};

use super::Ttl;

/// A point on the cluster's own clock, in milliseconds since the cluster began. It is no wall-clock time: the leader
/// stamps it on log entries, and it stands still while nobody leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The beginning of the cluster's time.
    pub const ZERO: Self = Self(0);
    /// A point that never comes.
    pub const NEVER: Self = Self(u64::MAX);
    /// The last point before [`Timestamp::NEVER`].
    pub const LAST: Self = Self(u64::MAX - 1);

    /// A point from its milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the cluster began.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This much later; stays at [`Timestamp::LAST`] where the sum would pass it.
    #[must_use]
    pub const fn after_millis(self, millis: u64) -> Self {
        let sum = self.0.saturating_add(millis);
        if sum == u64::MAX { Self::LAST } else { Self(sum) }
    }

    /// `ttl` later, saturating as [`Timestamp::after_millis`].
    #[must_use]
    pub const fn after(self, ttl: Ttl) -> Self {
        self.after_millis(ttl.as_millis())
    }

    /// Milliseconds from `earlier` to this point; 0 if it is not later.
    #[must_use]
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            f.write_str("never")
        } else {
            write!(f, "{} ms", self.0)
        }
    }
}
