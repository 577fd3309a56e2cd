//! Reward event ids: the key under which a reward is granted at most once.
//!
//! An id is built from what the reward *is*, never from the try that asks for it: a retry that mints a fresh id is
//! paid again. So ids come from a typed builder, and an id that looks random is refused unless it is asked for by name.

mod builder;
mod invalid;
mod parts;
mod random_look;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use builder::EventIdBuilder;
pub use invalid::InvalidEventId;
pub use parts::EventParts;
pub use random_look::RandomLook;

use crate::limits::EVENT_ID_BYTES_MAX;
use crate::types::{InvalidField, PlayerId, check_length};

/// What a reward is for, such as `season-2026-week-34:player-42:rank-3`. 1 to 256 visible ASCII characters: two
/// spellings that only look alike would be two events.
///
/// ```
/// use reward_ledger::RewardEventId;
///
/// let event = RewardEventId::builder("season-2026-week-34", 42, "rank-3").build()?;
/// assert_eq!(event.as_str(), "season-2026-week-34:player-42:rank-3");
/// assert!(RewardEventId::parse("5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11").is_err());
/// # Ok::<(), reward_ledger::InvalidEventId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RewardEventId(Arc<str>);

impl RewardEventId {
    /// Builds an id of the typed form `scope:player-N:achievement[:kind][:vN]`.
    pub fn builder(
        scope: impl Into<String>,
        player: impl Into<PlayerId>,
        achievement: impl Into<String>,
    ) -> EventIdBuilder {
        EventIdBuilder::new(scope.into(), player.into(), achievement.into())
    }

    /// An id from its text, of the typed form or of your own.
    ///
    /// # Errors
    /// [`InvalidEventId`] where the text breaks a rule, looks random, or spells a typed form in a second way.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidEventId> {
        let id = Self::parse_allowing_random_look(text)?;
        match random_look::find(id.as_str()) {
            Some(look) => Err(InvalidEventId::LooksRandom { look }),
            None => Ok(id),
        }
    }

    /// As [`RewardEventId::parse`], for ids that look random and are not: the caller vouches that a retry of the same
    /// reward brings the same id.
    ///
    /// # Errors
    /// [`InvalidEventId`] where the text breaks any other rule.
    pub fn parse_allowing_random_look(text: impl AsRef<str>) -> Result<Self, InvalidEventId> {
        let text = text.as_ref();
        check_length("reward event id", 1, EVENT_ID_BYTES_MAX, text.len())?;
        if let Some(found) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(InvalidEventId::Character {
                part: "reward event id",
                found,
            });
        }
        parts::check_spelling(text)?;
        Ok(Self(Arc::from(text)))
    }

    /// An id that this ledger has stored: its rules held when it was taken, whatever they are now.
    pub(crate) fn stored(text: &str) -> Result<Self, InvalidField> {
        check_length("reward event id", 1, EVENT_ID_BYTES_MAX, text.len())?;
        Ok(Self(Arc::from(text)))
    }

    fn built(text: String) -> Self {
        Self(Arc::from(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts of an id of the typed form; `None` for one of your own.
    #[must_use]
    pub fn parts(&self) -> Option<EventParts<'_>> {
        parts::split(&self.0)
    }
}

impl AsRef<str> for RewardEventId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RewardEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
