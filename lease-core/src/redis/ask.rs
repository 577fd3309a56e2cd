use super::arguments::{Context, read_integer};
use super::expire::{expire, persist};
use super::set::{set, set_expiring, set_if_absent, set_many, value_condition};
use super::verb::{KeyVerb, wrong_arity};
use crate::machine::{KeyCommand, LeaseKey, SetCondition};
use crate::types::{OwnerId, SharedBytes};
use crate::wire::{ErrorReply, ErrorWord};

/// What a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Something that may change keys.
    Change(Change),
    /// Something that only reads.
    Look(Look),
}

/// A command that may change keys, and how its outcome is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What the machine does.
    pub command: KeyCommand,
    pub(super) reply: ChangeReply,
}

/// A read, and how what is seen is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What is looked at, in order; a key may be named twice.
    pub keys: Vec<LeaseKey>,
    pub(super) reply: LookReply,
}

/// How a change is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeReply {
    /// OK, or nil if nothing was stored.
    Status,
    /// The value before.
    Previous,
    /// 1 if it was done, 0 if not.
    Flag,
    /// How many keys.
    Count,
    /// How many heard it, as far as is known where it is answered: nobody.
    Receivers,
}

/// How a read is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LookReply {
    Value,
    Values,
    Found,
    Type,
    Length,
    Digest,
    Range { start: i64, end: i64 },
    TtlSeconds,
    TtlMillis,
    ExpiresAtSeconds,
    ExpiresAtMillis,
    Token { owner: OwnerId },
}

impl Change {
    pub(super) const fn new(command: KeyCommand, reply: ChangeReply) -> Self {
        Self { command, reply }
    }
}

impl From<Change> for Asked {
    fn from(change: Change) -> Self {
        Self::Change(change)
    }
}

/// Reads a command and its arguments, the command's name first.
///
/// # Errors
/// The reply that refuses it. Nothing was applied.
pub fn ask(verb: KeyVerb, args: &[&[u8]], context: &Context) -> Result<Asked, ErrorReply> {
    if !verb.arity().takes(args.len().saturating_sub(1)) {
        return Err(wrong_arity(verb.name()));
    }
    let look = |reply| look_at_one(args, context, reply);
    match (verb, args) {
        (KeyVerb::Set, _) => Ok(set(args, context)?.into()),
        (KeyVerb::Setnx, [_, key, value]) => Ok(set_if_absent(key, value, context)?.into()),
        (KeyVerb::Setex | KeyVerb::Psetex, [_, key, time, value]) => {
            Ok(set_expiring(verb, [key, time, value], context)?.into())
        }
        (KeyVerb::Mset | KeyVerb::Msetnx, _) => Ok(set_many(verb, args, context)?.into()),
        (KeyVerb::Del | KeyVerb::Unlink, [_, keys @ ..]) => {
            let keys = context.keys(keys)?;
            Ok(Change::new(KeyCommand::Delete { keys }, ChangeReply::Count).into())
        }
        (KeyVerb::Delex, _) => Ok(delete_if(args, context)?.into()),
        (KeyVerb::Delifeq, [_, key, value]) => {
            let (key, condition) = (context.key(key)?, SetCondition::IfEqual(context.value(value)?));
            Ok(Change::new(KeyCommand::DeleteIf { key, condition }, ChangeReply::Count).into())
        }
        (KeyVerb::Getdel, [_, key]) => {
            let key = context.key(key)?;
            Ok(Change::new(KeyCommand::Take { key }, ChangeReply::Previous).into())
        }
        (KeyVerb::Expire | KeyVerb::Pexpire | KeyVerb::Expireat | KeyVerb::Pexpireat, _) => {
            Ok(expire(verb, args, context)?.into())
        }
        (KeyVerb::Persist, [_, key]) => Ok(persist(key, context)?.into()),
        (KeyVerb::Publish, [_, channel, message]) => publish(channel, message, context),
        (KeyVerb::Get, _) => look(LookReply::Value),
        (KeyVerb::Mget, _) => look(LookReply::Values),
        (KeyVerb::Exists, _) => look(LookReply::Found),
        (KeyVerb::Type, _) => look(LookReply::Type),
        (KeyVerb::Strlen, _) => look(LookReply::Length),
        (KeyVerb::Digest, _) => look(LookReply::Digest),
        (KeyVerb::Ttl, _) => look(LookReply::TtlSeconds),
        (KeyVerb::Pttl, _) => look(LookReply::TtlMillis),
        (KeyVerb::Expiretime, _) => look(LookReply::ExpiresAtSeconds),
        (KeyVerb::Pexpiretime, _) => look(LookReply::ExpiresAtMillis),
        (KeyVerb::Getrange, [name, key, start, end]) => {
            let (start, end) = (read_integer(start)?, read_integer(end)?);
            look_at_one(&[name, key], context, LookReply::Range { start, end })
        }
        (KeyVerb::LeaseToken, [name, key, owner]) => {
            let owner = context.value(owner)?;
            look_at_one(&[name, key], context, LookReply::Token { owner })
        }
        _ => Err(wrong_arity(verb.name())),
    }
}

/// A read of all the keys that are named.
fn look_at_one(args: &[&[u8]], context: &Context, reply: LookReply) -> Result<Asked, ErrorReply> {
    let keys = context.keys(args.get(1..).unwrap_or_default())?;
    Ok(Asked::Look(Look { keys, reply }))
}

/// `DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]`
fn delete_if(args: &[&[u8]], context: &Context) -> Result<Change, ErrorReply> {
    let command = match args {
        [_, key] => KeyCommand::Delete {
            keys: vec![context.key(key)?],
        },
        [_, key, option, argument] => {
            let condition = value_condition(option, argument, context)?.ok_or_else(|| {
                ErrorReply::new(
                    ErrorWord::Err,
                    "Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
                )
            })?;
            let key = context.key(key)?;
            KeyCommand::DeleteIf { key, condition }
        }
        _ => return Err(wrong_arity("delex")),
    };
    Ok(Change::new(command, ChangeReply::Count))
}

fn publish(channel: &[u8], message: &[u8], context: &Context) -> Result<Asked, ErrorReply> {
    context.check("channel", channel)?;
    context.check("message", message)?;
    let command = KeyCommand::Publish {
        channel: SharedBytes::from(channel),
        message: SharedBytes::from(message),
    };
    Ok(Change::new(command, ChangeReply::Receivers).into())
}
