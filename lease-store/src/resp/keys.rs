//! Redis's commands on string keys.

use futures_util::future::join_all;
use lease_core::machine::{LeaseKey, SetCondition, TtlCondition};
use lease_core::wire::{ErrorWord, Reply, Request};
use lease_core::{LeaseName, OwnerId, Ttl};

use super::answer::{Answer, Unclaimed};
use super::connection::Connection;
use super::plan::Plan;
use super::set::{SetAnswer, invalid_expire, read_integer, read_set, syntax_error};
use super::verb::Verb;
use crate::service::{CallError, Stored, TtlAnswer};

/// `SET key value ..`
pub(super) fn set(connection: &Connection, request: &Request) -> Result<Plan, Reply> {
    let key = key(connection, request.arg(1))?;
    let value = value(connection, request.arg(2))?;
    let (set, answer) = read_set(request, key.clone(), value)?;
    let takes_lock = set.condition == SetCondition::IfAbsent;
    let store = connection.store.clone();
    Ok(Plan::Change(Box::pin(async move {
        match store.set(set).await {
            Ok(stored) => {
                let unclaimed = match &stored {
                    Stored::Yes { token, .. } if takes_lock => Some(Unclaimed { key, token: *token }),
                    Stored::Yes { .. } | Stored::No { .. } => None,
                };
                Answer {
                    reply: set_reply(stored, answer),
                    unclaimed,
                }
            }
            Err(error) => error.to_reply().into(),
        }
    })))
}

fn set_reply(stored: Stored, answer: SetAnswer) -> Reply {
    match (answer, stored) {
        (SetAnswer::Status, Stored::Yes { .. }) => Reply::OK,
        (SetAnswer::Status, Stored::No { .. }) => Reply::Nil,
        (SetAnswer::Previous, Stored::Yes { previous: value, .. } | Stored::No { current: value }) => {
            value_reply(value)
        }
    }
}

/// `GET key`
pub(super) fn get(connection: &Connection, request: &Request) -> Result<Plan, Reply> {
    let key = key(connection, request.arg(1))?;
    let store = connection.store.clone();
    Ok(Plan::Read(Box::pin(async move {
        answer(store.value(&key).await, value_reply)
    })))
}

/// `DEL key [key ..]`, `UNLINK`
pub(super) fn del(connection: &Connection, request: &Request) -> Result<Plan, Reply> {
    let keys = keys(connection, request)?;
    let store = connection.store.clone();
    Ok(Plan::Change(Box::pin(async move {
        count(join_all(keys.into_iter().map(|key| store.delete(key))).await)
    })))
}

/// `EXISTS key [key ..]`: a key that is named twice counts twice.
pub(super) fn exists(connection: &Connection, request: &Request) -> Result<Plan, Reply> {
    let keys = keys(connection, request)?;
    let store = connection.store.clone();
    Ok(Plan::Read(Box::pin(async move {
        let seen = keys.iter().map(|key| store.value(key));
        let found = join_all(seen)
            .await
            .into_iter()
            .map(|value| value.map(|value| value.is_some()));
        count(found.collect())
    })))
}

/// `TTL key`, `PTTL key`
pub(super) fn ttl(connection: &Connection, verb: Verb, request: &Request) -> Result<Plan, Reply> {
    let key = key(connection, request.arg(1))?;
    let store = connection.store.clone();
    Ok(Plan::Read(Box::pin(async move {
        answer(store.ttl(&key).await, |ttl| match ttl {
            TtlAnswer::NoKey => Reply::Integer(-2),
            TtlAnswer::NoDeadline => Reply::Integer(-1),
            // Redis rounds to the nearest second.
            TtlAnswer::Remaining(millis) if verb == Verb::Ttl => {
                Reply::count(millis.saturating_add(500) / 1_000)
            }
            TtlAnswer::Remaining(millis) => Reply::count(millis),
        })
    })))
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`, `PEXPIRE key milliseconds ..`: a time that is over deletes the key.
pub(super) fn expire(connection: &Connection, verb: Verb, request: &Request) -> Result<Plan, Reply> {
    let key = key(connection, request.arg(1))?;
    let (command, unit_ms) = if verb == Verb::Expire {
        ("expire", 1_000)
    } else {
        ("pexpire", 1)
    };
    let number = read_integer(request.arg(2).unwrap_or_default())?;
    let millis = number
        .checked_mul(unit_ms)
        .ok_or_else(|| invalid_expire(command))?;
    let condition = match (request.arg(3), request.arg(4)) {
        (None, _) => TtlCondition::Always,
        (Some(option), None) => read_condition(option)?,
        (Some(_), Some(_)) => return Err(syntax_error()),
    };
    let ttl = u64::try_from(millis)
        .ok()
        .and_then(|millis| Ttl::from_millis(millis).ok());
    let store = connection.store.clone();
    Ok(Plan::Change(Box::pin(async move {
        let done = match ttl {
            Some(ttl) => store.set_ttl(key, Some(ttl), condition).await,
            None => store.delete(key).await,
        };
        answer(done, |done| Reply::Integer(i64::from(done)))
    })))
}

/// `PERSIST key`
pub(super) fn persist(connection: &Connection, request: &Request) -> Result<Plan, Reply> {
    let key = key(connection, request.arg(1))?;
    let store = connection.store.clone();
    Ok(Plan::Change(Box::pin(async move {
        let done = store.set_ttl(key, None, TtlCondition::IfExpiring).await;
        answer(done, |done| Reply::Integer(i64::from(done)))
    })))
}

fn read_condition(option: &[u8]) -> Result<TtlCondition, Reply> {
    let known: [(&[u8], TtlCondition); 4] = [
        (b"NX", TtlCondition::IfPersistent),
        (b"XX", TtlCondition::IfExpiring),
        (b"GT", TtlCondition::IfLater),
        (b"LT", TtlCondition::IfEarlier),
    ];
    let found = known.iter().find(|(name, _)| option.eq_ignore_ascii_case(name));
    found.map(|(_, condition)| *condition).ok_or_else(|| {
        let option = String::from_utf8_lossy(option);
        Reply::error(ErrorWord::Err, format_args!("Unsupported option {option}"))
    })
}

fn key(connection: &Connection, bytes: Option<&[u8]>) -> Result<LeaseKey, Reply> {
    let bytes = bounded(connection, "key", bytes)?;
    let name = LeaseName::redis_key(bytes).map_err(|error| Reply::error(ErrorWord::Limit, error))?;
    Ok(LeaseKey::new(connection.session.database, name))
}

fn keys(connection: &Connection, request: &Request) -> Result<Vec<LeaseKey>, Reply> {
    request
        .args()
        .skip(1)
        .map(|bytes| key(connection, Some(bytes)))
        .collect()
}

fn value(connection: &Connection, bytes: Option<&[u8]>) -> Result<OwnerId, Reply> {
    let bytes = bounded(connection, "value", bytes)?;
    OwnerId::redis_value(bytes).map_err(|error| Reply::error(ErrorWord::Limit, error))
}

fn bounded<'a>(connection: &Connection, what: &str, bytes: Option<&'a [u8]>) -> Result<&'a [u8], Reply> {
    let bytes = bytes.unwrap_or_default();
    let max = connection.max_value;
    if bytes.len() > max {
        let len = bytes.len();
        let text = format!("a {what} has at most {max} bytes here (--max-value), this one has {len}");
        return Err(Reply::error(ErrorWord::Limit, text));
    }
    Ok(bytes)
}

fn value_reply(value: Option<OwnerId>) -> Reply {
    value.map_or(Reply::Nil, |value| Reply::bulk(value.as_bytes()))
}

fn answer<T>(result: Result<T, CallError>, reply: impl FnOnce(T) -> Reply) -> Answer {
    result.map_or_else(|error| error.to_reply(), reply).into()
}

fn count(results: Vec<Result<bool, CallError>>) -> Answer {
    let results: Result<Vec<bool>, CallError> = results.into_iter().collect();
    answer(results, |all| {
        Reply::count(all.into_iter().filter(|one| *one).count() as u64)
    })
}
