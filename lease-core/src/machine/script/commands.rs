//! The commands that a script calls, on the state as the script has left it.
//!
//! They are read and answered by [`crate::redis`], as those that come over a socket.

use super::super::key_command::ManyCondition;
use super::super::leases::DeadlineSetBy;
use super::super::outcome::{EndReason, Holder, Outcome, Refusal};
use super::super::{KeyCommand, LeaseKey, RunScript, Set, SetCondition, SetExpiry, TtlCondition};
use super::draft::{Ground, Standing, Until};
use crate::limits::KEYS_PER_CHANGE_MAX;
use crate::redis::{Asked, Context, KeyVerb, ask, read_integer};
use crate::script::{Host, ScriptReply, Verb};
use crate::types::{Database, OwnerId, SharedBytes, Timestamp, Ttl};

/// Arguments of a script that are looked at for the proof that its caller holds a key. Lock libraries pass their token
/// first, or behind the number of a database.
const PROOFS_MAX: usize = 8;

/// Whether a script may change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptAccess {
    /// It may.
    ReadWrite,
    /// It may not: `EVAL_RO`.
    ReadOnly,
}

/// Carries out the commands of one script.
pub(super) struct Commands<'a, G> {
    pub(super) ground: G,
    pub(super) script: &'a RunScript,
    pub(super) access: ScriptAccess,
    /// `SELECT` within a script is the script's own.
    pub(super) database: Database,
}

impl<G: Ground> Host for Commands<'_, G> {
    type Stop = G::Stop;

    fn call(&mut self, verb: Verb, arguments: &[SharedBytes]) -> Result<ScriptReply, G::Stop> {
        if self.access == ScriptAccess::ReadOnly && verb.writes() {
            return Ok(ScriptReply::error(
                "ERR Write commands are not allowed from read-only scripts.",
            ));
        }
        match verb {
            Verb::Key(verb) => self.key_command(verb, arguments),
            Verb::Select => Ok(self.select(arguments)),
        }
    }
}

impl<G: Ground> Commands<'_, G> {
    fn key_command(&mut self, verb: KeyVerb, arguments: &[SharedBytes]) -> Result<ScriptReply, G::Stop> {
        let args: Vec<&[u8]> = std::iter::once(verb.name().as_bytes())
            .chain(arguments.iter().map(SharedBytes::as_slice))
            .collect();
        let context = Context {
            database: self.database,
            value_bytes_max: self.script.value_bytes_max as usize,
            wall_ms: None,
        };
        match ask(verb, &args, &context) {
            Err(refused) => Ok(refused.into()),
            Ok(Asked::Look(look)) => {
                let mut seen = Vec::with_capacity(look.keys.len());
                for key in &look.keys {
                    seen.push(self.holder(key)?);
                }
                // No command that shows a time of the wall clock is served.
                Ok(look.reply(&seen, 0).into())
            }
            Ok(Asked::Change(change)) => {
                let outcome = self.change(&change.command)?;
                if let Outcome::Refused(refusal) = &outcome {
                    return Ok(ScriptReply::error(format!("LIMIT {refusal}")));
                }
                let reply = change.reply(&outcome).map(ScriptReply::from);
                Ok(reply.unwrap_or_else(|| ScriptReply::error("ERR unexpected outcome of a command")))
            }
        }
    }

    fn select(&mut self, arguments: &[SharedBytes]) -> ScriptReply {
        let number = match read_integer(arguments.first().map_or(&[], SharedBytes::as_slice)) {
            Ok(number) => number,
            Err(refused) => return refused.into(),
        };
        if i32::try_from(number).is_err() {
            let (min, max) = (i32::MIN, i32::MAX);
            return ScriptReply::error(format!(
                "ERR value is out of range, value must between {min} and {max}"
            ));
        }
        let database = u64::try_from(number)
            .ok()
            .filter(|number| *number < u64::from(self.script.databases))
            .and_then(|number| Database::new(number).ok());
        match database {
            Some(database) => {
                self.database = database;
                ScriptReply::Status(SharedBytes::from("OK"))
            }
            None => ScriptReply::error("ERR DB index is out of range"),
        }
    }

    /// As the machine does it for a command of its own, but for [`Self::store`].
    fn change(&mut self, command: &KeyCommand) -> Result<Outcome, G::Stop> {
        if command.keys() > KEYS_PER_CHANGE_MAX {
            return Ok(Outcome::Refused(Refusal::TooManyKeys {
                max: KEYS_PER_CHANGE_MAX as u64,
            }));
        }
        match command {
            KeyCommand::Set(set) => self.store(set),
            KeyCommand::SetTtl { key, ttl, condition } => self.set_ttl(key, *ttl, *condition),
            KeyCommand::Delete { keys } => self.delete(keys),
            KeyCommand::DeleteIf { key, condition } => {
                let standing = self.ground.standing(key)?;
                let Some(standing) = standing.filter(|standing| condition.holds(Some(&standing.value)))
                else {
                    return Ok(Outcome::Count(0));
                };
                if condition.proves_ownership() {
                    self.ground.end(key, EndReason::Released)?;
                } else {
                    self.end(key, &standing)?;
                }
                Ok(Outcome::Count(1))
            }
            KeyCommand::Take { key } => {
                let standing = self.ground.standing(key)?;
                let holder = self.holder(key)?;
                if let Some(standing) = &standing {
                    self.end(key, standing)?;
                }
                Ok(Outcome::Looked(vec![holder]))
            }
            KeyCommand::SetMany { pairs, condition } => self.set_many(pairs, *condition),
            KeyCommand::ExpireNow { key, condition } => {
                let Some(standing) = self.ground.standing(key)? else {
                    return Ok(Outcome::NotFound);
                };
                if !condition.holds(standing.deadline, self.ground.now()) {
                    return Ok(Outcome::Unchanged);
                }
                self.end(key, &standing)?;
                Ok(Outcome::TtlSet)
            }
            KeyCommand::Look { keys } => {
                let mut seen = Vec::with_capacity(keys.len());
                for key in keys {
                    seen.push(self.holder(key)?);
                }
                Ok(Outcome::Looked(seen))
            }
            KeyCommand::Publish { channel, message } => {
                self.ground.publish(channel.clone(), message.clone())?;
                Ok(Outcome::Done)
            }
        }
    }

    /// Who holds a key, so far as commands show it.
    fn holder(&mut self, key: &LeaseKey) -> Result<Option<Holder>, G::Stop> {
        let now = self.ground.now();
        let holder = |standing: Standing| Holder {
            remaining_ms: (standing.deadline != Timestamp::NEVER)
                .then(|| standing.deadline.millis_since(now)),
            token: standing.token,
            owner: standing.value,
            held_for_ms: 0,
            waiters: 0,
        };
        Ok(self.ground.standing(key)?.map(holder))
    }

    /// Stores a value. The value that is stored now renews the lease, under the token that it has: lock libraries extend
    /// so. Any other one supersedes, under a new token.
    fn store(&mut self, set: &Set) -> Result<Outcome, G::Stop> {
        let standing = self.ground.standing(&set.key)?;
        let current = standing.as_ref().map(|standing| standing.value.clone());
        if !set.condition.holds(current.as_ref()) {
            return Ok(Outcome::NotStored { current });
        }
        let now = self.ground.now();
        let (deadline, ttl) = match (set.expiry, &standing) {
            (SetExpiry::In(ttl), _) => (now.after(ttl), Some(ttl)),
            (SetExpiry::Keep, Some(standing)) => (standing.deadline, standing.ttl),
            (SetExpiry::Over, _) => (now, None),
            (SetExpiry::Keep, None) | (SetExpiry::Never, _) => (Timestamp::NEVER, None),
        };
        let by = DeadlineSetBy::Holder;
        let until = Until { deadline, ttl, by };
        let token = match standing.filter(|standing| standing.value == set.value) {
            Some(standing) => {
                // A deadline that is kept stays the word of whoever set it.
                if set.expiry != SetExpiry::Keep {
                    self.ground.set_deadline(&set.key, until)?;
                }
                standing.token
            }
            None => self.ground.grant(&set.key, set.value.clone(), until)?,
        };
        if set.expiry == SetExpiry::Over {
            self.ground.end(&set.key, EndReason::Expired)?;
        }
        Ok(Outcome::Stored {
            token,
            previous: current,
        })
    }

    fn set_many(
        &mut self,
        pairs: &[(LeaseKey, OwnerId)],
        condition: ManyCondition,
    ) -> Result<Outcome, G::Stop> {
        if condition == ManyCondition::IfNoneHeld {
            for (key, _) in pairs {
                if self.ground.standing(key)?.is_some() {
                    return Ok(Outcome::Count(0));
                }
            }
        }
        for (key, value) in pairs {
            let set = Set {
                key: key.clone(),
                value: value.clone(),
                expiry: SetExpiry::Never,
                condition: SetCondition::Always,
            };
            self.store(&set)?;
        }
        Ok(Outcome::Count(pairs.len() as u64))
    }

    fn delete(&mut self, keys: &[LeaseKey]) -> Result<Outcome, G::Stop> {
        let mut ended = 0_u64;
        for key in keys {
            if let Some(standing) = self.ground.standing(key)? {
                self.end(key, &standing)?;
                ended = ended.saturating_add(1);
            }
        }
        Ok(Outcome::Count(ended))
    }

    /// Whoever passes the value that is stored to its script proves that it holds the key, and releases it.
    fn end(&mut self, key: &LeaseKey, standing: &Standing) -> Result<(), G::Stop> {
        let value = standing.value.as_bytes();
        let mut proofs = self.script.arguments.iter().take(PROOFS_MAX);
        let reason = if proofs.any(|argument| argument.as_slice() == value) {
            EndReason::Released
        } else {
            EndReason::Overridden
        };
        self.ground.end(key, reason)
    }

    fn set_ttl(
        &mut self,
        key: &LeaseKey,
        ttl: Option<Ttl>,
        condition: TtlCondition,
    ) -> Result<Outcome, G::Stop> {
        let Some(standing) = self.ground.standing(key)? else {
            return Ok(Outcome::NotFound);
        };
        let deadline = ttl.map_or(Timestamp::NEVER, |ttl| self.ground.now().after(ttl));
        if !condition.holds(standing.deadline, deadline) {
            return Ok(Outcome::Unchanged);
        }
        let by = if deadline < standing.deadline {
            DeadlineSetBy::Override
        } else {
            standing.deadline_set_by
        };
        self.ground.set_deadline(key, Until { deadline, ttl, by })?;
        Ok(Outcome::TtlSet)
    }
}
