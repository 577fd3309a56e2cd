//! The names that are held or awaited, and their deadlines in order. An idle name has no record here.

use std::collections::BTreeMap;

use super::LeaseKey;
use super::index::{Index, KeyHash};
use super::slab::{Slab, SlabView, Slot};
use crate::limits::DATABASES_MAX;
use crate::types::{Database, FenceToken, Metadata, OwnerId, Timestamp, Ttl};

/// One name that is held, awaited, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: LeaseKey,
    pub(super) hold: Option<Hold>,
    /// Waits of this name, detached ones included.
    pub(super) waiters: u32,
}

/// One grant that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) owner: OwnerId,
    pub(super) token: FenceToken,
    pub(super) granted_at: Timestamp,
    /// [`Timestamp::NEVER`] without one.
    pub(super) deadline: Timestamp,
    /// The last time to live given, for a renewal that names none.
    pub(super) ttl: Option<Ttl>,
    pub(super) metadata: Option<Metadata>,
    /// The request that was granted, if it had an id. Local to this replica.
    pub(super) request: Option<Slot>,
    pub(super) deadline_set_by: DeadlineSetBy,
}

/// Whose word the deadline is; decides what its passing is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum DeadlineSetBy {
    /// The grant or a renewal.
    Holder,
    /// A `PEXPIRE` that shortened it.
    Override,
}

impl Hold {
    pub(super) fn remaining_ms(&self, now: Timestamp) -> Option<u64> {
        (self.deadline != Timestamp::NEVER).then(|| self.deadline.millis_since(now))
    }

    /// A lease ends *at* its deadline.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.deadline <= now
    }

    pub(super) fn bytes(&self) -> usize {
        let metadata = self
            .metadata
            .as_ref()
            .map_or(0, |metadata| metadata.as_bytes().len());
        self.owner.as_bytes().len().saturating_add(metadata)
    }
}

/// All records.
#[derive(Debug, Clone)]
pub(super) struct Leases {
    records: Slab<Record>,
    by_name: Index,
    /// Ties are broken by the token, on which replicas agree, never by the slot.
    deadlines: BTreeMap<(Timestamp, FenceToken), Slot>,
    held: usize,
    /// Of those, how many in each database.
    held_in: [u64; DATABASES_MAX as usize],
    bytes: usize,
}

impl Leases {
    pub(super) fn new() -> Self {
        Self {
            records: Slab::new(),
            by_name: Index::new(),
            deadlines: BTreeMap::new(),
            held: 0,
            held_in: [0; DATABASES_MAX as usize],
            bytes: 0,
        }
    }

    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) fn held_in(&self, database: Database) -> u64 {
        let held = self.held_in.get(usize::from(database.get()));
        held.copied().unwrap_or(0)
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn find(&self, key: &LeaseKey) -> Option<Slot> {
        let is_it = |slot| {
            self.records
                .get(slot)
                .is_some_and(|record: &Record| record.key == *key)
        };
        self.by_name.find(self.by_name.hasher().hash(key), is_it)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Record> {
        self.records.get(slot)
    }

    pub(super) fn hold(&self, slot: Slot) -> Option<&Hold> {
        self.records.get(slot)?.hold.as_ref()
    }

    /// The record of `key`, made if there is none. Whoever makes one holds or awaits it next.
    pub(super) fn find_or_make(&mut self, key: &LeaseKey) -> Slot {
        if let Some(slot) = self.find(key) {
            return slot;
        }
        self.bytes = self.bytes.saturating_add(key.name.as_bytes().len());
        let slot = self.records.insert(Record {
            key: key.clone(),
            hold: None,
            waiters: 0,
        });
        let Self { records, by_name, .. } = self;
        let hasher = by_name.hasher();
        by_name.insert(hasher.hash(key), slot, |slot| {
            records
                .get(slot)
                .map_or(KeyHash::NONE, |record| hasher.hash(&record.key))
        });
        slot
    }

    /// Takes the record away if nobody holds or awaits it.
    pub(super) fn forget_if_idle(&mut self, slot: Slot) {
        let Some(record) = self.records.get(slot) else {
            return;
        };
        if record.hold.is_some() || record.waiters > 0 {
            return;
        }
        let hash = self.by_name.hasher().hash(&record.key);
        self.bytes = self.bytes.saturating_sub(record.key.name.as_bytes().len());
        self.by_name.remove(hash, slot);
        self.records.remove(slot);
    }

    /// Puts a grant on a record that has none.
    pub(super) fn put_hold(&mut self, slot: Slot, hold: Hold) {
        let Some(record) = self.records.get_mut(slot) else {
            return;
        };
        self.bytes = self.bytes.saturating_add(hold.bytes());
        self.held = self.held.saturating_add(1);
        if let Some(held) = self.held_in.get_mut(usize::from(record.key.database.get())) {
            *held = held.saturating_add(1);
        }
        if hold.deadline != Timestamp::NEVER {
            self.deadlines.insert((hold.deadline, hold.token), slot);
        }
        record.hold = Some(hold);
    }

    /// Takes the grant off a record.
    pub(super) fn take_hold(&mut self, slot: Slot) -> Option<Hold> {
        let record = self.records.get_mut(slot)?;
        let hold = record.hold.take()?;
        if let Some(held) = self.held_in.get_mut(usize::from(record.key.database.get())) {
            *held = held.saturating_sub(1);
        }
        self.bytes = self.bytes.saturating_sub(hold.bytes());
        self.held = self.held.saturating_sub(1);
        self.deadlines.remove(&(hold.deadline, hold.token));
        Some(hold)
    }

    /// Moves the deadline of a grant; `ttl` is what it counts from.
    pub(super) fn set_deadline(
        &mut self,
        slot: Slot,
        deadline: Timestamp,
        ttl: Option<Ttl>,
        by: DeadlineSetBy,
    ) {
        let Some(hold) = self.records.get_mut(slot).and_then(|record| record.hold.as_mut()) else {
            return;
        };
        self.deadlines.remove(&(hold.deadline, hold.token));
        hold.deadline = deadline;
        hold.ttl = ttl;
        hold.deadline_set_by = by;
        if deadline != Timestamp::NEVER {
            self.deadlines.insert((deadline, hold.token), slot);
        }
    }

    /// Ties a grant to the request that it answers.
    pub(super) fn link_request(&mut self, slot: Slot, request: Slot) {
        if let Some(hold) = self.records.get_mut(slot).and_then(|record| record.hold.as_mut()) {
            hold.request = Some(request);
        }
    }

    pub(super) fn add_waiter(&mut self, slot: Slot) {
        if let Some(record) = self.records.get_mut(slot) {
            record.waiters = record.waiters.saturating_add(1);
        }
    }

    pub(super) fn drop_waiter(&mut self, slot: Slot) {
        if let Some(record) = self.records.get_mut(slot) {
            record.waiters = record.waiters.saturating_sub(1);
        }
    }

    /// Bytes that a waiting caller takes, beside those of the records.
    pub(super) const fn charge(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The counterpart of [`Leases::charge`].
    pub(super) const fn discharge(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(super) fn next_deadline(&self) -> Option<(Timestamp, Slot)> {
        self.deadlines
            .first_key_value()
            .map(|((at, _), slot)| (*at, *slot))
    }

    pub(super) const fn records(&self) -> &Slab<Record> {
        &self.records
    }

    pub(super) const fn deadlines(&self) -> &BTreeMap<(Timestamp, FenceToken), Slot> {
        &self.deadlines
    }

    pub(super) fn index_len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn view(&self) -> SlabView<Record> {
        self.records.view()
    }
}
