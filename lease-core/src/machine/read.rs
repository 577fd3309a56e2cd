//! What can be asked of the machine without changing it.
//!
//! An answer that depends on a deadline holds only as of the last entry: whoever serves it compares the deadline with
//! the cluster's time, and commits a tick first if it has passed.

use super::slab::Slot;
use super::token::TokenCounter;
use super::{LeaseKey, LeaseMachine, Limits, MachineVersion};
use crate::limits::LIST_RECORDS_MAX;
use crate::types::{Attachment, Database, FenceToken, LeaseName, Metadata, OwnerId, Timestamp};

/// A lease that stands as of the last entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseInfo {
    /// Its name.
    pub name: LeaseName,
    /// Who holds it.
    pub owner: OwnerId,
    /// The token of the grant.
    pub token: FenceToken,
    /// When it was granted, on the cluster's clock.
    pub granted_at: Timestamp,
    /// When it ends, on the cluster's clock; [`Timestamp::NEVER`] without a deadline.
    pub deadline: Timestamp,
    /// How many stand in the queue.
    pub waiters: u64,
    /// What the holder wants others to see.
    pub metadata: Option<Metadata>,
}

/// A part of the list of leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasePage {
    /// Where the next part starts; 0 after the last.
    pub next_cursor: u32,
    /// The leases of this part, in no particular order.
    pub leases: Vec<LeaseInfo>,
}

/// Counts of what the machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Leases held.
    pub leases: u64,
    /// Callers in all queues.
    pub waiters: u64,
    /// Request ids remembered.
    pub requests: u64,
    /// Reasons of endings remembered.
    pub endings: u64,
    /// Bytes that count towards [`Limits::bytes_max`].
    pub bytes: u64,
    /// The last token issued, or the floor.
    pub last_token: u64,
}

impl LeaseMachine {
    /// The time of the last entry.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// The active version.
    #[must_use]
    pub const fn version(&self) -> MachineVersion {
        self.version
    }

    /// The active bounds.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// When the next wait or lease is due: a tick should carry this stamp. It may lie in the past, if one entry could
    /// not end all that was due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let wait = self.waits.next_deadline().map(|(at, _)| at);
        let lease = self.leases.next_deadline().map(|(at, _)| at);
        wait.into_iter().chain(lease).min()
    }

    /// The lease of a name, if somebody holds it as of the last entry.
    #[must_use]
    pub fn get(&self, key: &LeaseKey) -> Option<LeaseInfo> {
        self.info(self.leases.find(key)?)
    }

    /// The leases of one database whose names start with `prefix`, from `cursor` on (0 at first): at most `count`, at
    /// least one so that each page gets on, and fewer where [`LIST_RECORDS_MAX`] records hold no more.
    ///
    /// A lease that is held all the while is listed exactly once as long as the cursor stays with one node.
    #[must_use]
    pub fn list(&self, database: Database, prefix: &[u8], cursor: u32, count: usize) -> LeasePage {
        let end = self.leases.records().capacity();
        let stop = cursor.saturating_add(LIST_RECORDS_MAX).min(end);
        let mut leases = Vec::new();
        let mut next = cursor;
        while next < stop && leases.len() < count.max(1) {
            let slot = Slot::from_index(next);
            next = next.saturating_add(1);
            let listed = self.leases.get(slot).is_some_and(|record| {
                record.key.database == database && record.key.name.as_bytes().starts_with(prefix)
            });
            leases.extend(listed.then(|| self.info(slot)).flatten());
        }
        LeasePage {
            next_cursor: if next >= end { 0 } else { next },
            leases,
        }
    }

    /// How many leases of one database are held.
    #[must_use]
    pub fn held_in(&self, database: Database) -> u64 {
        self.leases.held_in(database)
    }

    /// Whether a caller with this attachment stands in a queue, its caller gone or not.
    #[must_use]
    pub fn is_waiting(&self, attachment: Attachment) -> bool {
        self.waits.by_attachment(attachment).is_some()
    }

    /// The highest incarnation of a node that the log knows.
    #[must_use]
    pub fn incarnation(&self, node: u64) -> Option<u64> {
        self.incarnations.get(&node).copied()
    }

    /// Whether a token floor was ever raised: before that, nothing can be granted.
    #[must_use]
    pub const fn issues_tokens(&self) -> bool {
        matches!(self.tokens, TokenCounter::Open { .. })
    }

    /// Counts of what is held.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            leases: self.leases.held() as u64,
            waiters: self.waits.len() as u64,
            requests: self.requests.len() as u64,
            endings: self.endings.len() as u64,
            bytes: self.bytes() as u64,
            last_token: self.tokens.last(),
        }
    }

    fn info(&self, slot: Slot) -> Option<LeaseInfo> {
        let record = self.leases.get(slot)?;
        let hold = record.hold.as_ref()?;
        Some(LeaseInfo {
            name: record.key.name.clone(),
            owner: hold.owner.clone(),
            token: hold.token,
            granted_at: hold.granted_at,
            deadline: hold.deadline,
            waiters: u64::from(record.waiters),
            metadata: hold.metadata.clone(),
        })
    }
}
