use std::fmt;

use super::PlayerId;
use crate::limits::PARTITIONS;

/// A share of the players, which one publisher works on at a time. All rows of a player are in one partition, so their
/// order is one publisher's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u16);

/// An odd multiplier that spreads neighbouring numbers over the high bits (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Partition {
    /// The partition of this number; `None` from [`PARTITIONS`] on.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number < PARTITIONS {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The partition that a player's rows are in, for ever: it is part of what is stored.
    #[must_use]
    pub fn of(player: PlayerId) -> Self {
        let spread = player.get().cast_unsigned().wrapping_mul(SPREAD);
        let high = u16::try_from(spread >> 48).unwrap_or_default();
        Self(high % PARTITIONS)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PARTITIONS).map(Self)
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
