use std::convert::Infallible;

use thiserror::Error;

use super::PlayerId;

/// A value that breaks the rule of its type. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidField {
    /// A text or byte string is shorter or longer than its type allows.
    #[error("{what} must have {min} to {max} bytes, this one has {len}")]
    Length {
        /// The type's name as users know it.
        what: &'static str,
        /// Fewest bytes allowed.
        min: usize,
        /// Most bytes allowed.
        max: usize,
        /// Bytes found.
        len: usize,
    },
    /// A text holds a character that its type does not allow.
    #[error("{what} must not contain {found:?}")]
    Character {
        /// The type's name as users know it.
        what: &'static str,
        /// The first such character.
        found: char,
    },
    /// A number must be above zero.
    #[error("{what} must be 1 or more, not {value}")]
    NotPositive {
        /// The type's name as users know it.
        what: &'static str,
        /// Value found.
        value: i64,
    },
}

impl From<Infallible> for InvalidField {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A claim that cannot be built. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidClaim {
    /// One of its values breaks the rule of its type.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The event id is of the typed form and names another player.
    #[error("the event id names player {named}, the claim is for player {claimed}")]
    OtherPlayer {
        /// Player in the event id.
        named: PlayerId,
        /// Player of the claim.
        claimed: PlayerId,
    },
    /// No attempt id was given, and the system gave no random bytes to make one.
    #[error("no attempt id was given and the system has no random bytes")]
    NoRandomness,
}

impl InvalidClaim {
    /// Whether the same call may succeed later: only where the system had no random bytes.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::NoRandomness)
    }

    /// Never: a claim that was not built reached no store.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}

pub(crate) fn check_length(
    what: &'static str,
    min: usize,
    max: usize,
    len: usize,
) -> Result<(), InvalidField> {
    if (min..=max).contains(&len) {
        Ok(())
    } else {
        Err(InvalidField::Length { what, min, max, len })
    }
}

/// Checks a text for people and databases: bounded, and free of control characters (a NUL ends a C string and
/// has no place in an SQL text column).
pub(crate) fn check_text(what: &'static str, min: usize, max: usize, text: &str) -> Result<(), InvalidField> {
    check_length(what, min, max, text.len())?;
    match text.chars().find(|c| c.is_control()) {
        Some(found) => Err(InvalidField::Character { what, found }),
        None => Ok(()),
    }
}
