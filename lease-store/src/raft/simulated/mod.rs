//! The disk of a simulated node: what is on it, what was written and not synced yet, and how it misbehaves.
//!
//! It survives the crash of its node, with all that was synced and, by chance, a part of what was not. Snapshots are put
//! in place whole or not at all, as their files are; the log is what [`log`] writes here.

pub(super) mod log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openraft::entry::RaftEntry as _;

use super::snapshot::SnapshotStore;
use super::types::{Entry, LogId, Vote, next_index};

/// A disk. Clones share it.
#[derive(Clone)]
pub struct SimulatedDisk {
    shared: Arc<Mutex<Disk>>,
    snapshots: Arc<SnapshotStore>,
}

struct Disk {
    /// The small files of the data directory, which are renamed into place, and so always whole.
    notes: BTreeMap<&'static str, String>,
    synced: LogState,
    /// Written after that, oldest first.
    unsynced: VecDeque<Record>,
    behaviour: DiskBehaviour,
    counts: DiskCounts,
}

/// How a disk behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskBehaviour {
    /// Shortest time that a sync takes.
    pub sync_min: Duration,
    /// Longest time that a sync takes.
    pub sync_max: Duration,
    /// What comes of syncs.
    pub syncs: Syncs,
}

/// What comes of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncs {
    /// It succeeds.
    Succeed,
    /// It fails: what it was for may or may not be on the disk.
    Fail,
}

/// What has happened to a disk so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounts {
    /// Syncs that succeeded.
    pub synced: u64,
    /// Syncs that failed.
    pub failed: u64,
    /// Records that a crash took away.
    pub lost: u64,
    /// Records that a crash found not synced, and left.
    pub spared: u64,
}

/// One record of the log.
#[derive(Debug, Clone)]
pub(super) enum Record {
    Entry(Entry),
    Commit(LogId),
    Vote(Vote),
    TruncateAfter(Option<LogId>),
    Purge(LogId),
}

/// The log as its records make it.
#[derive(Debug, Clone, Default)]
pub(super) struct LogState {
    pub(super) entries: BTreeMap<u64, Entry>,
    pub(super) purged: Option<LogId>,
    pub(super) vote: Option<Vote>,
    pub(super) committed: Option<LogId>,
}

impl Default for DiskBehaviour {
    /// Fast, and without errors.
    fn default() -> Self {
        Self {
            sync_min: Duration::from_micros(100),
            sync_max: Duration::from_millis(2),
            syncs: Syncs::Succeed,
        }
    }
}

impl SimulatedDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        let disk = Disk {
            notes: BTreeMap::new(),
            synced: LogState::default(),
            unsynced: VecDeque::new(),
            behaviour: DiskBehaviour::default(),
            counts: DiskCounts::default(),
        };
        Self {
            shared: Arc::new(Mutex::new(disk)),
            snapshots: Arc::new(SnapshotStore::in_memory()),
        }
    }

    /// Has it behave like this from now on.
    pub fn behave(&self, behaviour: DiskBehaviour) {
        self.lock().behaviour = behaviour;
    }

    /// What has happened to it so far.
    #[must_use]
    pub fn counts(&self) -> DiskCounts {
        self.lock().counts
    }

    /// Records that are written and not synced.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        self.lock().unsynced.len()
    }

    /// The power fails: of what was not synced, the first `kept` records stay, and the rest is lost. The node must have
    /// crashed before.
    pub fn lose_unsynced(&self, kept: usize) {
        let mut disk = self.lock();
        let unsynced = std::mem::take(&mut disk.unsynced);
        for (position, record) in unsynced.into_iter().enumerate() {
            if position < kept {
                disk.synced.apply(&record);
                disk.counts.spared = disk.counts.spared.saturating_add(1);
            } else {
                disk.counts.lost = disk.counts.lost.saturating_add(1);
            }
        }
    }

    pub(super) fn snapshots(&self) -> Arc<SnapshotStore> {
        Arc::clone(&self.snapshots)
    }

    pub(super) fn note(&self, name: &'static str) -> Option<String> {
        self.lock().notes.get(name).cloned()
    }

    pub(super) fn put_note(&self, name: &'static str, text: String) {
        self.lock().notes.insert(name, text);
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        // No code under this lock can panic half-way through a change.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    /// The oldest records reach the disk for good.
    fn sync(&mut self, records: usize) {
        for record in self.unsynced.drain(..records.min(self.unsynced.len())) {
            self.synced.apply(&record);
        }
        self.counts.synced = self.counts.synced.saturating_add(1);
    }
}

impl LogState {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Entry(entry) => drop(self.entries.insert(entry.index(), entry.clone())),
            Record::Commit(committed) => self.committed = Some(*committed),
            Record::Vote(vote) => self.vote = Some(*vote),
            Record::TruncateAfter(keep) => drop(self.entries.split_off(&next_index(keep.as_ref()))),
            Record::Purge(upto) => {
                self.entries = self.entries.split_off(&next_index(Some(upto)));
                self.purged = self.purged.max(Some(*upto));
            }
        }
    }

    pub(super) fn last(&self) -> Option<LogId> {
        let last = self.entries.last_key_value();
        last.map(|(_, entry)| entry.log_id()).max(self.purged)
    }
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDisk").finish_non_exhaustive()
    }
}
