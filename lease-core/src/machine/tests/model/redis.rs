//! Keys as Redis sees them.

use super::bounds::bytes_of;
use super::{Lease, Model};
use crate::machine::{
    EndReason, LeaseKey, LimitKind, Outcome, Refusal, Set, SetCondition, SetExpiry, TtlCondition, digest,
};
use crate::types::{Timestamp, Ttl};

impl Model {
    pub(super) fn set_ttl(&mut self, key: &LeaseKey, ttl: Option<Ttl>, condition: TtlCondition) -> Outcome {
        self.touch(key);
        let now = self.now;
        let Some(lease) = self.leases.get_mut(key) else {
            return Outcome::NotFound;
        };
        let deadline = ttl.map_or(Timestamp::NEVER, |ttl| now.after(ttl));
        if !moves(condition, lease.deadline, deadline) {
            return Outcome::Unchanged;
        }
        lease.shortened_by_others |= deadline < lease.deadline;
        lease.deadline = deadline;
        lease.ttl = ttl;
        Outcome::TtlSet
    }

    pub(super) fn set(&mut self, set: &Set) -> Outcome {
        let outcome = self.store(set);
        if set.expiry == SetExpiry::Over {
            self.touch(&set.key);
        }
        outcome
    }

    fn store(&mut self, set: &Set) -> Outcome {
        self.touch(&set.key);
        let current = self.leases.get(&set.key).map(|lease| lease.owner.clone());
        let stored = current.as_ref().map(|value| digest(value.as_bytes()));
        let (stores, proves) = match &set.condition {
            SetCondition::Always => (true, false),
            SetCondition::IfAbsent => (current.is_none(), false),
            SetCondition::IfPresent => (current.is_some(), true),
            SetCondition::IfEqual(value) => (current.as_ref() == Some(value), true),
            SetCondition::IfNotEqual(value) => (current.as_ref() != Some(value), false),
            SetCondition::IfDigestEqual(wanted) => (stored == Some(*wanted), true),
            SetCondition::IfDigestNotEqual(unwanted) => (stored != Some(*unwanted), false),
        };
        if !stores {
            return Outcome::NotStored { current };
        }
        let now = self.now;
        let old = self.leases.get_mut(&set.key);
        let (deadline, ttl) = match set.expiry {
            SetExpiry::Never => (Timestamp::NEVER, None),
            SetExpiry::In(ttl) => (now.after(ttl), Some(ttl)),
            SetExpiry::Over => (now, None),
            SetExpiry::Keep => old
                .as_ref()
                .map_or((Timestamp::NEVER, None), |old| (old.deadline, old.ttl)),
        };
        let admitted = match old {
            Some(old) if proves && old.owner == set.value => {
                old.shortened_by_others &= set.expiry == SetExpiry::Keep;
                (old.deadline, old.ttl) = (deadline, ttl);
                let token = old.token;
                return Outcome::Stored {
                    token,
                    previous: current,
                };
            }
            Some(old) => {
                let before = bytes_of(&old.owner, old.metadata.as_ref());
                let more = set.value.as_bytes().len().saturating_sub(before);
                let fits = more == 0 || self.room(LimitKind::Bytes, self.bytes(), more).is_ok();
                if fits {
                    self.issue()
                } else {
                    let (kind, max) = (LimitKind::Bytes, self.limits.bytes_max);
                    Err(Refusal::Limit { kind, max })
                }
            }
            None => self.admit_lease(&set.key, set.value.as_bytes().len()),
        };
        let token = match admitted {
            Ok(token) => token,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        self.end(&set.key, EndReason::Superseded);
        let lease = Lease {
            owner: set.value.clone(),
            token,
            since: now,
            deadline,
            ttl,
            metadata: None,
            request: None,
            shortened_by_others: false,
        };
        self.grant(&set.key, lease);
        Outcome::Stored {
            token,
            previous: current,
        }
    }
}

/// Whether a deadline is moved from one point to another.
pub(super) fn moves(condition: TtlCondition, before: Timestamp, after: Timestamp) -> bool {
    let persistent = before == Timestamp::NEVER;
    match condition {
        TtlCondition::Always => !(persistent && after == Timestamp::NEVER),
        TtlCondition::IfPersistent => persistent,
        TtlCondition::IfExpiring => !persistent,
        TtlCondition::IfLater => after > before,
        TtlCondition::IfEarlier => after < before,
        TtlCondition::IfExpiringAndEarlier => !persistent && after < before,
    }
}
