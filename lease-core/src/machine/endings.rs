//! Why a token is over, for the holder who asks later.
//!
//! A memory for messages, not for safety: it drops its oldest when it is full, and the answer is then `unknown`.

use std::collections::VecDeque;

use super::LeaseKey;
use super::index::{Index, KeyHash};
use super::outcome::EndReason;
use super::slab::{Slab, SlabView, Slot};
use crate::types::{FenceToken, Timestamp};

/// One grant that is over.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Ending {
    pub(super) key: LeaseKey,
    pub(super) token: FenceToken,
    pub(super) reason: EndReason,
    pub(super) at: Timestamp,
    /// Counts the endings, so that replicas forget in the same order.
    pub(super) sequence: u64,
}

/// The grants that are over, oldest first.
#[derive(Debug, Clone)]
pub(super) struct Endings {
    endings: Slab<Ending>,
    by_token: Index,
    order: VecDeque<Slot>,
    last_sequence: u64,
    bytes: usize,
}

impl Ending {
    /// Bytes of the name and of the operator's words.
    pub(super) fn bytes(&self) -> usize {
        let reason = match &self.reason {
            EndReason::Forced { reason } => reason.len(),
            EndReason::Expired
            | EndReason::Released
            | EndReason::Superseded
            | EndReason::Overridden
            | EndReason::Orphaned
            | EndReason::Cancelled
            | EndReason::Unknown => 0,
        };
        self.key.name.as_bytes().len().saturating_add(reason)
    }
}

impl Endings {
    pub(super) fn new() -> Self {
        Self {
            endings: Slab::new(),
            by_token: Index::new(),
            order: VecDeque::new(),
            last_sequence: 0,
            bytes: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.endings.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn find(&self, key: &LeaseKey, token: FenceToken) -> Option<&Ending> {
        let is_it = |slot| {
            self.endings
                .get(slot)
                .is_some_and(|ending| ending.token == token && ending.key == *key)
        };
        self.endings
            .get(self.by_token.find(self.by_token.hasher().hash(token), is_it)?)
    }

    pub(super) fn record(&mut self, key: LeaseKey, token: FenceToken, reason: EndReason, at: Timestamp) {
        let sequence = self.last_sequence.saturating_add(1);
        self.restore(Ending {
            key,
            token,
            reason,
            at,
            sequence,
        });
    }

    /// Puts back what a snapshot held, in the order of the endings.
    pub(super) fn restore(&mut self, ending: Ending) {
        self.last_sequence = self.last_sequence.max(ending.sequence);
        self.bytes = self.bytes.saturating_add(ending.bytes());
        let Self {
            endings,
            by_token,
            order,
            ..
        } = self;
        let hasher = by_token.hasher();
        let hash = hasher.hash(ending.token);
        let slot = endings.insert(ending);
        by_token.insert(hash, slot, |slot| {
            endings
                .get(slot)
                .map_or(KeyHash::NONE, |ending| hasher.hash(ending.token))
        });
        order.push_back(slot);
    }

    /// Forgets at most `most` endings before `horizon`.
    pub(super) fn prune(&mut self, horizon: Timestamp, most: usize) {
        for _ in 0..most {
            let Some(slot) = self.order.front() else { return };
            if self.endings.get(*slot).is_some_and(|ending| ending.at >= horizon) {
                return;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(slot) = self.order.pop_front() else {
            return;
        };
        if let Some(ending) = self.endings.remove(slot) {
            let hash = self.by_token.hasher().hash(ending.token);
            self.by_token.remove(hash, slot);
            self.bytes = self.bytes.saturating_sub(ending.bytes());
        }
    }

    /// Forgets at most `most` of the oldest endings above `keep` endings or `keep_bytes` bytes.
    pub(super) fn prune_to(&mut self, keep: usize, keep_bytes: usize, most: usize) {
        for _ in 0..most {
            if self.endings.len() <= keep && self.bytes <= keep_bytes {
                return;
            }
            self.forget_oldest();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Ending)> {
        self.endings.iter()
    }

    pub(super) const fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    pub(super) fn restore_last_sequence(&mut self, sequence: u64) {
        self.last_sequence = self.last_sequence.max(sequence);
    }

    pub(super) fn index_lens(&self) -> (usize, usize) {
        (self.by_token.len(), self.order.len())
    }

    pub(super) fn view(&self) -> SlabView<Ending> {
        self.endings.view()
    }
}
