//! The options of `SET`.

use lease_core::machine::{LeaseKey, Set, SetCondition, SetExpiry};
use lease_core::wire::{ErrorWord, Reply, Request};
use lease_core::{OwnerId, Ttl};

/// What `SET` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetAnswer {
    /// OK, or nil if nothing was stored.
    Status,
    /// The value before (`GET`).
    Previous,
}

/// Reads `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]`.
///
/// # Errors
/// The reply that refuses it. Nothing was applied.
pub(super) fn read_set(request: &Request, key: LeaseKey, value: OwnerId) -> Result<(Set, SetAnswer), Reply> {
    let (mut condition, mut expiry, mut answer) = (None, None, SetAnswer::Status);
    let mut at = 3;
    while let Some(option) = request.arg(at) {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        at = at.saturating_add(1);
        if is(b"NX") {
            once(&mut condition, SetCondition::IfAbsent)?;
        } else if is(b"XX") {
            once(&mut condition, SetCondition::IfPresent)?;
        } else if is(b"GET") {
            answer = SetAnswer::Previous;
        } else if is(b"KEEPTTL") {
            once(&mut expiry, SetExpiry::Keep)?;
        } else if is(b"EX") || is(b"PX") {
            let number = request.arg(at).ok_or_else(syntax_error)?;
            at = at.saturating_add(1);
            let unit_ms = if is(b"EX") { 1_000 } else { 1 };
            once(&mut expiry, SetExpiry::In(read_ttl("set", number, unit_ms)?))?;
        } else {
            return Err(syntax_error());
        }
    }
    let set = Set {
        key,
        value,
        expiry: expiry.unwrap_or(SetExpiry::Never),
        condition: condition.unwrap_or(SetCondition::Always),
    };
    Ok((set, answer))
}

/// A time to live that must lie in the future.
///
/// # Errors
/// The reply that refuses it, with `command`'s name.
pub(super) fn read_ttl(command: &str, number: &[u8], unit_ms: i64) -> Result<Ttl, Reply> {
    let millis = read_integer(number)?
        .checked_mul(unit_ms)
        .and_then(|millis| u64::try_from(millis).ok());
    millis
        .and_then(|millis| Ttl::from_millis(millis).ok())
        .ok_or_else(|| invalid_expire(command))
}

/// The error for a time that cannot be.
pub(super) fn invalid_expire(command: &str) -> Reply {
    Reply::error(
        ErrorWord::Err,
        format_args!("invalid expire time in '{command}' command"),
    )
}

/// A number as Redis reads one.
///
/// # Errors
/// The reply that refuses it.
pub(super) fn read_integer(number: &[u8]) -> Result<i64, Reply> {
    let is_plain = number.first().is_some_and(|first| *first != b'+');
    let text = std::str::from_utf8(number).ok().filter(|_| is_plain);
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Reply::error(ErrorWord::Err, "value is not an integer or out of range"))
}

/// Redis's text for options that do not fit.
pub(super) fn syntax_error() -> Reply {
    Reply::error(ErrorWord::Err, "syntax error")
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Reply> {
    if place.is_some() {
        return Err(syntax_error());
    }
    *place = Some(value);
    Ok(())
}
