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

/// Reads `SET key value [NX | XX | IFEQ value | IFNE value] [GET] [EX seconds | PX milliseconds | KEEPTTL]`.
///
/// As with Redis all options are read before the time is looked at, and one that is repeated counts once.
///
/// # Errors
/// The reply that refuses it. Nothing was applied.
pub(super) fn read_set(request: &Request, key: LeaseKey, value: OwnerId) -> Result<(Set, SetAnswer), Reply> {
    let mut options = Options::default();
    let mut answer = SetAnswer::Status;
    let mut at = 3;
    while let Some(option) = request.arg(at) {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        let following = request.arg(at.saturating_add(1));
        at = at.saturating_add(1);
        if is(b"NX") {
            options.only_if(SetCondition::IfAbsent)?;
        } else if is(b"XX") {
            options.only_if(SetCondition::IfPresent)?;
        } else if is(b"GET") {
            answer = SetAnswer::Previous;
        } else if is(b"KEEPTTL") {
            options.until(Expiry::Keep)?;
        } else {
            let argument = following.ok_or_else(syntax_error)?;
            at = at.saturating_add(1);
            if is(b"EX") {
                options.until(Expiry::Seconds(argument))?;
            } else if is(b"PX") {
                options.until(Expiry::Millis(argument))?;
            } else if is(b"IFEQ") {
                options.only_if(SetCondition::IfEqual(compared(argument)?))?;
            } else if is(b"IFNE") {
                options.only_if(SetCondition::IfNotEqual(compared(argument)?))?;
            } else {
                return Err(syntax_error());
            }
        }
    }
    let expiry = match options.expiry {
        None => SetExpiry::Never,
        Some(Expiry::Keep) => SetExpiry::Keep,
        Some(Expiry::Seconds(number)) => SetExpiry::In(read_ttl("set", number, 1_000)?),
        Some(Expiry::Millis(number)) => SetExpiry::In(read_ttl("set", number, 1)?),
    };
    let set = Set {
        key,
        value,
        expiry,
        condition: options.condition.unwrap_or(SetCondition::Always),
    };
    Ok((set, answer))
}

/// What stands behind the value.
#[derive(Debug, Default)]
struct Options<'a> {
    condition: Option<SetCondition>,
    expiry: Option<Expiry<'a>>,
}

/// A time as it was given.
#[derive(Debug, Clone, Copy)]
enum Expiry<'a> {
    Keep,
    Seconds(&'a [u8]),
    Millis(&'a [u8]),
}

impl<'a> Options<'a> {
    fn only_if(&mut self, condition: SetCondition) -> Result<(), Reply> {
        if self.condition.as_ref().is_some_and(|before| *before != condition) {
            return Err(syntax_error());
        }
        self.condition = Some(condition);
        Ok(())
    }

    fn until(&mut self, expiry: Expiry<'a>) -> Result<(), Reply> {
        let same_option = |before| std::mem::discriminant(before) == std::mem::discriminant(&expiry);
        if !self.expiry.as_ref().is_none_or(same_option) {
            return Err(syntax_error());
        }
        self.expiry = Some(expiry);
        Ok(())
    }
}

fn compared(value: &[u8]) -> Result<OwnerId, Reply> {
    OwnerId::redis_value(value).map_err(|error| Reply::error(ErrorWord::Limit, error))
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

/// A number as Redis reads one: in the one form in which it would be written.
///
/// # Errors
/// The reply that refuses it.
pub(super) fn read_integer(number: &[u8]) -> Result<i64, Reply> {
    let read: Option<i64> = std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok());
    read.filter(|read| read.to_string().as_bytes() == number)
        .ok_or_else(|| Reply::error(ErrorWord::Err, "value is not an integer or out of range"))
}

/// Redis's text for options that do not fit.
pub(super) fn syntax_error() -> Reply {
    Reply::error(ErrorWord::Err, "syntax error")
}
