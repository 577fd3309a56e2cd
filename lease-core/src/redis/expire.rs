//! `EXPIRE` and its kin.

use super::arguments::{Context, When, invalid_expire, read_integer, relative};
use super::ask::{Change, ChangeReply};
use super::verb::{KeyVerb, wrong_arity};
use crate::machine::{KeyCommand, TtlCondition};
use crate::wire::{ErrorReply, ErrorWord};

/// `EXPIRE key seconds [NX | XX | GT | LT]`, `PEXPIRE`, `EXPIREAT`, `PEXPIREAT`: a time that is over ends the key.
pub(super) fn expire(verb: KeyVerb, args: &[&[u8]], context: &Context) -> Result<Change, ErrorReply> {
    let [_, key, number, options @ ..] = args else {
        return Err(wrong_arity(verb.name()));
    };
    let condition = read_conditions(options)?;
    let in_seconds = matches!(verb, KeyVerb::Expire | KeyVerb::Expireat);
    let unit_ms = if in_seconds { 1_000 } else { 1 };
    let millis = read_integer(number)?
        .checked_mul(unit_ms)
        .ok_or_else(|| invalid_expire(verb.name()))?;
    let when = if matches!(verb, KeyVerb::Expireat | KeyVerb::Pexpireat) {
        context.counted_from_now(millis)?
    } else {
        relative(millis)
    };
    let key = context.key(key)?;
    let command = match when {
        When::In(ttl) => KeyCommand::SetTtl {
            key,
            ttl: Some(ttl),
            condition,
        },
        When::Over => KeyCommand::ExpireNow { key, condition },
    };
    Ok(Change::new(command, ChangeReply::Flag))
}

/// `PERSIST key`
pub(super) fn persist(key: &[u8], context: &Context) -> Result<Change, ErrorReply> {
    let command = KeyCommand::SetTtl {
        key: context.key(key)?,
        ttl: None,
        condition: TtlCondition::IfExpiring,
    };
    Ok(Change::new(command, ChangeReply::Flag))
}

/// The conditions of `EXPIRE`; one that is repeated counts once.
fn read_conditions(options: &[&[u8]]) -> Result<TtlCondition, ErrorReply> {
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
            return Err(ErrorReply::new(
                ErrorWord::Err,
                format_args!("Unsupported option {option}"),
            ));
        };
        *given = true;
    }
    let refused = |text| Err(ErrorReply::new(ErrorWord::Err, text));
    match (nx, xx, gt, lt) {
        (false, false, false, false) => Ok(TtlCondition::Always),
        (true, false, false, false) => Ok(TtlCondition::IfPersistent),
        (false, true, false, false) => Ok(TtlCondition::IfExpiring),
        // A key without a deadline ends never, and so not before any time: `XX` adds nothing to `GT`.
        (false, _, true, false) => Ok(TtlCondition::IfLater),
        (false, false, false, true) => Ok(TtlCondition::IfEarlier),
        (false, true, false, true) => Ok(TtlCondition::IfExpiringAndEarlier),
        (false, _, true, true) => refused("GT and LT options at the same time are not compatible"),
        (true, ..) => refused("NX and XX, GT or LT options at the same time are not compatible"),
    }
}
