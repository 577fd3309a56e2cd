//! Which protections are in force: all of them, save in a test's negative control.

/// One protection that a negative control may switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Tokens below the highest seen are refused.
    Fencing,
    /// A player is granted an event once.
    UniqueEvent,
    /// An answer waits until what it rests on is durable.
    #[cfg(feature = "sled")]
    DurabilityBarrier,
    /// Between two barriers sled counts nothing as stable, and writes over nothing.
    #[cfg(feature = "sled")]
    LogHold,
}

/// The protections in force. Only tests can build a set that lacks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protections {
    off: u8,
    decide_rounds: u8,
}

impl Protections {
    /// All of them: what every ledger runs with.
    pub const ALL: Self = Self {
        off: 0,
        decide_rounds: 1,
    };

    /// All but one. For negative controls only: a ledger without it pays twice or forgets.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub const fn all_without(protection: Protection) -> Self {
        Self {
            off: 1 << protection as u8,
            decide_rounds: 1,
        }
    }

    /// All of them, each decision made twice: a store may run its transaction again, so both must agree.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub const fn all_deciding_twice() -> Self {
        Self {
            off: 0,
            decide_rounds: 2,
        }
    }

    pub(crate) const fn are_with(self, protection: Protection) -> bool {
        self.off & (1 << protection as u8) == 0
    }

    pub(crate) const fn decide_rounds(self) -> u8 {
        self.decide_rounds
    }
}
