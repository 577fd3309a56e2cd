//! Commands on several keys, and several commands at once.

use super::Model;
use super::bounds::bytes_of;
use crate::limits::{ISSUED_TOKEN_MAX, KEYS_PER_CHANGE_MAX, TRANSACTION_COMMANDS_MAX};
use crate::machine::{
    Effect, EndReason, KeyCommand, LeaseKey, LimitKind, ManyCondition, Outcome, Refusal, Set, SetCondition,
    SetExpiry, Sighting, Watched, digest,
};
use crate::types::OwnerId;

impl Model {
    pub(super) fn alone(&mut self, command: &KeyCommand) -> Outcome {
        if command.keys() > KEYS_PER_CHANGE_MAX {
            return too_many();
        }
        for key in keys_of(command) {
            self.touch(&key);
        }
        self.later = Some(Vec::new());
        let outcome = self.key(command);
        self.serve_later();
        outcome
    }

    pub(super) fn transaction(&mut self, watched: &[Watched], commands: &[KeyCommand]) -> Outcome {
        let keys: usize = commands.iter().map(KeyCommand::keys).sum();
        if keys + watched.len() > KEYS_PER_CHANGE_MAX || commands.len() > TRANSACTION_COMMANDS_MAX {
            return too_many();
        }
        for watched in watched {
            self.touch(&watched.key);
        }
        let changed = watched.iter().any(|watched| {
            let lease = self.leases.get(&watched.key);
            lease.map(|lease| (lease.token, lease.deadline))
                != watched.seen.map(|Sighting { token, deadline }| (token, deadline))
        });
        if changed {
            return Outcome::WatchFailed;
        }
        for key in commands.iter().flat_map(keys_of) {
            self.touch(&key);
        }
        self.later = Some(Vec::new());
        let outcomes = commands.iter().map(|command| self.key(command)).collect();
        self.serve_later();
        Outcome::Transaction(outcomes)
    }

    fn serve_later(&mut self) {
        for key in self.later.take().unwrap_or_default() {
            self.serve(&key);
        }
    }

    fn key(&mut self, command: &KeyCommand) -> Outcome {
        match command {
            KeyCommand::Set(set) => self.set(set),
            KeyCommand::SetTtl { key, ttl, condition } => self.set_ttl(key, *ttl, *condition),
            KeyCommand::Delete { keys } => {
                let mut ended = 0;
                for key in keys {
                    self.touch(key);
                    ended += u64::from(self.end_and_serve(key, EndReason::Overridden) != Outcome::NotFound);
                }
                Outcome::Count(ended)
            }
            KeyCommand::DeleteIf { key, condition } => self.delete_if(key, condition),
            KeyCommand::Take { key } => {
                self.touch(key);
                let holder = self.holder(key);
                self.end_and_serve(key, EndReason::Overridden);
                Outcome::Looked(vec![holder])
            }
            KeyCommand::SetMany { pairs, condition } => self.set_many(pairs, *condition),
            KeyCommand::ExpireNow { key, condition } => {
                self.touch(key);
                let Some(lease) = self.leases.get(key) else {
                    return Outcome::NotFound;
                };
                if !super::redis::moves(*condition, lease.deadline, self.now) {
                    return Outcome::Unchanged;
                }
                self.end_and_serve(key, EndReason::Overridden);
                Outcome::TtlSet
            }
            KeyCommand::Look { keys } => {
                let look = |key: &LeaseKey| {
                    self.touch(key);
                    self.holder(key)
                };
                Outcome::Looked(keys.iter().map(look).collect())
            }
            KeyCommand::Publish { channel, message } => {
                let (channel, message) = (channel.clone(), message.clone());
                self.effects.push(Effect::Published { channel, message });
                Outcome::Done
            }
        }
    }

    fn delete_if(&mut self, key: &LeaseKey, condition: &SetCondition) -> Outcome {
        self.touch(key);
        let Some(lease) = self.leases.get(key) else {
            return Outcome::Count(0);
        };
        let stored = digest(lease.owner.as_bytes());
        let (holds, proves) = match condition {
            SetCondition::IfEqual(value) => (lease.owner == *value, true),
            SetCondition::IfNotEqual(value) => (lease.owner != *value, false),
            SetCondition::IfDigestEqual(wanted) => (stored == *wanted, true),
            SetCondition::IfDigestNotEqual(unwanted) => (stored != *unwanted, false),
            SetCondition::Always => (true, false),
            SetCondition::IfPresent => (true, true),
            SetCondition::IfAbsent => (false, false),
        };
        if !holds {
            return Outcome::Count(0);
        }
        let reason = if proves {
            EndReason::Released
        } else {
            EndReason::Overridden
        };
        self.end_and_serve(key, reason);
        Outcome::Count(1)
    }

    fn set_many(&mut self, pairs: &[(LeaseKey, OwnerId)], condition: ManyCondition) -> Outcome {
        pairs.iter().for_each(|(key, _)| self.touch(key));
        let any_held = pairs.iter().any(|(key, _)| self.leases.contains_key(key));
        if condition == ManyCondition::IfNoneHeld && any_held {
            return Outcome::Count(0);
        }
        let (mut new, mut bytes, mut seen) = (0, 0, Vec::new());
        for (key, _) in pairs {
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let of_key = pairs.iter().filter(|(other, _)| other == key);
            let longest = of_key.map(|(_, value)| value.as_bytes().len()).max().unwrap();
            match self.leases.get(key) {
                Some(lease) => {
                    bytes += longest.saturating_sub(bytes_of(&lease.owner, lease.metadata.as_ref()));
                }
                None => {
                    new += 1;
                    bytes += longest
                        + if self.is_known(key) {
                            0
                        } else {
                            key.name.as_bytes().len()
                        };
                }
            }
        }
        let admitted = self
            .room(LimitKind::Leases, self.leases.len(), new)
            .and_then(|()| {
                if bytes == 0 {
                    Ok(())
                } else {
                    self.room(LimitKind::Bytes, self.bytes(), bytes)
                }
            });
        if let Err(refusal) = admitted {
            return Outcome::Refused(refusal);
        }
        match self.last_token {
            None => return Outcome::Refused(Refusal::NoTokenFloor),
            Some(last) if ISSUED_TOKEN_MAX - last < pairs.len() as u64 => {
                return Outcome::Refused(Refusal::TokensExhausted);
            }
            Some(_) => {}
        }
        for (key, value) in pairs {
            self.set(&Set {
                key: key.clone(),
                value: value.clone(),
                expiry: SetExpiry::Never,
                condition: SetCondition::Always,
            });
        }
        Outcome::Count(pairs.len() as u64)
    }

    /// Whether its name is counted already.
    pub(super) fn is_known(&self, key: &LeaseKey) -> bool {
        self.waiters_of(key) > 0 || self.later.as_ref().is_some_and(|later| later.contains(key))
    }
}

fn keys_of(command: &KeyCommand) -> Vec<LeaseKey> {
    match command {
        KeyCommand::Set(set) => vec![set.key.clone()],
        KeyCommand::SetTtl { key, .. }
        | KeyCommand::DeleteIf { key, .. }
        | KeyCommand::Take { key }
        | KeyCommand::ExpireNow { key, .. } => vec![key.clone()],
        KeyCommand::Delete { keys } | KeyCommand::Look { keys } => keys.clone(),
        KeyCommand::SetMany { pairs, .. } => pairs.iter().map(|(key, _)| key.clone()).collect(),
        KeyCommand::Publish { .. } => Vec::new(),
    }
}

fn too_many() -> Outcome {
    let max = KEYS_PER_CHANGE_MAX as u64;
    Outcome::Refused(Refusal::TooManyKeys { max })
}
