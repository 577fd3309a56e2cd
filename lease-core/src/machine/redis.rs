//! The commands of the Redis face: a key is a lease, its value is the owner.

use super::acquire::Grant;
use super::leases::{DeadlineSetBy, Hold};
use super::outcome::{Effect, EndReason, LimitKind, Outcome};
use super::slab::Slot;
use super::{LeaseKey, LeaseMachine, Set, SetCondition, SetExpiry, TtlCondition};
use crate::types::{OwnerId, Timestamp, Ttl};

/// A deadline, and the time to live that it counts from.
struct Until {
    deadline: Timestamp,
    ttl: Option<Ttl>,
}

impl LeaseMachine {
    /// `SET` with a condition that proves ownership (`XX`, `IFEQ`) and the value that is stored is a renewal: the same
    /// token. Lock libraries extend that way. Every other `SET` that stores is a grant: a new token.
    pub(super) fn set(&mut self, set: &Set, effects: &mut Vec<Effect>) -> Outcome {
        let slot = self.touch(&set.key, effects);
        let standing = slot.and_then(|slot| Some((slot, self.leases.hold(slot)?)));
        let Some((slot, hold)) = standing else {
            return match set.condition {
                SetCondition::Always | SetCondition::IfAbsent | SetCondition::IfNotEqual(_) => {
                    self.set_new(set, slot, effects)
                }
                SetCondition::IfPresent | SetCondition::IfEqual(_) => Outcome::NotStored { current: None },
            };
        };
        let (owner, token, deadline, ttl) = (hold.owner.clone(), hold.token, hold.deadline, hold.ttl);
        let stores = match &set.condition {
            SetCondition::Always | SetCondition::IfPresent => true,
            SetCondition::IfAbsent => false,
            SetCondition::IfEqual(value) => *value == owner,
            SetCondition::IfNotEqual(value) => *value != owner,
        };
        if !stores {
            return Outcome::NotStored { current: Some(owner) };
        }
        let until = match set.expiry {
            SetExpiry::Keep => Until { deadline, ttl },
            SetExpiry::Never => Until {
                deadline: Timestamp::NEVER,
                ttl: None,
            },
            SetExpiry::In(ttl) => Until {
                deadline: self.now.after(ttl),
                ttl: Some(ttl),
            },
        };
        if proves_ownership(&set.condition) && set.value == owner {
            // A deadline that is kept stays the word of whoever set it.
            if set.expiry != SetExpiry::Keep {
                self.leases
                    .set_deadline(slot, until.deadline, until.ttl, DeadlineSetBy::Holder);
            }
            return Outcome::Stored {
                token,
                previous: Some(owner),
            };
        }
        self.supersede((slot, owner), &set.value, until, effects)
    }

    fn set_new(&mut self, set: &Set, slot: Option<Slot>, effects: &mut Vec<Effect>) -> Outcome {
        let token = match self.admit_lease(slot, &set.key, set.value.as_bytes().len()) {
            Ok(token) => token,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        let ttl = match set.expiry {
            SetExpiry::In(ttl) => Some(ttl),
            SetExpiry::Never | SetExpiry::Keep => None,
        };
        let deadline = ttl.map_or(Timestamp::NEVER, |ttl| self.now.after(ttl));
        let slot = slot.unwrap_or_else(|| self.leases.find_or_make(&set.key));
        let grant = Grant {
            owner: set.value.clone(),
            token,
            deadline,
            ttl,
            metadata: None,
        };
        self.put_grant(slot, grant, effects);
        Outcome::Stored {
            token,
            previous: None,
        }
    }

    /// The key passes to the new value at once; who waits for it goes on waiting.
    fn supersede(
        &mut self,
        (slot, previous): (Slot, OwnerId),
        value: &OwnerId,
        Until { deadline, ttl }: Until,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let before = self.leases.hold(slot).map_or(0, Hold::bytes);
        let more = value.as_bytes().len().saturating_sub(before);
        if more > 0
            && let Err(refusal) = self.check_limit(LimitKind::Bytes, self.bytes(), more)
        {
            return Outcome::Refused(refusal);
        }
        let token = match self.tokens.issue() {
            Ok(token) => token,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        self.end_hold(slot, EndReason::Superseded, effects);
        let grant = Grant {
            owner: value.clone(),
            token,
            deadline,
            ttl,
            metadata: None,
        };
        self.put_grant(slot, grant, effects);
        Outcome::Stored {
            token,
            previous: Some(previous),
        }
    }

    pub(super) fn set_ttl(
        &mut self,
        key: &LeaseKey,
        ttl: Option<Ttl>,
        condition: TtlCondition,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let slot = self.touch(key, effects);
        let Some((slot, hold)) = slot.and_then(|slot| Some((slot, self.leases.hold(slot)?))) else {
            return Outcome::NotFound;
        };
        let (before, by) = (hold.deadline, hold.deadline_set_by);
        let after = ttl.map_or(Timestamp::NEVER, |ttl| self.now.after(ttl));
        let sets = match condition {
            // `PERSIST` of a key without a deadline changes nothing.
            TtlCondition::Always => after != Timestamp::NEVER || before != Timestamp::NEVER,
            TtlCondition::IfPersistent => before == Timestamp::NEVER,
            TtlCondition::IfExpiring => before != Timestamp::NEVER,
            TtlCondition::IfLater => after > before,
            TtlCondition::IfEarlier => after < before,
        };
        if !sets {
            return Outcome::Unchanged;
        }
        let by = if after < before {
            DeadlineSetBy::Override
        } else {
            by
        };
        self.leases.set_deadline(slot, after, ttl, by);
        Outcome::TtlSet
    }
}

const fn proves_ownership(condition: &SetCondition) -> bool {
    match condition {
        SetCondition::IfPresent | SetCondition::IfEqual(_) => true,
        SetCondition::Always | SetCondition::IfAbsent | SetCondition::IfNotEqual(_) => false,
    }
}
