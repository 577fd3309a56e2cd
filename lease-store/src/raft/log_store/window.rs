//! The log as memory knows it: its ends, the vote, and the newest entries.
//!
//! In memory-only mode it is the whole log. On disk it is a cache of bounded size in front of the log thread: Raft
//! reads each entry back soon after it appended it, to send it and to apply it, and finds it here.

use std::collections::VecDeque;

use openraft::entry::RaftEntry as _;

use super::super::types::{Entry, LogId, Vote, next_index, size_of_payload};

#[derive(Debug)]
pub(super) struct Window {
    entries: VecDeque<Entry>,
    /// The index of the first entry held here, or of the next one to come.
    first: u64,
    bytes: usize,
    bytes_max: usize,
    pub(super) last: Option<LogId>,
    pub(super) purged: Option<LogId>,
    pub(super) vote: Option<Vote>,
    pub(super) committed: Option<LogId>,
}

/// Where entries asked for are.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// All of them, or the first ones up to the limit.
    Here(Vec<Entry>),
    /// At least the first is older than what is held here: the bounds to read them with, the end exclusive.
    Older { start: u64, end: u64 },
}

/// The ends of a log that is opened again.
#[derive(Debug, Clone, Default)]
pub(in crate::raft) struct Ends {
    pub(in crate::raft) last: Option<LogId>,
    pub(in crate::raft) purged: Option<LogId>,
    pub(in crate::raft) vote: Option<Vote>,
    pub(in crate::raft) committed: Option<LogId>,
}

impl Window {
    pub(super) fn new(ends: Ends, bytes_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            first: next_index(ends.last.as_ref()),
            bytes: 0,
            bytes_max,
            last: ends.last,
            purged: ends.purged,
            vote: ends.vote,
            committed: ends.committed,
        }
    }

    pub(super) fn append(&mut self, entry: Entry) {
        if self.entries.is_empty() {
            self.first = entry.index();
        }
        self.bytes = self.bytes.saturating_add(size_of_payload(&entry.payload));
        self.last = Some(entry.log_id());
        self.entries.push_back(entry);
    }

    /// Lets go of the oldest entries past the bound. Called only once the log thread was handed all of them.
    pub(super) fn evict(&mut self) {
        while self.bytes > self.bytes_max && self.drop_first() {}
    }

    pub(super) fn truncate_after(&mut self, keep: Option<LogId>) {
        let end = next_index(keep.as_ref());
        while self.entries.back().is_some_and(|entry| entry.index() >= end) {
            if let Some(entry) = self.entries.pop_back() {
                self.bytes = self.bytes.saturating_sub(size_of_payload(&entry.payload));
            }
        }
        if self.entries.is_empty() {
            self.first = end;
        }
        self.last = keep.max(self.purged);
    }

    pub(super) fn purge(&mut self, upto: LogId) {
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.index() <= upto.index)
        {
            self.drop_first();
        }
        self.purged = self.purged.max(Some(upto));
        self.last = self.last.max(self.purged);
        if self.entries.is_empty() {
            self.first = next_index(self.last.as_ref());
        }
    }

    /// The entries in `start..end`, as far as the log has them, at most `bytes_max` but at least one.
    pub(super) fn read(&self, start: u64, end: u64, bytes_max: usize) -> Found {
        let start = start.max(next_index(self.purged.as_ref()));
        let end = end.min(next_index(self.last.as_ref()));
        if start >= end {
            return Found::Here(Vec::new());
        }
        if start < self.first {
            return Found::Older { start, end };
        }
        Found::Here(self.collect(start, end, bytes_max))
    }

    /// The same, where the log has nothing older than what is held here.
    pub(super) fn read_all_there_is(&self, start: u64, end: u64, bytes_max: usize) -> Vec<Entry> {
        match self.read(start.max(self.first), end, bytes_max) {
            Found::Here(entries) => entries,
            Found::Older { .. } => Vec::new(),
        }
    }

    fn collect(&self, start: u64, end: u64, bytes_max: usize) -> Vec<Entry> {
        let skip = usize::try_from(start.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let count = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let mut entries = Vec::with_capacity(count.min(self.entries.len()));
        let mut bytes = 0_usize;
        for entry in self.entries.iter().skip(skip).take(count) {
            bytes = bytes.saturating_add(size_of_payload(&entry.payload));
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        entries
    }

    fn drop_first(&mut self) -> bool {
        let Some(entry) = self.entries.pop_front() else {
            return false;
        };
        self.bytes = self.bytes.saturating_sub(size_of_payload(&entry.payload));
        self.first = entry.index().saturating_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use lease_core::Timestamp;

    use super::super::super::types::{LeaderId, Payload, Proposal};
    use super::*;

    fn id(index: u64) -> LogId {
        let leader_id = LeaderId { term: 1, node_id: 1 };
        LogId { leader_id, index }
    }

    fn entry(index: u64, body: usize) -> Entry {
        let proposal = Proposal {
            at: Timestamp::from_millis(index),
            body: Bytes::from(vec![0; body]),
        };
        Entry {
            log_id: id(index),
            payload: Payload::Normal(proposal),
        }
    }

    fn filled(bytes_max: usize) -> Window {
        let mut window = Window::new(Ends::default(), bytes_max);
        for index in 0..10 {
            window.append(entry(index, 100));
        }
        window
    }

    fn indexes(found: Found) -> Vec<u64> {
        match found {
            Found::Here(entries) => entries.iter().map(|entry| entry.index()).collect(),
            Found::Older { .. } => panic!("not held here"),
        }
    }

    #[test]
    fn a_range_is_cut_to_what_the_log_has() {
        let mut window = filled(usize::MAX);
        assert_eq!(indexes(window.read(7, 100, usize::MAX)), [7, 8, 9]);
        window.purge(id(4));
        assert_eq!(indexes(window.read(0, 7, usize::MAX)), [5, 6]);
        assert_eq!(indexes(window.read(20, 30, usize::MAX)), [0_u64; 0]);
    }

    #[test]
    fn a_limit_in_bytes_still_yields_one_entry() {
        let window = filled(usize::MAX);
        assert_eq!(indexes(window.read(2, 9, 1)), [2]);
        assert_eq!(indexes(window.read(2, 9, 500)), [2, 3]);
    }

    #[test]
    fn evicted_entries_are_asked_for_elsewhere() {
        let mut window = filled(500);
        window.evict();
        assert_eq!(window.read(0, 10, usize::MAX), Found::Older { start: 0, end: 10 });
        assert_eq!(indexes(window.read(8, 10, usize::MAX)), [8, 9]);
    }

    #[test]
    fn truncation_is_exclusive_and_the_next_entry_follows_it() {
        let mut window = filled(usize::MAX);
        window.truncate_after(Some(id(6)));
        assert_eq!(window.last, Some(id(6)));
        window.append(entry(7, 1));
        assert_eq!(indexes(window.read(6, 10, usize::MAX)), [6, 7]);
    }

    #[test]
    fn a_purge_past_the_end_moves_the_end() {
        let mut window = filled(usize::MAX);
        window.purge(id(20));
        assert_eq!(window.last, Some(id(20)));
        window.append(entry(21, 1));
        assert_eq!(indexes(window.read(0, 30, usize::MAX)), [21]);
    }
}
