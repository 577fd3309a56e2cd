//! Answers and effects as sentences.

use lease_core::Timestamp;
use lease_core::machine::{Effect, EndReason, Holder, LeaseInfo, LeaseKey, Outcome};
use lease_core::script::ScriptReply;

/// The answer to a command.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Granted {
            token,
            remaining_ms,
            waited_ms,
        } => format!(
            "granted token {token}, {}, waited {waited_ms} ms",
            left(*remaining_ms)
        ),
        Outcome::Held(holder) => format!("held {}", held(holder)),
        Outcome::Ended { token, reason } => {
            let token = token.map_or("no token".to_owned(), |token| format!("token {token}"));
            format!("ended {token}: {}", why(reason))
        }
        Outcome::Queued => "queued".to_owned(),
        Outcome::Moved => "moved".to_owned(),
        Outcome::WaitOver => "the wait is over, nobody holds".to_owned(),
        Outcome::Renewed { remaining_ms } => format!("renewed, {}", left(*remaining_ms)),
        Outcome::RenewedMany(all) => {
            let all: Vec<String> = all.iter().map(self::outcome).collect();
            format!("[{}]", all.join("; "))
        }
        Outcome::Lost { reason } => format!("lost: {}", why(reason)),
        Outcome::Released { token } => format!("released token {token}"),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::NotFound => "not found".to_owned(),
        Outcome::TtlSet => "ttl set".to_owned(),
        Outcome::Unchanged => "unchanged".to_owned(),
        Outcome::Stored { token, previous } => {
            let previous = previous
                .as_ref()
                .map_or("nothing".to_owned(), ToString::to_string);
            format!("stored under token {token}, before: {previous}")
        }
        Outcome::NotStored { current } => {
            let current = current.as_ref().map_or("nothing".to_owned(), ToString::to_string);
            format!("not stored, there is: {current}")
        }
        Outcome::Refused(refusal) => format!("refused: {refusal}"),
        Outcome::Replied(reply) => format!("replied: {}", self::reply(reply)),
        Outcome::NoScript => "no such script".to_owned(),
        Outcome::Count(count) => format!("{count} keys"),
        Outcome::Looked(seen) => {
            let seen = seen
                .iter()
                .map(|seen| seen.as_ref().map_or("nobody".to_owned(), held));
            format!("[{}]", seen.collect::<Vec<_>>().join("; "))
        }
        Outcome::Transaction(all) => {
            let all: Vec<String> = all.iter().map(self::outcome).collect();
            format!("[{}]", all.join("; "))
        }
        Outcome::WatchFailed => "a watched key was changed".to_owned(),
    }
}

/// What others are told.
pub(crate) fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Woken { attachment, outcome } => {
            format!("woken {attachment}: {}", self::outcome(outcome))
        }
        Effect::Granted {
            key,
            owner,
            token,
            at,
        } => format!("granted {} to {owner}, token {token}, at {at}", name(key)),
        Effect::Ended {
            key,
            owner,
            token,
            at,
            reason,
        } => format!(
            "ended {} of {owner}, token {token}, at {at}: {}",
            name(key),
            why(reason)
        ),
        Effect::Published { channel, message } => format!("published on {channel}: {message}"),
    }
}

/// A lease as it stands.
pub(crate) fn lease(info: Option<&LeaseInfo>) -> String {
    let Some(info) = info else {
        return "nobody holds it".to_owned();
    };
    let LeaseInfo {
        name: _,
        owner,
        token,
        granted_at,
        deadline,
        waiters,
        metadata,
    } = info;
    let until = if *deadline == Timestamp::NEVER {
        "for ever".to_owned()
    } else {
        format!("until {deadline}")
    };
    let metadata = metadata
        .as_ref()
        .map_or(String::new(), |metadata| format!(", metadata {metadata}"));
    format!("{owner} holds token {token} since {granted_at} {until}, {waiters} waiting{metadata}")
}

fn name(key: &LeaseKey) -> String {
    match key.database.get() {
        0 => key.name.to_string(),
        database => format!("{database}/{}", key.name),
    }
}

fn held(holder: &Holder) -> String {
    let Holder {
        token,
        owner,
        remaining_ms,
        held_for_ms,
        waiters,
    } = holder;
    format!(
        "by {owner}, token {token}, for {held_for_ms} ms, {}, {waiters} waiting",
        left(*remaining_ms)
    )
}

fn left(remaining_ms: Option<u64>) -> String {
    remaining_ms.map_or("no deadline".to_owned(), |ms| format!("{ms} ms left"))
}

fn why(reason: &EndReason) -> String {
    match reason {
        EndReason::Expired => "expired".to_owned(),
        EndReason::Released => "released".to_owned(),
        EndReason::Forced { reason } => format!("forced ({reason})"),
        EndReason::Superseded => "superseded".to_owned(),
        EndReason::Overridden => "overridden".to_owned(),
        EndReason::Orphaned => "orphaned".to_owned(),
        EndReason::Cancelled => "cancelled".to_owned(),
        EndReason::Unknown => "unknown".to_owned(),
    }
}

fn reply(reply: &ScriptReply) -> String {
    match reply {
        ScriptReply::Nil => "nil".to_owned(),
        ScriptReply::Integer(number) => number.to_string(),
        ScriptReply::Bulk(bytes) => format!("{bytes:?}"),
        ScriptReply::Status(text) => format!("+{text}"),
        ScriptReply::Error(text) => format!("-{text}"),
        ScriptReply::Array(items) => {
            let items: Vec<String> = items.iter().map(self::reply).collect();
            format!("[{}]", items.join(", "))
        }
    }
}
