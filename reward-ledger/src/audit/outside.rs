use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What an outside server says it did: its own books, to be held against the ledger's.
///
/// It is kept in memory: a hash of 16 bytes for each effect.
#[derive(Debug, Clone, Default)]
pub struct OutsideRecords {
    /// How often each key was done.
    effects: BTreeMap<u128, u32>,
}

impl OutsideRecords {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The outside did what the delivery of this [idempotency key](crate::Delivery::idempotency_key) asks for, once more.
    pub fn effect(&mut self, idempotency_key: &str) {
        match self.effects.entry(fingerprint(idempotency_key)) {
            Entry::Occupied(mut times) => *times.get_mut() = times.get().saturating_add(1),
            Entry::Vacant(place) => {
                place.insert(1);
            }
        }
    }

    /// How often it was done.
    pub(super) fn times(&self, idempotency_key: &str) -> u32 {
        self.effects
            .get(&fingerprint(idempotency_key))
            .copied()
            .unwrap_or(0)
    }

    /// Keys that were done.
    pub(super) fn keys(&self) -> u64 {
        self.effects.len() as u64
    }
}

/// FNV-1a of 128 bits: keys are made by this ledger, and two that share a print are not to be expected among 2^50.
///
/// Source: G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, "The FNV Non-Cryptographic Hash Algorithm".
fn fingerprint(key: &str) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    key.bytes()
        .fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
