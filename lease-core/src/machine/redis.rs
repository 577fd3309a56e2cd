//! The commands of the Redis face: a key is a lease, its value is the owner.

use super::acquire::Grant;
use super::leases::{DeadlineSetBy, Hold};
use super::outcome::{Effect, EndReason, LimitKind, Outcome};
use super::slab::Slot;
use super::{LeaseKey, LeaseMachine, Set, SetExpiry, TtlCondition};
use crate::types::{OwnerId, Timestamp, Ttl};

/// A deadline, and the time to live that it counts from.
struct Until {
    deadline: Timestamp,
    ttl: Option<Ttl>,
}

impl LeaseMachine {
    /// `SET` with a condition that proves ownership (`XX`, `IFEQ`, `IFDEQ`) and the value that is stored is a renewal: the same
    /// token. Lock libraries extend that way. Every other `SET` that stores is a grant: a new token.
    pub(super) fn set(&mut self, set: &Set, effects: &mut Vec<Effect>) -> Outcome {
        let outcome = self.store_value(set, effects);
        if set.expiry == SetExpiry::Over {
            // Ended here, and not by whatever comes next.
            self.touch(&set.key, effects);
        }
        outcome
    }

    fn store_value(&mut self, set: &Set, effects: &mut Vec<Effect>) -> Outcome {
        let slot = self.touch(&set.key, effects);
        let standing = slot.and_then(|slot| Some((slot, self.leases.hold(slot)?)));
        let Some((slot, hold)) = standing else {
            return if set.condition.holds(None) {
                self.set_new(set, slot, effects)
            } else {
                Outcome::NotStored { current: None }
            };
        };
        let (owner, token, deadline, ttl) = (hold.owner.clone(), hold.token, hold.deadline, hold.ttl);
        if !set.condition.holds(Some(&owner)) {
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
            SetExpiry::Over => Until {
                deadline: self.now,
                ttl: None,
            },
        };
        if set.condition.proves_ownership() && set.value == owner {
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
        let (deadline, ttl) = match set.expiry {
            SetExpiry::In(ttl) => (self.now.after(ttl), Some(ttl)),
            SetExpiry::Over => (self.now, None),
            SetExpiry::Never | SetExpiry::Keep => (Timestamp::NEVER, None),
        };
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
        if !condition.holds(before, after) {
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

impl TtlCondition {
    /// Whether a deadline is to be moved.
    pub(super) fn holds(self, before: Timestamp, after: Timestamp) -> bool {
        match self {
            // `PERSIST` of a key without a deadline changes nothing.
            Self::Always => after != Timestamp::NEVER || before != Timestamp::NEVER,
            Self::IfPersistent => before == Timestamp::NEVER,
            Self::IfExpiring => before != Timestamp::NEVER,
            Self::IfLater => after > before,
            Self::IfEarlier => after < before,
            Self::IfExpiringAndEarlier => before != Timestamp::NEVER && after < before,
        }
    }
}
