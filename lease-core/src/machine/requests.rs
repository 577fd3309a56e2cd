//! Which request got which lease, so that the retry of a lost answer gets the same token, and never a second grant.
//!
//! A request is remembered while it waits or holds, and for a stated time after its end. Nothing is dropped early:
//! when this memory is full, new requests are refused.

use std::collections::VecDeque;

use super::LeaseKey;
use super::index::{Index, KeyHash};
use super::outcome::EndReason;
use super::slab::{Slab, SlabView, Slot};
use crate::types::{FenceToken, OwnerId, RequestId, Timestamp};

/// What a request id is scoped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequestKey {
    pub(super) key: LeaseKey,
    pub(super) owner: OwnerId,
    pub(super) id: RequestId,
}

impl RequestKey {
    pub(super) fn bytes(&self) -> usize {
        let (name, owner) = (self.key.name.as_bytes().len(), self.owner.as_bytes().len());
        name.saturating_add(owner)
            .saturating_add(self.id.as_bytes().len())
    }
}

/// One request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) key: RequestKey,
    pub(super) state: RequestState,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestState {
    /// It stands in the queue. The slot is local to this replica.
    Waiting(Slot),
    /// It holds the lease.
    Held(FenceToken),
    /// It is over.
    Over(Over),
}

/// A request that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Over {
    /// `None` if it was given up before any grant.
    pub(super) token: Option<FenceToken>,
    pub(super) reason: EndReason,
    pub(super) at: Timestamp,
    /// Counts the ends, so that replicas forget in the same order.
    pub(super) sequence: u64,
}

/// All requests that are remembered.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    requests: Slab<Request>,
    by_key: Index,
    /// The ones that are over, oldest first.
    over: VecDeque<Slot>,
    last_sequence: u64,
    bytes: usize,
}

impl Requests {
    pub(super) fn new() -> Self {
        Self {
            requests: Slab::new(),
            by_key: Index::new(),
            over: VecDeque::new(),
            last_sequence: 0,
            bytes: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn find(&self, key: &RequestKey) -> Option<Slot> {
        let is_it = |slot| {
            self.requests
                .get(slot)
                .is_some_and(|request: &Request| request.key == *key)
        };
        self.by_key.find(self.by_key.hasher().hash(key), is_it)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Request> {
        self.requests.get(slot)
    }

    pub(super) fn insert(&mut self, key: RequestKey, state: RequestState) -> Slot {
        self.bytes = self.bytes.saturating_add(key.bytes());
        let Self { requests, by_key, .. } = self;
        let hasher = by_key.hasher();
        let hash = hasher.hash(&key);
        let slot = requests.insert(Request { key, state });
        by_key.insert(hash, slot, |slot| {
            requests
                .get(slot)
                .map_or(KeyHash::NONE, |request| hasher.hash(&request.key))
        });
        slot
    }

    pub(super) fn set_held(&mut self, slot: Slot, token: FenceToken) {
        if let Some(request) = self.requests.get_mut(slot) {
            request.state = RequestState::Held(token);
        }
    }

    pub(super) fn set_waiting(&mut self, slot: Slot, wait: Slot) {
        if let Some(request) = self.requests.get_mut(slot) {
            request.state = RequestState::Waiting(wait);
        }
    }

    pub(super) fn set_over(
        &mut self,
        slot: Slot,
        token: Option<FenceToken>,
        reason: EndReason,
        at: Timestamp,
    ) {
        let sequence = self.last_sequence.saturating_add(1);
        if let Some(request) = self.requests.get_mut(slot) {
            request.state = RequestState::Over(Over {
                token,
                reason,
                at,
                sequence,
            });
            self.last_sequence = sequence;
            self.over.push_back(slot);
        }
    }

    /// For a request that was never granted, and for one whose time of memory is over.
    pub(super) fn forget(&mut self, slot: Slot) {
        if let Some(request) = self.requests.remove(slot) {
            let hash = self.by_key.hasher().hash(&request.key);
            self.by_key.remove(hash, slot);
            self.bytes = self.bytes.saturating_sub(request.key.bytes());
        }
    }

    /// Forgets at most `most` requests that ended before `horizon`.
    pub(super) fn prune(&mut self, horizon: Timestamp, most: usize) {
        for _ in 0..most {
            let Some(slot) = self.over.front().copied() else {
                return;
            };
            if self.over_at(slot).is_some_and(|at| at >= horizon) {
                return;
            }
            self.over.pop_front();
            self.forget(slot);
        }
    }

    pub(super) fn over_at(&self, slot: Slot) -> Option<Timestamp> {
        match &self.requests.get(slot)?.state {
            RequestState::Over(over) => Some(over.at),
            RequestState::Waiting(_) | RequestState::Held(_) => None,
        }
    }

    pub(super) const fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Puts back what a snapshot held. Requests that are over come in the order of their ends.
    pub(super) fn restore_over(&mut self, key: RequestKey, over: Over) {
        self.last_sequence = self.last_sequence.max(over.sequence);
        let slot = self.insert(key, RequestState::Over(over));
        self.over.push_back(slot);
    }

    pub(super) fn restore_last_sequence(&mut self, sequence: u64) {
        self.last_sequence = self.last_sequence.max(sequence);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Request)> {
        self.requests.iter()
    }

    pub(super) fn index_len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn over_len(&self) -> usize {
        self.over.len()
    }

    pub(super) fn view(&self) -> SlabView<Request> {
        self.requests.view()
    }
}
