//! Finds a slot by what it holds: a hash index that is looked up only, never walked, so that the order of its buckets
//! can decide nothing.
//!
//! One table of a million entries stalls its writer for a fifth of a second when it grows; many small ones grow one
//! at a time.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use hashbrown::HashTable;

use super::slab::Slot;

/// Tables; a power of two. At a million entries one holds some 4,000 and grows in well under a millisecond.
const SHARDS: usize = 256;

/// The index.
#[derive(Debug, Clone)]
pub(super) struct Index {
    shards: Vec<HashTable<Slot>>,
    hasher: KeyHasher,
}

/// Hashes what the index is asked for. Its seed is fixed: the order of buckets shows nowhere, but a run that is
/// repeated shall take the same steps.
#[derive(Debug, Clone)]
pub(super) struct KeyHasher(FixedState);

impl KeyHasher {
    pub(super) fn hash(&self, key: impl Hash) -> KeyHash {
        KeyHash(self.0.hash_one(key))
    }
}

/// The hash of what a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// Of a slot that holds nothing: no such slot is in an index.
    pub(super) const NONE: Self = Self(0);

    /// The top bits choose the shard; the table inside takes the lowest and the top seven, so these lie between.
    const fn shard(self) -> usize {
        (self.0 >> 40) as usize & (SHARDS - 1)
    }
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            shards: vec![HashTable::new(); SHARDS],
            hasher: KeyHasher(FixedState::with_seed(0)),
        }
    }

    pub(super) fn hasher(&self) -> KeyHasher {
        self.hasher.clone()
    }

    pub(super) fn find(&self, hash: KeyHash, is_it: impl Fn(Slot) -> bool) -> Option<Slot> {
        self.shards
            .get(hash.shard())?
            .find(hash.0, |slot| is_it(*slot))
            .copied()
    }

    /// `hash_of` is asked for the entries of one shard when that shard grows.
    pub(super) fn insert(&mut self, hash: KeyHash, slot: Slot, hash_of: impl Fn(Slot) -> KeyHash) {
        if let Some(shard) = self.shards.get_mut(hash.shard()) {
            shard.insert_unique(hash.0, slot, |slot| hash_of(*slot).0);
        }
    }

    pub(super) fn remove(&mut self, hash: KeyHash, slot: Slot) {
        if let Some(shard) = self.shards.get_mut(hash.shard())
            && let Ok(entry) = shard.find_entry(hash.0, |found| *found == slot)
        {
            entry.remove();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(HashTable::len).sum()
    }
}
