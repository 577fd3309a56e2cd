//! The typed form of an id: `scope:player-N:achievement[:kind][:vN]`.

use super::InvalidEventId;
use crate::types::PlayerId;

/// The version that is not written.
pub(super) const FIRST_VERSION: u32 = 1;
pub(super) const PLAYER_PREFIX: &str = "player-";

/// The parts of an id of the typed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventParts<'a> {
    /// Season, content or campaign.
    pub scope: &'a str,
    /// Who is rewarded.
    pub player: PlayerId,
    /// Rank, quest or achievement.
    pub achievement: &'a str,
    /// Which of several rewards for one achievement.
    pub kind: Option<&'a str>,
    /// Which issue of the reward; 1 where none is written.
    pub version: u32,
}

/// Whether `c` may stand in a part that the builder takes.
pub(super) const fn is_part_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.')
}

/// The number in `v2`, where the text is of that form at all. Longer numbers than a version has read as one, too.
fn version_digits(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('v')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

pub(super) fn reads_as_version(text: &str) -> bool {
    version_digits(text).is_some()
}

/// The parts, if `text` is of the typed form, spelled as the builder spells it.
pub(super) fn split(text: &str) -> Option<EventParts<'_>> {
    let mut segments = text.split(':');
    let scope = segments.next().filter(|s| is_part(s))?;
    let digits = segments.next()?.strip_prefix(PLAYER_PREFIX)?;
    let player = digits.parse().ok().filter(|n: &i64| n.to_string() == digits)?;
    let achievement = segments.next().filter(|s| is_part(s))?;
    let mut kind = None;
    let mut version = FIRST_VERSION;
    match (segments.next(), segments.next()) {
        (None, _) => {}
        (Some(last), None) if reads_as_version(last) => version = written_version(last)?,
        (Some(only), None) => kind = Some(only),
        (Some(first), Some(last)) => {
            kind = Some(first);
            version = written_version(last)?;
        }
    }
    let valid_kind = kind.is_none_or(|kind| is_part(kind) && !reads_as_version(kind));
    (valid_kind && segments.next().is_none()).then_some(EventParts {
        scope,
        player: PlayerId::new(player),
        achievement,
        kind,
        version,
    })
}

fn is_part(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_part_character)
}

fn written_version(text: &str) -> Option<u32> {
    let digits = version_digits(text)?;
    let version = digits.parse().ok().filter(|v: &u32| *v > FIRST_VERSION)?;
    (version.to_string() == digits).then_some(version)
}

/// Refuses a second spelling of a typed id: a written version 1, or numbers with zeros or a plus before them.
pub(super) fn check_spelling(text: &str) -> Result<(), InvalidEventId> {
    let mut segments = text.split(':').skip(1);
    let Some(digits) = segments.next().and_then(|s| s.strip_prefix(PLAYER_PREFIX)) else {
        return Ok(());
    };
    let Ok(player) = digits.parse::<i64>() else {
        return Ok(());
    };
    if player.to_string() != digits {
        return Err(InvalidEventId::Spelling {
            part: "player",
            found: digits.to_owned(),
            canonical: player.to_string(),
        });
    }
    let Some(last) = segments.skip(1).last() else {
        return Ok(());
    };
    match version_digits(last) {
        Some(_) if written_version(last).is_none() => Err(InvalidEventId::Spelling {
            part: "version",
            found: last.to_owned(),
            canonical: canonical_version(last),
        }),
        Some(_) | None => Ok(()),
    }
}

fn canonical_version(text: &str) -> String {
    let digits = text.trim_start_matches('v').trim_start_matches('0');
    match digits {
        "" | "1" => String::new(),
        more => format!("v{more}"),
    }
}
