//! Drives the applier: entries in, answers out, snapshots beside.
//!
//! Owns: the applier, the mark up to where it applied, the membership. Everything that touches a file is done where
//! blocking is allowed, so that entries go on being applied while a snapshot is written.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{Stream, StreamExt as _};
use openraft::async_runtime::watch::WatchSender as _;
use openraft::entry::RaftEntry as _;
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::type_config::alias::WatchSenderOf;
use openraft::{AsyncRuntime, OptionalSend, RaftSnapshotBuilder, Snapshot};
use tokio::sync::Notify;

use super::applied::AppliedMark;
use super::applier::Applier;
use super::failure::{FirstFailure, NodeFailure};
use super::leadership::{Anchor, Leading};
use super::retention::Retention;
use super::snapshot::{SnapshotData, SnapshotError, SnapshotStore};
use super::types::{
    Entry, LeaderId, LogId, Payload, Proposal, SnapshotMeta, StoredMembership, Types, next_index,
    size_of_payload,
};
use super::work_gate::{WorkGate, WorkPass};
use crate::runtime::Rt;

/// Entries after which a snapshot is taken however short they were: the index of the log is kept in memory.
const SNAPSHOT_AFTER_ENTRIES: u64 = 1_000_000;

/// Bytes of entries applied in one go, before other tasks of the runtime get their turn.
const APPLY_SLICE_BYTES: usize = 128 * 1_024;

/// How many entries and bytes were applied since the last snapshot was begun.
#[derive(Debug, Default)]
struct SinceSnapshot {
    entries: u64,
    bytes: u64,
    /// The bytes at which a snapshot was asked for; asked again a while later, since Raft may be busy with one.
    asked_at_bytes: Option<u64>,
}

type StartedSender<R, A> =
    WatchSenderOf<Types<R, <A as Applier>::Outcome>, Option<Leading<<R as AsyncRuntime>::Instant>>>;

/// What the state machine shares with the node.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) node: u64,
    /// The leadership that this node knew of at its start: it is never resumed.
    pub(super) restored: Option<LeaderId>,
    pub(super) snapshots: Arc<SnapshotStore>,
    pub(super) failure: FirstFailure,
    pub(super) applied: AppliedMark,
    pub(super) gate: WorkGate,
    /// Bytes of entries after which a snapshot is worth its cost, unless the last snapshot was larger still.
    pub(super) snapshot_after_bytes: u64,
    /// Woken when a snapshot is due.
    pub(super) snapshot_due: Arc<Notify>,
    pub(super) retention: Retention,
}

pub(super) struct StateMachine<R: Rt, A: Applier> {
    applier: A,
    last_applied: Option<LogId>,
    membership: StoredMembership,
    stamp: Option<Anchor<R::Instant>>,
    since_snapshot: SinceSnapshot,
    /// Only a `&mut self` uses it; the mutex makes it shareable, which the runtime's sender need not be.
    started: Mutex<StartedSender<R, A>>,
    around: Surroundings,
}

impl<R: Rt, A: Applier> StateMachine<R, A> {
    pub(super) fn new(applier: A, started: StartedSender<R, A>, around: Surroundings) -> Self {
        Self {
            applier,
            last_applied: None,
            membership: StoredMembership::default(),
            stamp: None,
            since_snapshot: SinceSnapshot::default(),
            started: Mutex::new(started),
            around,
        }
    }

    fn apply_entry(&mut self, entry: Entry) -> Result<Option<A::Outcome>, NodeFailure> {
        let Entry { log_id, payload } = entry;
        self.note_leadership(log_id.leader_id);
        let bytes = size_of_payload(&payload) as u64;
        let outcome = match payload {
            Payload::Blank => None,
            Payload::Normal(proposal) => Some(self.apply_proposal(log_id.index, &proposal)?),
            Payload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(log_id), membership);
                None
            }
        };
        self.last_applied = Some(log_id);
        self.since_snapshot.entries = self.since_snapshot.entries.saturating_add(1);
        self.since_snapshot.bytes = self.since_snapshot.bytes.saturating_add(bytes);
        self.around.retention.note(log_id.index, bytes);
        self.around.applied.set(next_index(Some(&log_id)));
        self.ask_for_snapshot();
        Ok(outcome)
    }

    fn apply_proposal(&mut self, index: u64, proposal: &Proposal) -> Result<A::Outcome, NodeFailure> {
        let applier = &mut self.applier;
        // A panic here would end openraft's task unseen; the node is stopped with its name instead. What the panic
        // left half-done is never looked at again.
        let applied = catch_unwind(AssertUnwindSafe(|| applier.apply(proposal.at, &proposal.body)));
        let outcome = match applied {
            Ok(applied) => applied.map_err(|source| NodeFailure::Apply { index, source })?,
            Err(_) => return Err(NodeFailure::ApplyPanicked { index }),
        };
        // Cluster time never falls, whatever a leader stamped.
        let stamp = self
            .stamp
            .map_or(proposal.at, |before| before.stamp.max(proposal.at));
        let applied_at = R::now();
        self.stamp = Some(Anchor { stamp, applied_at });
        Ok(outcome)
    }

    /// Tells of a leadership of this node at its own first entry.
    fn note_leadership(&mut self, leader: LeaderId) {
        let before = self.last_applied.map(|id| id.leader_id);
        if leader.node_id != self.around.node || Some(leader) <= before.max(self.around.restored) {
            return;
        }
        let leading = Leading {
            id: leader.into(),
            anchor: self.stamp,
        };
        // Nobody listens during a shutdown.
        let _ = self
            .started
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .send(Some(leading));
    }

    fn meta(&self) -> SnapshotMeta {
        SnapshotMeta {
            last_log_id: self.last_applied,
            last_membership: self.membership.clone(),
        }
    }

    /// Asks for a snapshot when one is due: by bytes, since entries differ a thousandfold in size.
    fn ask_for_snapshot(&mut self) {
        let since = &mut self.since_snapshot;
        let after_bytes = self.around.snapshot_after_bytes;
        let again = since
            .asked_at_bytes
            .is_none_or(|asked| since.bytes >= asked.saturating_add(after_bytes / 8));
        let long = since.bytes >= after_bytes || since.entries >= SNAPSHOT_AFTER_ENTRIES;
        if !again || !long {
            return;
        }
        let last_bytes = self
            .around
            .snapshots
            .current()
            .map_or(0, |snapshot| snapshot.bytes);
        if since.bytes >= last_bytes || since.entries >= SNAPSHOT_AFTER_ENTRIES {
            since.asked_at_bytes = Some(since.bytes);
            self.around.snapshot_due.notify_one();
        }
    }

    fn builder(&mut self) -> SnapshotBuilder<R, A> {
        self.since_snapshot = SinceSnapshot::default();
        SnapshotBuilder {
            view: Some((self.applier.view(), self.around.gate.enter())),
            meta: self.meta(),
            stamp: self.stamp,
            snapshots: Arc::clone(&self.around.snapshots),
            failure: self.around.failure.clone(),
        }
    }

    fn fail(&self, failure: NodeFailure) -> io::Error {
        self.around.failure.set(failure.clone());
        failure.into()
    }
}

impl<R: Rt, A: Applier> RaftStateMachine<Types<R, A::Outcome>> for StateMachine<R, A> {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = SnapshotBuilder<R, A>;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.last_applied, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> io::Result<()>
    where
        Strm: Stream<Item = io::Result<EntryResponder<Types<R, A::Outcome>>>> + Unpin + OptionalSend,
    {
        let mut slice_bytes = 0_usize;
        while let Some(item) = entries.next().await {
            let (entry, responder) =
                item.map_err(|error| self.fail(NodeFailure::storage("reading entries to apply", error)))?;
            slice_bytes = slice_bytes.saturating_add(size_of_payload(&entry.payload));
            let index = entry.index();
            let outcome = self.apply_entry(entry).map_err(|failure| {
                tracing::error!(index, %failure, "an entry cannot be applied");
                self.fail(failure)
            })?;
            // Everybody who waits is answered, for entries without commands too.
            if let Some(responder) = responder {
                responder.send(outcome);
            }
            if slice_bytes > APPLY_SLICE_BYTES {
                slice_bytes = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder<R, A> {
        self.builder()
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, data: SnapshotData) -> io::Result<()> {
        let snapshots = Arc::clone(&self.around.snapshots);
        let pass = self.around.gate.enter();
        let adopted_meta = meta.clone();
        let adopted = R::run_blocking(move || {
            let adopted = snapshots.adopt::<A>(&adopted_meta, &data);
            drop(pass);
            adopted
        });
        let (head, state) = adopted.await?.map_err(|error| self.fail(error.into()))?;
        let before = self.applier.replace(state);
        // Freeing a large state takes a while.
        let freed = R::run_blocking(move || drop(before));
        self.last_applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        let applied_at = R::now();
        self.stamp = head.last_stamp().map(|stamp| Anchor { stamp, applied_at });
        self.since_snapshot = SinceSnapshot::default();
        self.around.applied.set(next_index(self.last_applied.as_ref()));
        freed.await
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<CurrentSnapshot>> {
        Ok(self.around.snapshots.current().map(|stored| Snapshot {
            meta: stored.meta,
            snapshot: stored.data,
        }))
    }
}

type CurrentSnapshot = Snapshot<LeaderId, u64, super::types::Member, SnapshotData>;

/// Writes one view down, in a task of its own.
pub(super) struct SnapshotBuilder<R: Rt, A: Applier> {
    view: Option<(A::View, WorkPass)>,
    meta: SnapshotMeta,
    stamp: Option<Anchor<R::Instant>>,
    snapshots: Arc<SnapshotStore>,
    failure: FirstFailure,
}

impl<R: Rt, A: Applier> RaftSnapshotBuilder<Types<R, A::Outcome>> for SnapshotBuilder<R, A> {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> io::Result<CurrentSnapshot> {
        let Some((view, pass)) = self.view.take() else {
            return Err(io::Error::other("a snapshot builder is used once"));
        };
        let snapshots = Arc::clone(&self.snapshots);
        let meta = self.meta.clone();
        let stamp = self.stamp.map(|anchor| anchor.stamp);
        let written = R::run_blocking(move || {
            let written = snapshots.write(&meta, stamp, &view);
            drop(view);
            drop(pass);
            written
        });
        let stored = written.await?.map_err(|error| {
            let failure = NodeFailure::from(error);
            self.failure.set(failure.clone());
            io::Error::from(failure)
        })?;
        Ok(Snapshot {
            meta: stored.meta,
            snapshot: stored.data,
        })
    }
}

impl From<SnapshotError> for NodeFailure {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot {
            source: Arc::new(error),
        }
    }
}
