//! Redis's commands on string keys.

use futures_util::future::join_all;
use lease_core::machine::{LeaseKey, SetCondition, TtlCondition};
use lease_core::wire::{ErrorWord, Reply, Request};
use lease_core::{LeaseName, OwnerId, Ttl};

use super::answer::{Answer, Unclaimed};
use super::connection::Connection;
use super::plan::Plan;
use super::set::{SetAnswer, invalid_expire, read_integer, read_set};
use super::verb::Verb;
use crate::error::StoreError;
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

/// `DEL key [key ..]`, `UNLINK`. Each key is a change of its own, so some may be gone although others are not.
pub(super) fn del(connection: &Connection, request: &Request) -> Result<Plan, Reply> {
    let keys = keys(connection, request)?;
    let store = connection.store.clone();
    Ok(Plan::Change(Box::pin(async move {
        deleted(join_all(keys.into_iter().map(|key| store.delete(key))).await)
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
    let (command, unit_ms) = if verb == Verb::Expire {
        ("expire", 1_000)
    } else {
        ("pexpire", 1)
    };
    let condition = read_conditions(request.args().skip(3))?;
    let number = read_integer(request.arg(2).unwrap_or_default())?;
    let millis = number
        .checked_mul(unit_ms)
        .ok_or_else(|| invalid_expire(command))?;
    let key = key(connection, request.arg(1))?;
    let is_over = millis <= 0;
    let ttl = u64::try_from(millis.max(1))
        .ok()
        .and_then(|millis| Ttl::from_millis(millis).ok())
        .ok_or_else(|| invalid_expire(command))?;
    let store = connection.store.clone();
    Ok(Plan::Change(Box::pin(async move {
        let done = match condition {
            // What stands ends later than a time that is over.
            TtlCondition::Always | TtlCondition::IfEarlier if is_over => store.delete(key).await,
            TtlCondition::IfLater if is_over => Ok(false),
            // Of a key that ends now if it has a deadline, or has none: the machine ends it a millisecond later.
            TtlCondition::Always
            | TtlCondition::IfPersistent
            | TtlCondition::IfExpiring
            | TtlCondition::IfLater
            | TtlCondition::IfEarlier => store.set_ttl(key, Some(ttl), condition).await,
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

/// The conditions of `EXPIRE`; one that is repeated counts once.
fn read_conditions<'a>(options: impl Iterator<Item = &'a [u8]>) -> Result<TtlCondition, Reply> {
    let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
    for option in options {
        let known: [(&[u8], &mut bool); 4] = [
            (b"NX", &mut nx),
            (b"XX", &mut xx),
            (b"GT", &mut gt),
            (b"LT", &mut lt),
        ];
        let found = known
            .into_iter()
            .find(|(name, _)| option.eq_ignore_ascii_case(name));
        let Some((_, given)) = found else {
            let option = String::from_utf8_lossy(option);
            return Err(Reply::error(
                ErrorWord::Err,
                format_args!("Unsupported option {option}"),
            ));
        };
        *given = true;
    }
    let refused = |text| Err(Reply::error(ErrorWord::Err, text));
    match (nx, xx, gt, lt) {
        (false, false, false, false) => Ok(TtlCondition::Always),
        (true, false, false, false) => Ok(TtlCondition::IfPersistent),
        (false, true, false, false) => Ok(TtlCondition::IfExpiring),
        // A key without a deadline ends never, and so not before any time: `XX` adds nothing to `GT`.
        (false, _, true, false) => Ok(TtlCondition::IfLater),
        (false, false, false, true) => Ok(TtlCondition::IfEarlier),
        (false, true, false, true) => refused("XX and LT options at the same time are not served here"),
        (false, _, true, true) => refused("GT and LT options at the same time are not compatible"),
        (true, ..) => refused("NX and XX, GT or LT options at the same time are not compatible"),
    }
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

/// An error says that nothing was applied only if no key was deleted either.
fn deleted(results: Vec<Result<bool, CallError>>) -> Answer {
    let may_have_applied = |result: &Result<bool, CallError>| match result {
        Ok(deleted) => *deleted,
        Err(error) => error.may_have_applied(),
    };
    if results.iter().any(Result::is_err) && results.iter().any(may_have_applied) {
        return CallError::from(StoreError::Unknown).to_reply().into();
    }
    count(results)
}

fn count(results: Vec<Result<bool, CallError>>) -> Answer {
    let results: Result<Vec<bool>, CallError> = results.into_iter().collect();
    answer(results, |all| {
        Reply::count(all.into_iter().filter(|one| *one).count() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(results: Vec<Result<bool, CallError>>) -> ErrorWord {
        let reply = deleted(results).reply;
        let Reply::Error(error) = &reply else {
            panic!("{reply:?} is no error")
        };
        error.word().unwrap()
    }

    #[test]
    fn an_error_beside_a_deleted_key_does_not_say_that_nothing_was_applied() {
        let unavailable = || Err(StoreError::Unavailable { leader: None }.into());
        assert_eq!(word(vec![Ok(true), unavailable()]), ErrorWord::Unknown);
        assert_eq!(
            word(vec![unavailable(), Err(StoreError::Unknown.into())]),
            ErrorWord::Unknown
        );
        assert_eq!(word(vec![Ok(false), unavailable()]), ErrorWord::ClusterDown);
        assert_eq!(
            deleted(vec![Ok(true), Ok(false), Ok(true)]).reply,
            Reply::Integer(2)
        );
    }
}
