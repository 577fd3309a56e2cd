//! One node of Raft: what the rest of the store proposes to and asks.
//!
//! Owns: the log, the snapshots, the data directory's lock, and openraft. Everything here may be called from any
//! task; handles are cheap to clone. What this leaves to others: batching, the cluster clock, forwarding to a leader.

mod config;
mod pending;
mod status;
mod storage;
mod transfer;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use lease_core::Timestamp;
use lease_core::limits::ENTRY_BYTES_MAX;
use openraft::async_runtime::watch::WatchReceiver as _;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft::type_config::TypeConfigExt as _;
use openraft::{Raft, RaftNetworkFactory, ReadPolicy};
use openraft_rt::Select2;
use tokio::sync::Notify;

use self::config::raft_config;
pub use self::config::{Formation, NodeConfig, Storage, Timings};
pub use self::pending::{Applied, Pending};
pub use self::status::{MemberStatus, NodeStatus, PeerProgress, Standing};
use self::storage::open_storage;
pub use self::transfer::TransferError;
use super::applied::AppliedMark;
use super::applier::Applier;
use super::error::{ProposeError, ReadError, Refusal, StartError};
use super::failure::{FirstFailure, NodeFailure};
use super::leadership::{LeadershipWatch, Started};
use super::log_store::LogStore;
use super::network::NoPeers;
use super::peer_network::PeerNetwork;
use super::retention::{Droppable, Retention};
use super::snapshot::{SnapshotData, SnapshotStore};
use super::state_machine::{StateMachine, Surroundings};
use super::types::{LeadershipId, Member, Proposal, Reply, Types};
use super::work_gate::{WorkGate, WorkPass};
use crate::peers::PeerTransport;
use crate::runtime::Rt;

type Core<R, A> = Raft<Types<R, <A as Applier>::Outcome>, StateMachine<R, A>>;

/// A running node. Clones share it; it stops with [`RaftNode::shutdown`].
pub struct RaftNode<R: Rt, A: Applier> {
    shared: Arc<Shared<R, A>>,
}

struct Shared<R: Rt, A: Applier> {
    node: u64,
    raft: Core<R, A>,
    log: LogStore,
    snapshots: Arc<SnapshotStore>,
    storage: Storage,
    started: Started<R, A::Outcome>,
    failure: FirstFailure,
    applied: AppliedMark,
    gate: WorkGate,
    droppable: Droppable,
    stopping: AtomicBool,
}

impl<R: Rt, A: Applier> RaftNode<R, A> {
    /// Opens what is stored, loads the state, and starts Raft. The node has no peers.
    ///
    /// It does not lead yet when this returns: [`RaftNode::leadership`] tells when it does.
    ///
    /// # Errors
    /// Something stored is damaged, missing or cannot be opened; nothing was served and nothing changed.
    ///
    /// # Cancel safety
    /// Not cancel safe: drop it only together with the process.
    pub async fn start(config: NodeConfig, applier: A) -> Result<Self, StartError> {
        Self::start_on(config, applier, NoPeers).await
    }

    /// As [`RaftNode::start`], for a node that reaches its peers over `transport`. They reach it by
    /// [`super::peer_service::RaftService`]: what calls that must be stopped before this node is.
    ///
    /// # Errors
    /// Something stored is damaged, missing or cannot be opened; nothing was served and nothing changed.
    ///
    /// # Cancel safety
    /// Not cancel safe: drop it only together with the process.
    pub async fn start_with_peers<T: PeerTransport>(
        config: NodeConfig,
        applier: A,
        transport: T,
    ) -> Result<Self, StartError> {
        let network = PeerNetwork::new(config.node, transport);
        Self::start_on(config, applier, network).await
    }

    pub(super) async fn start_on<N>(config: NodeConfig, applier: A, network: N) -> Result<Self, StartError>
    where
        N: RaftNetworkFactory<Types<R, A::Outcome>>,
        N::Network: openraft::network::NetSnapshot<Types<R, A::Outcome>, SnapshotData = SnapshotData>,
    {
        let failure = FirstFailure::default();
        let (log, snapshots) = open_storage::<R>(&config.storage, &failure).await?;
        let applied = AppliedMark::default();
        let gate = WorkGate::default();
        let snapshot_due = Arc::new(Notify::new());
        let droppable = Droppable::default();
        let around = Surroundings {
            node: config.node,
            restored: log.vote().map(|vote| vote.leader_id),
            snapshots: Arc::clone(&snapshots),
            failure: failure.clone(),
            applied: applied.clone(),
            gate: gate.clone(),
            snapshot_after_bytes: config.snapshot_after_bytes,
            snapshot_due: Arc::clone(&snapshot_due),
            retention: Retention::new(config.bytes_kept, droppable.clone()),
        };
        let (started_sender, started) = Types::<R, A::Outcome>::watch_channel(None);
        let machine = StateMachine::new(applier, started_sender, around);
        let raft_config = raft_config(&config)?;
        let opened = Raft::new(config.node, raft_config, network, log.clone(), machine).await;
        let raft = match opened {
            Ok(raft) => raft,
            Err(error) => {
                let _ = log.close().await;
                return Err(start_error(&failure, &error));
            }
        };
        let node = Self {
            shared: Arc::new(Shared {
                node: config.node,
                raft,
                log,
                snapshots,
                storage: config.storage.clone(),
                started,
                failure,
                applied,
                gate,
                droppable,
                stopping: AtomicBool::new(false),
            }),
        };
        if let Err(error) = node.form(&config).await {
            let _ = node.shutdown().await;
            return Err(error);
        }
        node.keep_watch(snapshot_due);
        Ok(node)
    }

    /// Hands a proposal over, to be appended if `leadership` is still this node's, and returns once it is in line.
    /// Proposals of one task are appended in the order in which their calls return.
    ///
    /// # Errors
    /// It is too long, or the node has stopped: it was never applied.
    ///
    /// # Cancel safety
    /// Not cancel safe: a proposal whose call was dropped may or may not be in line.
    pub async fn propose(
        &self,
        at: Timestamp,
        body: Bytes,
        leadership: LeadershipId,
    ) -> Result<Pending<R, A::Outcome>, ProposeError> {
        if body.len() > ENTRY_BYTES_MAX {
            let reason = Refusal::TooLong {
                bytes: body.len(),
                max: ENTRY_BYTES_MAX,
            };
            return Err(ProposeError::NotApplied { reason });
        }
        let (reply, answer) = Reply::channel();
        let proposal = Proposal { at, body };
        let write = self
            .shared
            .raft
            .write(proposal)
            .with_leader(leadership)
            .responder(reply);
        match write.await {
            Ok(()) => Ok(Pending { answer }),
            // Raft's queue is closed: it never saw the proposal.
            Err(_) => Err(ProposeError::NotApplied {
                reason: Refusal::Stopped,
            }),
        }
    }

    /// Waits until this node has applied everything that was committed anywhere when it was called, and has shown by
    /// a quorum that it led then. What is read here afterwards is linearizable, and what is read at another node too
    /// once that has applied the entry whose index is returned.
    ///
    /// # Errors
    /// This node does not lead, no quorum answers, or it has stopped.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is changed.
    pub async fn read_barrier(&self) -> Result<u64, ReadError> {
        match self.shared.raft.ensure_linearizable(ReadPolicy::ReadIndex).await {
            Ok(proven) => Ok(proven.index()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                let leader = forward.leader_id;
                Err(ReadError::NotLeader { leader })
            }
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => Err(ReadError::NoQuorum),
            Err(RaftError::Fatal(_)) => Err(ReadError::Stopped),
        }
    }

    /// Follows the role of this node.
    #[must_use]
    pub fn leadership(&self) -> LeadershipWatch<R, A::Outcome> {
        let server = self.shared.raft.server_metrics();
        LeadershipWatch::new(self.shared.node, self.shared.started.clone(), server)
    }

    /// Waits for the failure that makes this node unfit to go on; for ever, if there is none. After it, the process
    /// must say what happened and end.
    ///
    /// # Cancel safety
    /// Cancel safe: a failure stays.
    pub async fn failed(&self) -> NodeFailure {
        self.shared.failure.wait().await
    }

    /// The failure that [`RaftNode::failed`] waits for, if it has happened.
    #[must_use]
    pub fn failure(&self) -> Option<NodeFailure> {
        self.shared.failure.get()
    }

    /// The index after the last entry applied here; it never falls while the node runs.
    #[must_use]
    pub fn applied_next(&self) -> u64 {
        self.shared.applied.next()
    }

    /// Waits until this node has applied the entry `index`; for ever, if it never does.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is changed.
    pub async fn wait_applied(&self, index: u64) {
        self.shared.applied.wait(index).await;
    }

    /// Where this node stands.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        let metrics = self.shared.raft.metrics();
        let metrics = metrics.borrow_watched();
        NodeStatus::new(&metrics)
    }

    /// Stops Raft, waits for work on files, syncs and closes the log, and lets the data directory go. What waits for
    /// an answer gets none that says it failed. A second call does nothing.
    ///
    /// # Errors
    /// The last sync failed. Nothing that was acknowledged is lost.
    ///
    /// # Cancel safety
    /// Not cancel safe: drop it only together with the process.
    pub async fn shutdown(&self) -> Result<(), NodeFailure> {
        if self.shared.stopping.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if self.shared.raft.shutdown().await.is_err() {
            tracing::error!("Raft did not end by itself");
        }
        self.shared.gate.empty().await;
        let closed = self.shared.log.close().await;
        if let Storage::Directory(dir) = &self.shared.storage {
            dir.release();
        }
        match self.shared.failure.get() {
            Some(failure) => Err(failure),
            None => closed.map_err(|error| NodeFailure::storage("closing the log", error)),
        }
    }

    /// Its id.
    #[must_use]
    pub fn node(&self) -> u64 {
        self.shared.node
    }

    pub(super) fn core(&self) -> &Core<R, A> {
        &self.shared.raft
    }

    pub(super) fn snapshots(&self) -> &Arc<SnapshotStore> {
        &self.shared.snapshots
    }

    /// Holds up a shutdown until what is returned is dropped.
    pub(super) fn enter_gate(&self) -> WorkPass {
        self.shared.gate.enter()
    }

    #[cfg(test)]
    pub(super) fn core_for_tests(&self) -> &Core<R, A> {
        &self.shared.raft
    }

    async fn form(&self, config: &NodeConfig) -> Result<(), StartError> {
        let refused = |reason: String| StartError::Raft { reason };
        let raft = &self.shared.raft;
        let formed = raft
            .is_initialized()
            .await
            .map_err(|error| refused(error.to_string()))?;
        let members = match &config.formation {
            Formation::Wait => None,
            Formation::Alone => Some(BTreeMap::from([(config.node, Member::default())])),
            Formation::With(members) => Some(members.clone()),
        };
        if let (false, Some(members)) = (formed, members) {
            raft.initialize(members)
                .await
                .map_err(|error| refused(error.to_string()))?;
        }
        Ok(())
    }

    /// Notes it when Raft stops by itself, and has it take a snapshot when one is due.
    fn keep_watch(&self, snapshot_due: Arc<Notify>) {
        let wait = self.shared.raft.wait(None);
        // Only the handles keep the node alive, not this task.
        let shared = Arc::downgrade(&self.shared);
        let failure = self.shared.failure.clone();
        let watched = R::spawn_on(self.shared.node, async move {
            let mut ended = pin!(wait.metrics(|metrics| metrics.running_state.is_err(), "Raft stops"));
            let ended = loop {
                match R::select2(ended.as_mut(), snapshot_due.notified()).await {
                    Select2::First(ended) => break ended,
                    Select2::Second(()) => take_snapshot(&shared).await,
                }
            };
            if shared
                .upgrade()
                .is_none_or(|shared| shared.stopping.load(Ordering::Acquire))
            {
                return;
            }
            let reason = match ended.map(|metrics| metrics.running_state) {
                Ok(Err(fatal)) => fatal.to_string(),
                Ok(Ok(())) => "it ended".to_owned(),
                Err(error) => error.to_string(),
            };
            failure.set(NodeFailure::Raft { reason });
        });
        // It ends with Raft, and nobody waits for it.
        drop(watched);
    }
}

impl<R: Rt, A: Applier> Clone for RaftNode<R, A> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared }
    }
}

impl<R: Rt, A: Applier> std::fmt::Debug for RaftNode<R, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RaftNode")
            .field("node", &self.shared.node)
            .finish_non_exhaustive()
    }
}

async fn take_snapshot<R: Rt, A: Applier>(shared: &Weak<Shared<R, A>>) {
    let Some(shared) = shared.upgrade() else { return };
    // These fail only if Raft has stopped, which whoever waits for its end sees.
    if let Some(upto) = shared.droppable.upto() {
        // What is in no snapshot yet stays.
        let _ = shared.raft.trigger().purge_log(upto).await;
    }
    let _ = shared.raft.trigger().snapshot().await;
}

fn start_error(failure: &FirstFailure, error: &dyn std::fmt::Display) -> StartError {
    match failure.get() {
        Some(failure) => StartError::Failed(failure),
        None => StartError::Raft {
            reason: error.to_string(),
        },
    }
}
