use std::fmt::Write;

use super::parts::{FIRST_VERSION, PLAYER_PREFIX, is_part_character, reads_as_version};
use super::{InvalidEventId, RewardEventId, random_look};
use crate::limits::EVENT_PART_BYTES_MAX;
use crate::types::{PlayerId, check_length};

/// Builds the id `scope:player-N:achievement[:kind][:vN]`. Parts have 1 to 64 of `a-z 0-9 - _ .`: lower case only,
/// since `Rank-3` and `rank-3` would be two events.
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct EventIdBuilder {
    scope: String,
    player: PlayerId,
    achievement: String,
    kind: Option<String>,
    version: u32,
    random_look: RandomLookPolicy,
}

/// What becomes of a part that looks random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RandomLookPolicy {
    Refuse,
    Allow,
}

impl EventIdBuilder {
    pub(super) fn new(scope: String, player: PlayerId, achievement: String) -> Self {
        Self {
            scope,
            player,
            achievement,
            kind: None,
            version: FIRST_VERSION,
            random_look: RandomLookPolicy::Refuse,
        }
    }

    /// Which of several rewards for one achievement, such as `gold`.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Which issue of the reward, from 1 up; 1 is not written.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Takes parts that look random, such as a content id that is a UUID: the caller vouches that a retry of the
    /// same reward brings the same ones.
    pub fn allowing_random_look(mut self) -> Self {
        self.random_look = RandomLookPolicy::Allow;
        self
    }

    /// The id.
    ///
    /// # Errors
    /// [`InvalidEventId`] where a part breaks a rule or looks random.
    pub fn build(self) -> Result<RewardEventId, InvalidEventId> {
        check_part("scope", &self.scope)?;
        check_part("achievement", &self.achievement)?;
        let mut text = format!(
            "{}:{PLAYER_PREFIX}{}:{}",
            self.scope, self.player, self.achievement
        );
        if let Some(kind) = self.kind {
            check_part("kind", &kind)?;
            if reads_as_version(&kind) {
                return Err(InvalidEventId::KindReadsAsVersion { kind });
            }
            text.push(':');
            text.push_str(&kind);
        }
        match self.version {
            0 => return Err(InvalidEventId::VersionZero),
            FIRST_VERSION => {}
            version => {
                let written = write!(text, ":v{version}");
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
        }
        match (self.random_look, random_look::find(&text)) {
            (RandomLookPolicy::Refuse, Some(look)) => Err(InvalidEventId::LooksRandom { look }),
            (RandomLookPolicy::Allow, _) | (_, None) => Ok(RewardEventId::built(text)),
        }
    }
}

fn check_part(part: &'static str, text: &str) -> Result<(), InvalidEventId> {
    check_length(part, 1, EVENT_PART_BYTES_MAX, text.len())?;
    match text.chars().find(|&c| !is_part_character(c)) {
        Some(found) => Err(InvalidEventId::Character { part, found }),
        None => Ok(()),
    }
}
