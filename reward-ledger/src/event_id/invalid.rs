use thiserror::Error;

use super::RandomLook;
use crate::types::InvalidField;

/// A reward event id that is not taken. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidEventId {
    /// The id or one of its parts is too short or too long.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// A character has no place here.
    #[error("{part} must not contain {found:?}")]
    Character {
        /// The part as users know it.
        part: &'static str,
        /// The first such character.
        found: char,
    },
    /// The id looks random. A retry that mints a fresh id is paid again; build it from what the reward is.
    #[error("the id looks random: it contains {look}")]
    LooksRandom {
        /// What was found.
        look: RandomLook,
    },
    /// A kind that reads as a version would make two ids of one.
    #[error("a kind must not read as a version, as {kind:?} does")]
    KindReadsAsVersion {
        /// The kind.
        kind: String,
    },
    /// A part of the typed form is spelled in a second way, which would be a second event.
    #[error("{part} {found:?} is written {canonical:?}")]
    Spelling {
        /// The part as users know it.
        part: &'static str,
        /// As found.
        found: String,
        /// As the builder writes it; empty where it is left out.
        canonical: String,
    },
    /// Versions count from 1.
    #[error("a version is 1 or more")]
    VersionZero,
}

impl InvalidEventId {
    /// Never: the same text is refused again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        false
    }

    /// Never: an id that was refused reached no store.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}
