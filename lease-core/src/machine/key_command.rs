//! What the log holds of Redis's commands on keys, alone or several at once.

use serde::{Deserialize, Serialize};

use super::{Command, LeaseKey, Set, SetCondition, TtlCondition};
use crate::types::{FenceToken, OwnerId, SharedBytes, Timestamp, Ttl};

/// One of Redis's commands on keys, as it may stand within a [`Command::Transaction`].
///
/// Tags are the positions of the variants, as those of [`Command`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyCommand {
    /// Stores a value.
    Set(Set),
    /// Sets the time to live, whoever holds the key.
    SetTtl {
        /// The key.
        key: LeaseKey,
        /// From now on; `None` takes the deadline away.
        ttl: Option<Ttl>,
        /// When to do so.
        condition: TtlCondition,
    },
    /// Ends keys, whoever holds them. A key that is named twice is ended once.
    Delete {
        /// The keys.
        keys: Vec<LeaseKey>,
    },
    /// Ends a key if the value that is stored is as the condition says.
    DeleteIf {
        /// The key.
        key: LeaseKey,
        /// When to do so.
        condition: SetCondition,
    },
    /// Ends a key and answers what stood there.
    Take {
        /// The key.
        key: LeaseKey,
    },
    /// Stores several values, all of them or none.
    SetMany {
        /// Keys and values, in order: of a key that is named twice the last value stays.
        pairs: Vec<(LeaseKey, OwnerId)>,
        /// When to store.
        condition: ManyCondition,
    },
    /// Ends a key as `EXPIRE` does with a time that is over.
    ExpireNow {
        /// The key.
        key: LeaseKey,
        /// When to do so.
        condition: TtlCondition,
    },
    /// Reads keys at this point of the log.
    Look {
        /// The keys.
        keys: Vec<LeaseKey>,
    },
    /// Tells every node's subscribers of a channel.
    Publish {
        /// The channel.
        channel: SharedBytes,
        /// What is said.
        message: SharedBytes,
    },
}

/// When several values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManyCondition {
    /// In any case: supersedes whoever holds a key.
    Always,
    /// Only if nobody holds any of the keys (`MSETNX`).
    IfNoneHeld,
}

/// A key as somebody saw it, to find out later whether it was changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// The key.
    pub key: LeaseKey,
    /// Whether it was held, and as what.
    pub seen: Option<Sighting>,
}

/// What changes whenever a key that is held does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The token of the grant.
    pub token: FenceToken,
    /// When it ends.
    pub deadline: Timestamp,
}

impl KeyCommand {
    /// How many keys it names; counted where it is bounded.
    #[must_use]
    pub fn keys(&self) -> usize {
        match self {
            Self::Delete { keys } | Self::Look { keys } => keys.len(),
            Self::SetMany { pairs, .. } => pairs.len(),
            Self::Set(_)
            | Self::SetTtl { .. }
            | Self::DeleteIf { .. }
            | Self::Take { .. }
            | Self::ExpireNow { .. }
            | Self::Publish { .. } => 1,
        }
    }

    /// Whether it may change anything. What only reads can be answered without the log.
    #[must_use]
    pub const fn changes(&self) -> bool {
        !matches!(self, Self::Look { .. })
    }
}

impl From<KeyCommand> for Command {
    /// The same alone: under its own tag where it has one.
    fn from(command: KeyCommand) -> Self {
        match command {
            KeyCommand::Set(set) => Self::Set(set),
            KeyCommand::SetTtl { key, ttl, condition } => Self::SetTtl { key, ttl, condition },
            other @ (KeyCommand::Delete { .. }
            | KeyCommand::DeleteIf { .. }
            | KeyCommand::Take { .. }
            | KeyCommand::SetMany { .. }
            | KeyCommand::ExpireNow { .. }
            | KeyCommand::Look { .. }
            | KeyCommand::Publish { .. }) => Self::Key(other),
        }
    }
}

impl SetCondition {
    /// Whether it holds for the value that is stored, if any.
    #[must_use]
    pub fn holds(&self, stored: Option<&OwnerId>) -> bool {
        let digest = |value: &OwnerId| digest(value.as_bytes());
        match self {
            Self::Always => true,
            Self::IfAbsent => stored.is_none(),
            Self::IfPresent => stored.is_some(),
            Self::IfEqual(value) => stored == Some(value),
            Self::IfNotEqual(value) => stored != Some(value),
            Self::IfDigestEqual(wanted) => stored.is_some_and(|value| digest(value) == *wanted),
            Self::IfDigestNotEqual(unwanted) => stored.is_none_or(|value| digest(value) != *unwanted),
        }
    }

    /// Whether whoever names it knows what is stored, as a holder does who extends or releases its own key.
    pub(super) const fn proves_ownership(&self) -> bool {
        match self {
            Self::IfPresent | Self::IfEqual(_) | Self::IfDigestEqual(_) => true,
            Self::Always | Self::IfAbsent | Self::IfNotEqual(_) | Self::IfDigestNotEqual(_) => false,
        }
    }
}

/// The digest of a value that `DIGEST` shows and `IFDEQ` compares: XXH3 of 64 bits, as in Redis 8.4.
#[must_use]
pub fn digest(value: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_xxh3() {
        // Source: the test vectors of the XXH3 specification, seed 0.
        assert_eq!(digest(b""), 0x2D06_8005_38D3_94C2);
    }
}
