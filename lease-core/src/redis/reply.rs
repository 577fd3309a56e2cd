//! What an outcome, or what was seen, is answered.

use super::ask::{Change, ChangeReply, Look, LookReply};
use crate::limits::REPLY_VALUES_BYTES_MAX;
use crate::machine::{Holder, KeyCommand, Outcome, digest};
use crate::wire::{ErrorReply, ErrorWord, Line, Reply};

const STRING: Reply = Reply::Simple(Line::from_static("string"));
const NONE: Reply = Reply::Simple(Line::from_static("none"));

impl Change {
    /// The answer to an outcome of this command; `None` for one that it never has, or for a refusal.
    #[must_use]
    pub fn reply(&self, outcome: &Outcome) -> Option<Reply> {
        let flag = |done| Reply::Integer(i64::from(done));
        Some(match (self.reply, outcome) {
            (ChangeReply::Status, Outcome::Stored { .. } | Outcome::Count(_)) => Reply::OK,
            (ChangeReply::Status, Outcome::NotStored { .. }) => Reply::Nil,
            (
                ChangeReply::Previous,
                Outcome::Stored { previous: value, .. } | Outcome::NotStored { current: value },
            ) => value
                .as_ref()
                .map_or(Reply::Nil, |value| Reply::bulk(value.as_bytes())),
            (ChangeReply::Previous, Outcome::Looked(seen)) => {
                seen.first().map_or(Reply::Nil, |seen| value_of(seen.as_ref()))
            }
            (ChangeReply::Flag, Outcome::Stored { .. } | Outcome::TtlSet) => flag(true),
            (ChangeReply::Flag, Outcome::NotStored { .. } | Outcome::NotFound | Outcome::Unchanged) => {
                flag(false)
            }
            (ChangeReply::Flag, Outcome::Count(count)) => flag(*count > 0),
            (ChangeReply::Count, Outcome::Count(count)) => Reply::count(*count),
            (ChangeReply::Count, Outcome::Released { .. }) => flag(true),
            (ChangeReply::Count, Outcome::NotFound) => flag(false),
            (ChangeReply::Receivers, Outcome::Done) => Reply::Integer(0),
            _ => return None,
        })
    }
}

impl Look {
    /// The same read at its place in the log, as within a transaction.
    #[must_use]
    pub fn command(&self) -> KeyCommand {
        KeyCommand::Look {
            keys: self.keys.clone(),
        }
    }

    /// Bytes of the values that an answer to what was seen holds; 0 for one that holds none.
    #[must_use]
    pub fn value_bytes(&self, seen: &[Option<Holder>]) -> usize {
        let with_values = matches!(
            self.reply,
            LookReply::Value | LookReply::Values | LookReply::Range { .. }
        );
        let lengths = seen.iter().flatten().map(|holder| holder.owner.as_bytes().len());
        lengths.filter(|_| with_values).fold(0, usize::saturating_add)
    }

    /// The answer to what was seen of each key, in order, when the wall clock showed `wall_ms` since 1970. More values
    /// than [`REPLY_VALUES_BYTES_MAX`] are refused before any is copied.
    #[must_use]
    pub fn reply(&self, seen: &[Option<Holder>], wall_ms: i64) -> Reply {
        if self.value_bytes(seen) > REPLY_VALUES_BYTES_MAX {
            return too_many_values().into();
        }
        let one = seen.first().and_then(Option::as_ref);
        let value = one.map(|holder| holder.owner.as_bytes());
        match &self.reply {
            LookReply::Value => value_of(one),
            LookReply::Values => Reply::Array(seen.iter().map(|seen| value_of(seen.as_ref())).collect()),
            LookReply::Found => Reply::count(seen.iter().flatten().count() as u64),
            LookReply::Type => one.map_or(NONE, |_| STRING),
            LookReply::Length => Reply::count(value.map_or(0, <[u8]>::len) as u64),
            LookReply::Digest => {
                value.map_or(Reply::Nil, |value| Reply::bulk(format!("{:016x}", digest(value))))
            }
            LookReply::Range { start, end } => Reply::bulk(range(value.unwrap_or_default(), *start, *end)),
            // Redis rounds to the nearest second.
            LookReply::TtlSeconds => left(one, |millis| Reply::count(millis.saturating_add(500) / 1_000)),
            LookReply::TtlMillis => left(one, Reply::count),
            LookReply::ExpiresAtSeconds => left(one, |millis| {
                Reply::Integer(at(wall_ms, millis).saturating_add(500) / 1_000)
            }),
            LookReply::ExpiresAtMillis => left(one, |millis| Reply::Integer(at(wall_ms, millis))),
            LookReply::Token { owner } => {
                let holder = one.filter(|holder| holder.owner == *owner);
                holder.map_or(Reply::Nil, |holder| Reply::count(holder.token.get()))
            }
        }
    }
}

/// The error for reads whose values would not fit one reply.
#[must_use]
pub fn too_many_values() -> ErrorReply {
    ErrorReply::new(
        ErrorWord::Limit,
        format_args!("one reply holds at most {REPLY_VALUES_BYTES_MAX} bytes of values"),
    )
}

fn value_of(holder: Option<&Holder>) -> Reply {
    holder.map_or(Reply::Nil, |holder| Reply::bulk(holder.owner.as_bytes()))
}

/// -2 without the key, -1 without a deadline.
fn left(holder: Option<&Holder>, reply: impl FnOnce(u64) -> Reply) -> Reply {
    match holder.map(|holder| holder.remaining_ms) {
        None => Reply::Integer(-2),
        Some(None) => Reply::Integer(-1),
        Some(Some(millis)) => reply(millis),
    }
}

fn at(wall_ms: i64, millis: u64) -> i64 {
    wall_ms.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// From the byte `start` to the byte `end`, both counted from the end if they are negative.
fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = i64::try_from(value.len()).unwrap_or(i64::MAX);
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let from_start = |index: i64| {
        if index < 0 {
            index.saturating_add(len).max(0)
        } else {
            index
        }
    };
    let (start, end) = (from_start(start), from_start(end).min(len.saturating_sub(1)));
    let (Ok(start), Ok(past)) = (usize::try_from(start), usize::try_from(end.saturating_add(1))) else {
        return &[];
    };
    value.get(start..past).unwrap_or_default()
}
