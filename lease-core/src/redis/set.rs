//! `SET` and its kin.

use super::arguments::{Context, When, invalid_expire, read_digest, read_integer, relative, syntax_error};
use super::ask::{Change, ChangeReply};
use super::verb::{KeyVerb, wrong_arity};
use crate::machine::{KeyCommand, ManyCondition, Set, SetCondition, SetExpiry};
use crate::wire::ErrorReply;

/// `SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX s | PX ms | EXAT s | PXAT ms |
/// KEEPTTL]`.
///
/// As with Redis all options are read before the time is looked at, and one that is repeated counts once.
pub(super) fn set(args: &[&[u8]], context: &Context) -> Result<Change, ErrorReply> {
    let [_, key, value, given @ ..] = args else {
        return Err(wrong_arity("set"));
    };
    let mut options = Options::default();
    let mut reply = ChangeReply::Status;
    let mut rest = given.iter();
    while let Some(option) = rest.next() {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        if is(b"NX") {
            options.only_if(SetCondition::IfAbsent)?;
        } else if is(b"XX") {
            options.only_if(SetCondition::IfPresent)?;
        } else if is(b"GET") {
            reply = ChangeReply::Previous;
        } else if is(b"KEEPTTL") {
            options.until(Expiry::Keep)?;
        } else {
            let argument = rest.next().ok_or_else(syntax_error)?;
            match Expiry::read(option, argument) {
                Some(expiry) => options.until(expiry)?,
                None => {
                    options.only_if(value_condition(option, argument, context)?.ok_or_else(syntax_error)?)?
                }
            }
        }
    }
    let expiry = match options.expiry {
        None => SetExpiry::Never,
        Some(expiry) => expiry.resolve("set", context)?,
    };
    let set = Set {
        key: context.key(key)?,
        value: context.value(value)?,
        expiry,
        condition: options.condition.unwrap_or(SetCondition::Always),
    };
    Ok(Change::new(KeyCommand::Set(set), reply))
}

/// `IFEQ value` and the like; `None` for another word.
pub(super) fn value_condition(
    option: &[u8],
    argument: &[u8],
    context: &Context,
) -> Result<Option<SetCondition>, ErrorReply> {
    let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
    Ok(if is(b"IFEQ") {
        Some(SetCondition::IfEqual(context.value(argument)?))
    } else if is(b"IFNE") {
        Some(SetCondition::IfNotEqual(context.value(argument)?))
    } else if is(b"IFDEQ") {
        Some(SetCondition::IfDigestEqual(read_digest(argument)?))
    } else if is(b"IFDNE") {
        Some(SetCondition::IfDigestNotEqual(read_digest(argument)?))
    } else {
        None
    })
}

/// `SETNX key value`
pub(super) fn set_if_absent(key: &[u8], value: &[u8], context: &Context) -> Result<Change, ErrorReply> {
    let set = Set {
        key: context.key(key)?,
        value: context.value(value)?,
        expiry: SetExpiry::Never,
        condition: SetCondition::IfAbsent,
    };
    Ok(Change::new(KeyCommand::Set(set), ChangeReply::Flag))
}

/// `SETEX key seconds value`, `PSETEX key milliseconds value`
pub(super) fn set_expiring(verb: KeyVerb, args: [&[u8]; 3], context: &Context) -> Result<Change, ErrorReply> {
    let [key, time, value] = args;
    let expiry = if verb == KeyVerb::Setex {
        Expiry::Seconds(time)
    } else {
        Expiry::Millis(time)
    };
    let set = Set {
        expiry: expiry.resolve(verb.name(), context)?,
        key: context.key(key)?,
        value: context.value(value)?,
        condition: SetCondition::Always,
    };
    Ok(Change::new(KeyCommand::Set(set), ChangeReply::Status))
}

/// `MSET key value ..`, `MSETNX key value ..`
pub(super) fn set_many(verb: KeyVerb, args: &[&[u8]], context: &Context) -> Result<Change, ErrorReply> {
    let (pairs, odd) = args.get(1..).unwrap_or_default().as_chunks::<2>();
    if !odd.is_empty() {
        return Err(wrong_arity(verb.name()));
    }
    let pairs: Result<Vec<_>, ErrorReply> = pairs
        .iter()
        .map(|[key, value]| Ok((context.key(key)?, context.value(value)?)))
        .collect();
    let (condition, reply) = if verb == KeyVerb::Msetnx {
        (ManyCondition::IfNoneHeld, ChangeReply::Flag)
    } else {
        (ManyCondition::Always, ChangeReply::Status)
    };
    let pairs = pairs?;
    Ok(Change::new(KeyCommand::SetMany { pairs, condition }, reply))
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
    AtSeconds(&'a [u8]),
    AtMillis(&'a [u8]),
}

impl<'a> Expiry<'a> {
    fn read(option: &[u8], argument: &'a [u8]) -> Option<Self> {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        if is(b"EX") {
            Some(Self::Seconds(argument))
        } else if is(b"PX") {
            Some(Self::Millis(argument))
        } else if is(b"EXAT") {
            Some(Self::AtSeconds(argument))
        } else if is(b"PXAT") {
            Some(Self::AtMillis(argument))
        } else {
            None
        }
    }

    /// A time that must be positive, also one of the wall clock, which may be over all the same.
    fn resolve(self, command: &str, context: &Context) -> Result<SetExpiry, ErrorReply> {
        let (number, unit_ms) = match self {
            Self::Keep => return Ok(SetExpiry::Keep),
            Self::Seconds(number) | Self::AtSeconds(number) => (number, 1_000),
            Self::Millis(number) | Self::AtMillis(number) => (number, 1),
        };
        let millis = read_integer(number)?
            .checked_mul(unit_ms)
            .filter(|millis| *millis > 0)
            .ok_or_else(|| invalid_expire(command))?;
        let when = match self {
            Self::AtSeconds(_) | Self::AtMillis(_) => context.counted_from_now(millis)?,
            Self::Keep | Self::Seconds(_) | Self::Millis(_) => relative(millis),
        };
        Ok(match when {
            When::In(ttl) => SetExpiry::In(ttl),
            When::Over => SetExpiry::Over,
        })
    }
}

impl<'a> Options<'a> {
    fn only_if(&mut self, condition: SetCondition) -> Result<(), ErrorReply> {
        if self.condition.as_ref().is_some_and(|before| *before != condition) {
            return Err(syntax_error());
        }
        self.condition = Some(condition);
        Ok(())
    }

    fn until(&mut self, expiry: Expiry<'a>) -> Result<(), ErrorReply> {
        let same_option = |before| std::mem::discriminant(before) == std::mem::discriminant(&expiry);
        if !self.expiry.as_ref().is_none_or(same_option) {
            return Err(syntax_error());
        }
        self.expiry = Some(expiry);
        Ok(())
    }
}
