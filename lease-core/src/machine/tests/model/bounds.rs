//! What is there, and how much of it may be.

use super::{Lease, Model, Over, Waiting};
use std::collections::BTreeSet;

use crate::limits::ISSUED_TOKEN_MAX;
use crate::machine::{Holder, LeaseKey, LimitKind, Refusal};
use crate::types::{FenceToken, Metadata, OwnerId, RequestId, Timestamp};

impl Model {
    pub(super) fn holder(&self, key: &LeaseKey) -> Option<Holder> {
        let lease = self.leases.get(key)?;
        Some(Holder {
            token: lease.token,
            owner: lease.owner.clone(),
            remaining_ms: self.remaining_ms(lease),
            held_for_ms: self.now.millis_since(lease.since),
            waiters: self.waiters_of(key),
        })
    }

    pub(super) fn remaining_ms(&self, lease: &Lease) -> Option<u64> {
        (lease.deadline != Timestamp::NEVER).then(|| lease.deadline.millis_since(self.now))
    }

    pub(super) fn waiters_of(&self, key: &LeaseKey) -> u64 {
        self.waits.iter().filter(|wait| wait.key == *key).count() as u64
    }

    pub(super) fn waiting(&self, key: &LeaseKey, owner: &OwnerId, id: &RequestId) -> Option<usize> {
        let is_it =
            |wait: &Waiting| wait.key == *key && wait.owner == *owner && wait.request.as_ref() == Some(id);
        self.waits.iter().position(is_it)
    }

    pub(super) fn over(&self, key: &LeaseKey, owner: &OwnerId, id: &RequestId) -> Option<&Over> {
        self.over
            .iter()
            .find(|over| over.key == *key && over.owner == *owner && over.id == *id)
    }

    pub(super) fn requests(&self) -> usize {
        let held = self
            .leases
            .values()
            .filter(|lease| lease.request.is_some())
            .count();
        let waiting = self.waits.iter().filter(|wait| wait.request.is_some()).count();
        held + waiting + self.over.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let mut names: BTreeSet<&LeaseKey> = self.leases.keys().collect();
        names.extend(self.later.iter().flatten());
        let mut bytes = 0;
        for (key, lease) in &self.leases {
            bytes += bytes_of(&lease.owner, lease.metadata.as_ref());
            let id = lease.request.as_ref();
            bytes += id.map_or(0, |id| request_bytes(key, &lease.owner, id));
        }
        for wait in &self.waits {
            names.insert(&wait.key);
            bytes += bytes_of(&wait.owner, wait.metadata.as_ref());
            let id = wait.request.as_ref();
            bytes += id.map_or(0, |id| request_bytes(&wait.key, &wait.owner, id));
        }
        for over in &self.over {
            bytes += request_bytes(&over.key, &over.owner, &over.id);
        }
        bytes + names.iter().map(|key| key.name.as_bytes().len()).sum::<usize>()
    }

    pub(super) fn room(&self, kind: LimitKind, used: usize, more: usize) -> Result<(), Refusal> {
        let max = match kind {
            LimitKind::Leases => self.limits.leases_max,
            LimitKind::Bytes => self.limits.bytes_max,
            LimitKind::Waiters => self.limits.waiters_max,
            LimitKind::WaitersPerName => self.limits.waiters_per_name_max,
            LimitKind::Requests => self.limits.requests_max,
        };
        let fits = (used + more) as u64 <= max;
        if fits {
            Ok(())
        } else {
            Err(Refusal::Limit { kind, max })
        }
    }

    pub(super) fn admit_lease(&mut self, key: &LeaseKey, bytes: usize) -> Result<FenceToken, Refusal> {
        let name = if self.is_known(key) {
            0
        } else {
            key.name.as_bytes().len()
        };
        self.room(LimitKind::Leases, self.leases.len(), 1)?;
        self.room(LimitKind::Bytes, self.bytes(), bytes + name)?;
        self.issue()
    }

    pub(super) fn issue(&mut self) -> Result<FenceToken, Refusal> {
        let last = self.last_token.ok_or(Refusal::NoTokenFloor)?;
        if last >= ISSUED_TOKEN_MAX {
            return Err(Refusal::TokensExhausted);
        }
        self.last_token = Some(last + 1);
        Ok(FenceToken::new(last + 1).unwrap())
    }
}

pub(super) fn bytes_of(owner: &OwnerId, metadata: Option<&Metadata>) -> usize {
    owner.as_bytes().len() + metadata.map_or(0, |metadata| metadata.as_bytes().len())
}

pub(super) fn request_bytes(key: &LeaseKey, owner: &OwnerId, id: &RequestId) -> usize {
    key.name.as_bytes().len() + owner.as_bytes().len() + id.as_bytes().len()
}
