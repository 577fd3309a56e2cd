//! Which entries behind a snapshot have become too many bytes to keep for members that are behind.
//!
//! Raft keeps a number of entries; this keeps that number from meaning gigabytes where entries are large. It counts what
//! is applied in this life: whatever an earlier one left lies below all of that, and goes first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries are counted in groups of so many bytes.
const GROUP_BYTES: u64 = 1_024 * 1_024;

/// Entries that stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    last_index: u64,
    bytes: u64,
}

/// The newest entries, as many as may be kept.
#[derive(Debug)]
pub(super) struct Retention {
    bytes_max: u64,
    groups: VecDeque<Group>,
    bytes: u64,
    droppable: Droppable,
}

/// Up to where entries may be dropped, once they are in a snapshot.
#[derive(Debug, Clone, Default)]
pub(super) struct Droppable(Arc<AtomicU64>);

impl Droppable {
    /// The last entry that may be dropped.
    pub(super) fn upto(&self) -> Option<u64> {
        self.0.load(Ordering::Acquire).checked_sub(1)
    }
}

impl Retention {
    pub(super) fn new(bytes_max: u64, droppable: Droppable) -> Self {
        Self {
            bytes_max,
            groups: VecDeque::new(),
            bytes: 0,
            droppable,
        }
    }

    /// Counts an entry that was applied.
    pub(super) fn note(&mut self, index: u64, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.groups.back_mut() {
            Some(group) if group.bytes < GROUP_BYTES => {
                group.last_index = index;
                group.bytes = group.bytes.saturating_add(bytes);
            }
            _ => self.groups.push_back(Group {
                last_index: index,
                bytes,
            }),
        }
        while self.bytes > self.bytes_max
            && self.groups.len() > 1
            && let Some(oldest) = self.groups.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            let next = oldest.last_index.saturating_add(1);
            self.droppable.0.store(next, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entries_are_kept_up_to_the_bound() {
        let droppable = Droppable::default();
        let mut retention = Retention::new(4 * GROUP_BYTES, droppable.clone());
        for index in 0..4 {
            retention.note(index, GROUP_BYTES);
        }
        assert_eq!(droppable.upto(), None);
        retention.note(4, 1);
        assert_eq!(droppable.upto(), Some(0));
        retention.note(5, 3 * GROUP_BYTES);
        assert_eq!(droppable.upto(), Some(3));
        retention.note(6, 100 * GROUP_BYTES);
        assert_eq!(droppable.upto(), Some(5), "the newest one always stays");
    }

    #[test]
    fn many_small_entries_take_few_groups() {
        let mut retention = Retention::new(4 * GROUP_BYTES, Droppable::default());
        (0..100_000).for_each(|index| retention.note(index, 100));
        assert!(retention.groups.len() <= 5, "{}", retention.groups.len());
    }
}
