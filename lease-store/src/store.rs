//! The handle of a running store: what callers may ask, each answer durable before it is given.
//!
//! A change goes through the proposer into the log, and its outcome comes from the machine. A read looks at the machine
//! of this node, after the reader has proven that nothing acknowledged is missing there. It leaves to
//! [`crate::service`] what a client's command means, and to the listeners how clients arrive.

use std::sync::Arc;
use std::time::Duration;

use lease_core::limits::KEYS_PER_CHANGE_MAX;
use lease_core::machine::codec::CodecError;
use lease_core::machine::{Command, KeyCommand, LeaseInfo, LeaseKey, LeaseMachine, Outcome, Stats};
use lease_core::{Attachment, Timestamp};
use tokio::sync::watch;

use crate::error::StoreError;
use crate::events::{Events, Feed, LeaseEvent, Listened};
use crate::keeper::KeeperHandle;
use crate::metrics::Metrics;
use crate::orphans::{IfUndelivered, Orphans};
use crate::proposer::{ProposerHandle, Request};
use crate::raft::failure::NodeFailure;
use crate::reader::ReaderHandle;
use crate::replica::{Node, Replica};
use crate::role::Role;
use crate::runtime::{Rt, Tokio};
use crate::waiters::Waiters;

pub use crate::raft::node::{MemberStatus, NodeStatus, PeerProgress, Standing};

/// A running store. Clones are handles of the same one.
pub type LeaseStore = Store<Tokio>;

/// A running store on a given runtime; see [`LeaseStore`].
#[derive(Debug)]
pub struct Store<R: Rt> {
    parts: Arc<Parts<R>>,
}

/// What a handle reaches.
#[derive(Debug)]
pub(crate) struct Parts<R: Rt> {
    pub(crate) proposer: ProposerHandle<R::Instant>,
    pub(crate) reader: ReaderHandle<R::Instant>,
    pub(crate) replica: Replica,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) events: Arc<Events>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) node: Node<R>,
    pub(crate) keeper: KeeperHandle,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
}

/// A lease as of a moment that a read has proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lease: LeaseInfo,
    pub(crate) at: Timestamp,
}

impl Seen {
    /// Milliseconds left; `None` without a deadline.
    pub(crate) fn remaining_ms(&self) -> Option<u64> {
        (self.lease.deadline != Timestamp::NEVER).then(|| self.lease.deadline.millis_since(self.at))
    }

    /// Milliseconds since the grant.
    pub(crate) const fn held_for_ms(&self) -> u64 {
        self.at.millis_since(self.lease.granted_at)
    }
}

/// How long a read may take in all: one that also has to commit what is due may need several proofs.
const READ_WITHIN: Duration = Duration::from_millis(2_000);
/// How long a node that stops waits for another one to lead. A handover takes some round trips; if it fails, an election
/// would follow anyway.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(2);
/// How often a read looks again after it has ended what was due. Each look finds one more lease that ran out meanwhile,
/// which takes leases of less than a millisecond.
const LOOKS_MAX: usize = 16;

impl<R: Rt> Store<R> {
    pub(crate) fn new(parts: Parts<R>) -> Self {
        Self {
            parts: Arc::new(parts),
        }
    }

    /// Commits one command and gives its outcome.
    pub(crate) async fn submit(
        &self,
        command: &Command,
        if_undelivered: IfUndelivered,
    ) -> Result<Outcome, StoreError> {
        let request = Request::new(command, if_undelivered).map_err(too_large)?;
        self.parts.proposer.propose::<R>(request).await
    }

    /// Commits a command that may have to wait, and waits with it. `command` is told the caller's attachment.
    pub(crate) async fn submit_waiting(
        &self,
        command: impl FnOnce(Attachment) -> Command,
        if_undelivered: IfUndelivered,
    ) -> Result<Outcome, StoreError> {
        let place = self.parts.waiters.park(if_undelivered.clone());
        match self.submit(&command(place.attachment()), if_undelivered).await {
            Ok(Outcome::Queued) => place.answer().await.ok_or(StoreError::Unknown),
            // Its command may stand in the log yet: leaving without a word would leave a ghost in the queue.
            Err(error) if error.may_have_applied() => Err(error),
            answered => {
                place.leave();
                answered
            }
        }
    }

    /// The lease of a name, as of a moment after the call.
    pub(crate) async fn see(&self, key: &LeaseKey) -> Result<Option<Seen>, StoreError> {
        let seen = R::timeout(READ_WITHIN, self.see_at_leisure(key)).await;
        seen.unwrap_or_else(|_| Err(self.unavailable())).map_err(of_read)
    }

    async fn see_at_leisure(&self, key: &LeaseKey) -> Result<Option<Seen>, StoreError> {
        for _ in 0..LOOKS_MAX {
            let at = self.parts.reader.barrier::<R>().await?;
            let Some(lease) = self.parts.replica.look(|machine| machine.get(key)) else {
                return Ok(None);
            };
            if lease.deadline > at {
                return Ok(Some(Seen { lease, at }));
            }
            // The end of a lease is decided in the log, never by a reader's clock.
            self.submit(&Command::Touch { key: key.clone() }, IfUndelivered::Keep)
                .await?;
        }
        Err(self.unavailable())
    }

    fn unavailable(&self) -> StoreError {
        StoreError::Unavailable {
            leader: self.leader(),
        }
    }

    /// The cluster's time at a moment after the call, up to which all that was acknowledged is applied here.
    pub(crate) async fn proven_time(&self) -> Result<Timestamp, StoreError> {
        let proven = R::timeout(READ_WITHIN, self.parts.reader.barrier::<R>()).await;
        proven
            .unwrap_or_else(|_| Err(self.unavailable()))
            .map_err(of_read)
    }

    /// A look at the machine of this node as it is, proven or not.
    pub(crate) fn glance<T>(&self, look: impl FnOnce(&LeaseMachine) -> T) -> T {
        self.parts.replica.look(look)
    }

    /// The leases of several names, as of one moment after the call.
    pub(crate) async fn see_all(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Seen>>, StoreError> {
        let seen = R::timeout(READ_WITHIN, self.see_all_at_leisure(keys)).await;
        seen.unwrap_or_else(|_| Err(self.unavailable())).map_err(of_read)
    }

    async fn see_all_at_leisure(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Seen>>, StoreError> {
        for _ in 0..LOOKS_MAX {
            let at = self.parts.reader.barrier::<R>().await?;
            let leases: Vec<Option<LeaseInfo>> = self
                .parts
                .replica
                .look(|machine| keys.iter().map(|key| machine.get(key)).collect());
            let is_due = |lease: &Option<LeaseInfo>| lease.as_ref().is_some_and(|lease| lease.deadline <= at);
            let due = keys.iter().zip(&leases).filter(|(_, lease)| is_due(lease));
            let due: Vec<LeaseKey> = due
                .map(|(key, _)| key.clone())
                .take(KEYS_PER_CHANGE_MAX)
                .collect();
            if due.is_empty() {
                let seen = leases.into_iter().map(|lease| Some(Seen { lease: lease?, at }));
                return Ok(seen.collect());
            }
            // The end of a lease is decided in the log, never by a reader's clock.
            let touch = Command::Key(KeyCommand::Look { keys: due });
            self.submit(&touch, IfUndelivered::Keep).await?;
        }
        Err(self.unavailable())
    }

    /// A look at the whole machine, as of a moment after the call, with all ended that was due at the call.
    pub(crate) async fn survey<T>(
        &self,
        look: impl FnOnce(&LeaseMachine, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        let at = R::timeout(READ_WITHIN, self.settled()).await;
        let at = at.unwrap_or_else(|_| Err(self.unavailable())).map_err(of_read)?;
        Ok(self.parts.replica.look(|machine| look(machine, at)))
    }

    /// A moment after the call, once all has ended that was due at the call.
    async fn settled(&self) -> Result<Timestamp, StoreError> {
        let called_at = self.parts.reader.barrier::<R>().await?;
        while self
            .parts
            .replica
            .look(LeaseMachine::next_due)
            .is_some_and(|due| due <= called_at)
        {
            self.submit(&Command::Tick, IfUndelivered::Keep).await?;
        }
        self.parts.reader.barrier::<R>().await
    }

    /// What the machine of this node holds, as of the last entry applied here.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.parts.replica.look(LeaseMachine::stats)
    }

    /// Callers that wait at this node.
    #[must_use]
    pub fn parked_callers(&self) -> usize {
        self.parts.waiters.len()
    }

    /// The events of a lease that this node remembers, newest first.
    #[must_use]
    pub fn events(&self, key: &LeaseKey, count: usize) -> Vec<LeaseEvent> {
        self.parts.events.of(key, count)
    }

    /// What entries do from now on, as they are applied here, for whoever tells others.
    pub(crate) fn feed(&self) -> (Feed, Listened) {
        self.parts.events.feed()
    }

    /// A look at the machine of this node as it is now, behind a read that was proven.
    pub(crate) fn look_now<T>(&self, look: impl FnOnce(&LeaseMachine) -> T) -> T {
        self.parts.replica.look(look)
    }

    /// Who leads, as far as this node knows.
    #[must_use]
    pub fn leader(&self) -> Option<u64> {
        self.parts.role.borrow().leader()
    }

    /// Where this node stands.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.parts.node.status()
    }

    /// Hands the leadership to another node of the cluster, if this one has it and another one can take it, and returns
    /// once that one leads: then what this one's clients ask goes there. At most two seconds.
    ///
    /// # Cancel safety
    /// Cancel safe: it may be handed over, or not.
    pub async fn hand_over(&self) {
        if self.parts.role.borrow().leading().is_none() || self.failure().is_some() {
            return;
        }
        match self.parts.node.hand_over(HAND_OVER_WITHIN).await {
            Some(leader) => tracing::info!(leader, "the leadership is handed over"),
            None => tracing::debug!("there is nobody to hand the leadership to"),
        }
    }

    /// Stops the store: nothing is answered any more, and its data directory is free when this returns. Other handles
    /// answer [`StoreError::ShutDown`]. Dropping the last handle does the same in the background.
    ///
    /// # Errors
    /// The storage failed before, or at the last sync. Nothing that was acknowledged is lost.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped, it may not have begun.
    pub async fn shutdown(&self) -> Result<(), StoreError> {
        self.hand_over().await;
        self.parts.keeper.stop().await.map_err(StoreError::Failed)
    }

    /// Waits for the failure that makes this node unfit to go on; for ever, if there is none. After it every call is
    /// answered with [`StoreError::Failed`]: say what happened, and end the process.
    ///
    /// # Cancel safety
    /// Cancel safe: a failure stays.
    pub async fn failed(&self) -> NodeFailure {
        self.parts.node.failed().await
    }

    /// The failure that [`Store::failed`] waits for, if it has happened.
    #[must_use]
    pub fn failure(&self) -> Option<NodeFailure> {
        self.parts.node.failure()
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn parts(&self) -> &Parts<R> {
        &self.parts
    }

    pub(crate) fn proposer(&self) -> &ProposerHandle<R::Instant> {
        &self.parts.proposer
    }

    pub(crate) fn role(&self) -> watch::Receiver<Role<R::Instant>> {
        self.parts.role.clone()
    }

    pub(crate) fn orphans(&self) -> &Orphans {
        &self.parts.orphans
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.parts.metrics
    }
}

impl<R: Rt> Clone for Store<R> {
    fn clone(&self) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
        }
    }
}

/// A read that had to commit what was due changes nothing that a caller could see, whatever became of that.
fn of_read(error: StoreError) -> StoreError {
    if matches!(error, StoreError::Unknown) {
        StoreError::Unavailable { leader: None }
    } else {
        error
    }
}

fn too_large(error: CodecError) -> StoreError {
    tracing::debug!(%error, "a command does not fit a log entry");
    StoreError::TooLarge
}
