//! Redis's commands on keys by their kind, those on several keys, and the reads within the log.

use std::collections::BTreeMap;

use super::key_command::{KeyCommand, ManyCondition};
use super::outcome::{Effect, EndReason, Holder, LimitKind, Outcome, Refusal};
use super::{LeaseKey, LeaseMachine, Set, SetCondition, SetExpiry, TtlCondition};
use crate::limits::ISSUED_TOKEN_MAX;
use crate::types::OwnerId;

impl LeaseMachine {
    /// One command on keys. Whoever calls it holds the queues back, and has touched the keys.
    pub(super) fn key_command(&mut self, command: &KeyCommand, effects: &mut Vec<Effect>) -> Outcome {
        match command {
            KeyCommand::Set(set) => self.set(set, effects),
            KeyCommand::SetTtl { key, ttl, condition } => self.set_ttl(key, *ttl, *condition, effects),
            KeyCommand::Delete { keys } => self.delete(keys, effects),
            KeyCommand::DeleteIf { key, condition } => self.delete_if(key, condition, effects),
            KeyCommand::Take { key } => self.take(key, effects),
            KeyCommand::SetMany { pairs, condition } => self.set_many(pairs, *condition, effects),
            KeyCommand::ExpireNow { key, condition } => self.expire_now(key, *condition, effects),
            KeyCommand::Look { keys } => {
                Outcome::Looked(keys.iter().map(|key| self.holder_of(key, effects)).collect())
            }
            KeyCommand::Publish { channel, message } => {
                effects.push(Effect::Published {
                    channel: channel.clone(),
                    message: message.clone(),
                });
                Outcome::Done
            }
        }
    }

    fn delete(&mut self, keys: &[LeaseKey], effects: &mut Vec<Effect>) -> Outcome {
        let mut ended = 0_u64;
        for key in keys {
            let outcome = self.end_now(key, EndReason::Overridden, effects);
            if matches!(outcome, Outcome::Released { .. }) {
                ended = ended.saturating_add(1);
            }
        }
        Outcome::Count(ended)
    }

    fn delete_if(&mut self, key: &LeaseKey, condition: &SetCondition, effects: &mut Vec<Effect>) -> Outcome {
        let slot = self.touch(key, effects);
        let Some(hold) = slot.and_then(|slot| self.leases.hold(slot)) else {
            return Outcome::Count(0);
        };
        if !condition.holds(Some(&hold.owner)) {
            return Outcome::Count(0);
        }
        let reason = if condition.proves_ownership() {
            EndReason::Released
        } else {
            EndReason::Overridden
        };
        self.end_now(key, reason, effects);
        Outcome::Count(1)
    }

    fn take(&mut self, key: &LeaseKey, effects: &mut Vec<Effect>) -> Outcome {
        let holder = self.holder_of(key, effects);
        if holder.is_some() {
            self.end_now(key, EndReason::Overridden, effects);
        }
        Outcome::Looked(vec![holder])
    }

    /// What the passing of the time that `EXPIRE` sets is called is said here at once.
    fn expire_now(&mut self, key: &LeaseKey, condition: TtlCondition, effects: &mut Vec<Effect>) -> Outcome {
        let slot = self.touch(key, effects);
        let Some(hold) = slot.and_then(|slot| self.leases.hold(slot)) else {
            return Outcome::NotFound;
        };
        if !condition.holds(hold.deadline, self.now) {
            return Outcome::Unchanged;
        }
        self.end_now(key, EndReason::Overridden, effects);
        Outcome::TtlSet
    }

    fn set_many(
        &mut self,
        pairs: &[(LeaseKey, OwnerId)],
        condition: ManyCondition,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let held = |machine: &Self, key: &LeaseKey| {
            machine
                .leases
                .find(key)
                .is_some_and(|slot| machine.leases.hold(slot).is_some())
        };
        for (key, _) in pairs {
            self.touch(key, effects);
        }
        if condition == ManyCondition::IfNoneHeld && pairs.iter().any(|(key, _)| held(self, key)) {
            return Outcome::Count(0);
        }
        if let Err(refusal) = self.admit_many(pairs) {
            return Outcome::Refused(refusal);
        }
        for (key, value) in pairs {
            let set = Set {
                key: key.clone(),
                value: value.clone(),
                expiry: SetExpiry::Never,
                condition: SetCondition::Always,
            };
            self.set(&set, effects);
        }
        Outcome::Count(pairs.len() as u64)
    }

    /// The bounds that all of the pairs must fit, so that none is stored alone. What a key that is held gives back
    /// counts for that key only.
    fn admit_many(&self, pairs: &[(LeaseKey, OwnerId)]) -> Result<(), Refusal> {
        let (mut leases, mut bytes) = (0_usize, 0_usize);
        let longest = pairs.iter().fold(BTreeMap::new(), |mut longest, (key, value)| {
            let length: &mut usize = longest.entry(key).or_default();
            *length = value.as_bytes().len().max(*length);
            longest
        });
        for (key, length) in longest {
            let slot = self.leases.find(key);
            let hold = slot.and_then(|slot| self.leases.hold(slot));
            let more = match (slot, hold) {
                (_, Some(hold)) => length.saturating_sub(hold.bytes()),
                (Some(_), None) => length,
                (None, None) => length.saturating_add(key.name.as_bytes().len()),
            };
            leases = leases.saturating_add(usize::from(hold.is_none()));
            bytes = bytes.saturating_add(more);
        }
        self.check_limit(LimitKind::Leases, self.leases.held(), leases)?;
        if bytes > 0 {
            self.check_limit(LimitKind::Bytes, self.bytes(), bytes)?;
        }
        if !self.issues_tokens() {
            return Err(Refusal::NoTokenFloor);
        }
        let left = ISSUED_TOKEN_MAX.saturating_sub(self.tokens.last());
        if left < pairs.len() as u64 {
            return Err(Refusal::TokensExhausted);
        }
        Ok(())
    }

    fn holder_of(&mut self, key: &LeaseKey, effects: &mut Vec<Effect>) -> Option<Holder> {
        let slot = self.touch(key, effects)?;
        self.holder(slot)
    }
}
