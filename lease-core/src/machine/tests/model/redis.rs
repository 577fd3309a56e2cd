//! Keys as Redis sees them.

use super::bounds::bytes_of;
use super::{Lease, Model};
use crate::machine::{
    EndReason, LeaseKey, LimitKind, Outcome, Refusal, Set, SetCondition, SetExpiry, TtlCondition,
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
        let persistent = lease.deadline == Timestamp::NEVER;
        let sets = match condition {
            TtlCondition::Always => !(persistent && ttl.is_none()),
            TtlCondition::IfPersistent => persistent,
            TtlCondition::IfExpiring => !persistent,
            TtlCondition::IfLater => deadline > lease.deadline,
            TtlCondition::IfEarlier => deadline < lease.deadline,
        };
        if !sets {
            return Outcome::Unchanged;
        }
        lease.shortened_by_others |= deadline < lease.deadline;
        lease.deadline = deadline;
        lease.ttl = ttl;
        Outcome::TtlSet
    }

    pub(super) fn set(&mut self, set: &Set) -> Outcome {
        self.touch(&set.key);
        let current = self.leases.get(&set.key).map(|lease| lease.owner.clone());
        let (stores, proves) = match &set.condition {
            SetCondition::Always => (true, false),
            SetCondition::IfAbsent => (current.is_none(), false),
            SetCondition::IfPresent => (current.is_some(), true),
            SetCondition::IfEqual(value) => (current.as_ref() == Some(value), true),
            SetCondition::IfNotEqual(value) => (current.as_ref() != Some(value), false),
        };
        if !stores {
            return Outcome::NotStored { current };
        }
        let now = self.now;
        let old = self.leases.get_mut(&set.key);
        let (deadline, ttl) = match set.expiry {
            SetExpiry::Never => (Timestamp::NEVER, None),
            SetExpiry::In(ttl) => (now.after(ttl), Some(ttl)),
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
