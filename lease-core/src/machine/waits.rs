//! Who waits for a name, in order of arrival, and until when.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::slab::{Slab, SlabView, Slot};
use crate::types::{Attachment, Metadata, OwnerId, Timestamp, Ttl};

/// The place of a wait among all: rises with arrival, kept by the caller's retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct WaitId(u64);

impl WaitId {
    const FIRST: Self = Self(0);
    const LAST: Self = Self(u64::MAX);

    pub(super) const fn get(self) -> u64 {
        self.0
    }

    const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One caller in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) id: WaitId,
    /// The name it waits for. Local to this replica.
    pub(super) record: Slot,
    pub(super) owner: OwnerId,
    pub(super) ttl: Ttl,
    pub(super) metadata: Option<Metadata>,
    /// Its request, if it has an id. Local to this replica.
    pub(super) request: Option<Slot>,
    pub(super) attachment: Attachment,
    /// The entry that carried the attempt that now waits.
    pub(super) attempt_at: Timestamp,
    pub(super) deadline: Timestamp,
    pub(super) presence: Presence,
}

/// Whether the caller is there to be granted anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Presence {
    /// Parked at a living process.
    Attached,
    /// Gone; its place is kept for its retry, and it is not granted meanwhile.
    Detached,
}

impl Wait {
    pub(super) fn bytes(&self) -> usize {
        let metadata = self
            .metadata
            .as_ref()
            .map_or(0, |metadata| metadata.as_bytes().len());
        self.owner.as_bytes().len().saturating_add(metadata)
    }
}

/// All queues.
#[derive(Debug, Clone)]
pub(super) struct Waits {
    waits: Slab<Wait>,
    /// The attached ones of each name, in order. Only ever ranged within one name: slots decide nothing.
    queues: BTreeMap<(Slot, WaitId), Slot>,
    deadlines: BTreeMap<(Timestamp, WaitId), Slot>,
    attachments: BTreeMap<Attachment, Slot>,
    last_id: WaitId,
}

impl Waits {
    pub(super) const fn new() -> Self {
        Self {
            waits: Slab::new(),
            queues: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            attachments: BTreeMap::new(),
            last_id: WaitId::FIRST,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.waits.len()
    }

    pub(super) const fn issue_id(&mut self) -> WaitId {
        self.last_id = self.last_id.next();
        self.last_id
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Wait> {
        self.waits.get(slot)
    }

    pub(super) fn by_attachment(&self, attachment: Attachment) -> Option<Slot> {
        self.attachments.get(&attachment).copied()
    }

    /// The wait that is next in line for a name, detached ones passed over.
    pub(super) fn head(&self, record: Slot) -> Option<Slot> {
        let range = (
            Bound::Included((record, WaitId::FIRST)),
            Bound::Included((record, WaitId::LAST)),
        );
        self.queues.range(range).next().map(|(_, slot)| *slot)
    }

    pub(super) fn insert(&mut self, wait: Wait) -> Slot {
        let (id, record, deadline, attachment) = (wait.id, wait.record, wait.deadline, wait.attachment);
        let presence = wait.presence;
        let slot = self.waits.insert(wait);
        self.deadlines.insert((deadline, id), slot);
        self.attachments.insert(attachment, slot);
        if presence == Presence::Attached {
            self.queues.insert((record, id), slot);
        }
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Wait> {
        let wait = self.waits.remove(slot)?;
        self.queues.remove(&(wait.record, wait.id));
        self.deadlines.remove(&(wait.deadline, wait.id));
        self.attachments.remove(&wait.attachment);
        Some(wait)
    }

    /// The same place in the queue for another attempt.
    pub(super) fn attach(
        &mut self,
        slot: Slot,
        attachment: Attachment,
        attempt_at: Timestamp,
        deadline: Timestamp,
    ) {
        let Some(wait) = self.waits.get_mut(slot) else {
            return;
        };
        self.attachments.remove(&wait.attachment);
        self.attachments.insert(attachment, slot);
        self.deadlines.remove(&(wait.deadline, wait.id));
        self.deadlines.insert((deadline, wait.id), slot);
        self.queues.insert((wait.record, wait.id), slot);
        wait.attachment = attachment;
        wait.attempt_at = attempt_at;
        wait.deadline = deadline;
        wait.presence = Presence::Attached;
    }

    /// Out of the line, until `deadline` at the latest.
    pub(super) fn detach(&mut self, slot: Slot, deadline: Timestamp) {
        let Some(wait) = self.waits.get_mut(slot) else {
            return;
        };
        self.queues.remove(&(wait.record, wait.id));
        self.deadlines.remove(&(wait.deadline, wait.id));
        wait.deadline = wait.deadline.min(deadline);
        self.deadlines.insert((wait.deadline, wait.id), slot);
        wait.presence = Presence::Detached;
    }

    /// The attachments parked at `node` in an incarnation below `incarnation`.
    pub(super) fn parked_below(&self, node: u64, incarnation: u64) -> Vec<Attachment> {
        let first = Attachment {
            node,
            incarnation: 0,
            number: 0,
        };
        let end = Attachment {
            node,
            incarnation,
            number: 0,
        };
        self.attachments
            .range(first..end)
            .map(|(attachment, _)| *attachment)
            .collect()
    }

    pub(super) fn next_deadline(&self) -> Option<(Timestamp, Slot)> {
        self.deadlines
            .first_key_value()
            .map(|((at, _), slot)| (*at, *slot))
    }

    pub(super) const fn last_id(&self) -> WaitId {
        self.last_id
    }

    pub(super) fn restore_last_id(&mut self, id: WaitId) {
        self.last_id = self.last_id.max(id);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Wait)> {
        self.waits.iter()
    }

    /// Entries in the queues, the deadlines and the attachments.
    pub(super) fn index_lens(&self) -> (usize, usize, usize) {
        (self.queues.len(), self.deadlines.len(), self.attachments.len())
    }

    pub(super) fn view(&self) -> SlabView<Wait> {
        self.waits.view()
    }
}
