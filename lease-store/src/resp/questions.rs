//! `CONFIG`, `CLUSTER`, `FUNCTION`, `TIME` and `WAIT`: what clients ask on their way, or by habit.

use lease_core::redis::{matches, read_integer};
use lease_core::wire::{ErrorWord, Reply, Request};

use super::verb::{unknown_subcommand, wrong_arity};
use crate::runtime::{Tokio, unix_time};

/// Answers `CONFIG GET pattern ..`: the few names that clients look at, with what is true here.
pub(super) fn config(databases: u8, request: &Request) -> Reply {
    let subcommand = request.arg(1).unwrap_or_default();
    if !subcommand.eq_ignore_ascii_case(b"GET") {
        return unknown_subcommand("config", subcommand);
    }
    if request.len() < 3 {
        return wrong_arity("config|get");
    }
    let databases = databases.to_string();
    let known: [(&'static str, &str); 8] = [
        ("appendfsync", "always"),
        ("appendonly", "yes"),
        ("databases", &databases),
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("replica-read-only", "no"),
        ("save", ""),
        ("timeout", "0"),
    ];
    let patterns: Vec<Vec<u8>> = request.args().skip(2).map(<[u8]>::to_ascii_lowercase).collect();
    let asked = known
        .into_iter()
        .filter(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes())));
    Reply::Map(
        asked
            .map(|(name, value)| (Reply::word(name), Reply::bulk(value)))
            .collect(),
    )
}

/// Answers `CLUSTER ..` as a Redis without a cluster does: any node here takes any command.
pub(super) fn cluster() -> Reply {
    Reply::error(ErrorWord::Err, "This instance has cluster support disabled")
}

/// Answers `FUNCTION ..`: there are none.
pub(super) fn function(request: &Request) -> Reply {
    let subcommand = request.arg(1).unwrap_or_default();
    if subcommand.eq_ignore_ascii_case(b"FLUSH") {
        Reply::OK
    } else if subcommand.eq_ignore_ascii_case(b"LIST") {
        Reply::Array(Vec::new())
    } else {
        unknown_subcommand("function", subcommand)
    }
}

/// Answers `TIME`: the wall clock of this node, which decides nothing here.
pub(super) fn time() -> Reply {
    let now = unix_time::<Tokio>();
    let (seconds, micros) = (now.as_secs().to_string(), now.subsec_micros().to_string());
    Reply::Array(vec![Reply::bulk(seconds), Reply::bulk(micros)])
}

/// Answers `WAIT replicas milliseconds`: there are no replicas in Redis's sense. What was answered is on the disks of a
/// majority before that.
pub(super) fn wait(request: &Request) -> Reply {
    let number = |at| read_integer(request.arg(at).unwrap_or_default());
    match (number(1), number(2)) {
        (Ok(_), Ok(millis)) if millis >= 0 => Reply::Integer(0),
        (Ok(_), Ok(_)) => Reply::error(ErrorWord::Err, "timeout is negative"),
        (Ok(_), Err(_)) => Reply::error(ErrorWord::Err, "timeout is not an integer or out of range"),
        (Err(refused), _) => refused.into(),
    }
}
