//! One node of Raft: what the rest of the store proposes to and asks.
//!
//! Owns: the log, the snapshots, the data directory's lock, and openraft. Everything here may be called from any
//! task; handles are cheap to clone. What this leaves to others: batching, the cluster clock, forwarding to a leader.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use lease_core::Timestamp;
use lease_core::limits::ENTRY_BYTES_MAX;
use openraft::async_runtime::watch::WatchReceiver as _;
use openraft::errors::{ClientWriteError, LinearizableReadError, RaftError};
use openraft::raft::ClientWriteResult;
use openraft::type_config::TypeConfigExt as _;
use openraft::{Raft, RaftNetworkFactory, ReadPolicy, SnapshotPolicy};
use openraft_rt::Select2;
use tokio::sync::{Notify, oneshot};

use super::applier::Applier;
use super::data_dir::DataDir;
use super::error::{Loss, ProposeError, ReadError, Refusal, StartError};
use super::failure::{FirstFailure, NodeFailure};
use super::leadership::{LeadershipWatch, Started};
use super::log_store::LogStore;
use super::network::NoPeers;
use super::snapshot::{SnapshotData, SnapshotStore};
use super::state_machine::{StateMachine, Surroundings};
use super::types::{LeadershipId, LogId, Member, Proposal, Reply, Types};
use super::work_gate::WorkGate;
use crate::runtime::Rt;

/// Some half a million commands, which a restart replays in about a second.
const SNAPSHOT_AFTER_BYTES_DEFAULT: u64 = 64 * 1_024 * 1_024;

/// Where a node keeps what it must not forget.
#[derive(Debug, Clone)]
pub enum Storage {
    /// Nowhere: it forgets everything at a restart, its vote too, so it may only ever be alone.
    Memory,
    /// In a directory.
    Directory(DataDir),
}

/// What a node does at its very first start. Later starts go on from what is stored.
#[derive(Debug, Clone)]
pub enum Formation {
    /// It forms a cluster of itself alone.
    Alone,
    /// It forms a cluster with these members, itself among them. All members must be given the same list.
    With(BTreeMap<u64, Member>),
    /// It waits to be added to a cluster.
    Wait,
}

/// How a node is started.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its id, never used before by another node.
    pub node: u64,
    /// Where it keeps its state.
    pub storage: Storage,
    /// What it does at its first start.
    pub formation: Formation,
    /// Its timings.
    pub timings: Timings,
    /// Entries that stay in the log behind a snapshot. Too few: a node that was away for a moment is sent a whole
    /// snapshot. Too many: disk space.
    pub entries_kept: u64,
    /// Bytes of entries after which a snapshot is taken, unless the last snapshot was larger still: writing it should
    /// not cost more than the entries did. Too few: constant writing. Too many: a restart replays them all.
    pub snapshot_after_bytes: u64,
}

/// The timings of Raft, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// Between two heartbeats. Too short: idle load. Too long: it must fit several times into an election timeout.
    pub heartbeat_ms: u64,
    /// The shortest silence after which a node stands for election. Too short: a slow disk or a busy host starts
    /// elections under load.
    pub election_min_ms: u64,
    /// The longest one. The further from the shortest, the rarer two nodes stand at once.
    pub election_max_ms: u64,
}

impl Default for Timings {
    /// For nodes in one place, on machines that others share.
    fn default() -> Self {
        Self {
            heartbeat_ms: 100,
            election_min_ms: 500,
            election_max_ms: 1_000,
        }
    }
}

impl NodeConfig {
    /// A node that is alone: it keeps few entries, since nobody else needs them.
    #[must_use]
    pub fn alone(node: u64, storage: Storage) -> Self {
        Self {
            node,
            storage,
            formation: Formation::Alone,
            timings: Timings::default(),
            entries_kept: 1_024,
            snapshot_after_bytes: SNAPSHOT_AFTER_BYTES_DEFAULT,
        }
    }
}

type Core<R, A> = Raft<Types<R, <A as Applier>::Outcome>, StateMachine<R, A>>;

/// A running node. Clones share it; it stops with [`RaftNode::shutdown`].
pub struct RaftNode<R: Rt, A: Applier> {
    shared: Arc<Shared<R, A>>,
}

struct Shared<R: Rt, A: Applier> {
    node: u64,
    raft: Core<R, A>,
    log: LogStore,
    storage: Storage,
    started: Started<R, A::Outcome>,
    failure: FirstFailure,
    applied: Arc<AtomicU64>,
    gate: WorkGate,
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

    pub(super) async fn start_on<N>(config: NodeConfig, applier: A, network: N) -> Result<Self, StartError>
    where
        N: RaftNetworkFactory<Types<R, A::Outcome>>,
        N::Network: openraft::network::NetSnapshot<Types<R, A::Outcome>, SnapshotData = SnapshotData>,
    {
        let failure = FirstFailure::default();
        let (log, snapshots) = open_storage::<R>(&config.storage, &failure).await?;
        let applied = Arc::new(AtomicU64::new(0));
        let gate = WorkGate::default();
        let snapshot_due = Arc::new(Notify::new());
        let around = Surroundings {
            node: config.node,
            restored: log.vote().map(|vote| vote.leader_id),
            snapshots: Arc::new(snapshots),
            failure: failure.clone(),
            applied: Arc::clone(&applied),
            gate: gate.clone(),
            snapshot_after_bytes: config.snapshot_after_bytes,
            snapshot_due: Arc::clone(&snapshot_due),
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
                storage: config.storage.clone(),
                started,
                failure,
                applied,
                gate,
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
    /// a quorum that it led then. What is read here afterwards is linearizable.
    ///
    /// # Errors
    /// This node does not lead, no quorum answers, or it has stopped.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is changed.
    pub async fn read_barrier(&self) -> Result<(), ReadError> {
        match self.shared.raft.ensure_linearizable(ReadPolicy::ReadIndex).await {
            Ok(_) => Ok(()),
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
        self.shared.applied.load(Ordering::Acquire)
    }

    /// Where this node stands.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        let metrics = self.shared.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let voters: Vec<u64> = membership.voter_ids().collect();
        let members = membership.nodes().map(|(&node, member)| MemberStatus {
            node,
            address: member.address.clone(),
            standing: if voters.contains(&node) {
                Standing::Voter
            } else {
                Standing::Learner
            },
        });
        NodeStatus {
            node: self.shared.node,
            term: metrics.current_term,
            leader: metrics.current_leader,
            last_index: metrics.last_log_index,
            committed_index: index(metrics.local_committed.as_ref()),
            applied_index: index(metrics.last_applied.as_ref()),
            snapshot_index: index(metrics.snapshot.as_ref()),
            purged_index: index(metrics.purged.as_ref()),
            members: members.collect(),
        }
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

/// A proposal on its way. Dropping it gives up the answer, not the proposal.
pub struct Pending<R: Rt, O: Send + Sync + 'static> {
    answer: oneshot::Receiver<ClientWriteResult<Types<R, O>>>,
}

/// Where an entry stands, and what applying it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied<O> {
    /// The index of the entry.
    pub index: u64,
    /// What the machine answered.
    pub outcome: O,
}

impl<R: Rt, O: Send + Sync + 'static> Future for Pending<R, O> {
    type Output = Result<Applied<O>, ProposeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unknown = |reason| Err(ProposeError::Unknown { reason });
        Poll::Ready(match ready!(Pin::new(&mut self.answer).poll(cx)) {
            Ok(Ok(written)) => match written.data {
                Some(outcome) => Ok(Applied {
                    index: written.log_id.index,
                    outcome,
                }),
                // Only entries of Raft's own have none.
                None => unknown(Loss::Stopped),
            },
            Ok(Err(ClientWriteError::ForwardToLeader(forward))) => Err(ProposeError::NotApplied {
                reason: Refusal::LeadershipOver {
                    leader: forward.leader_id,
                },
            }),
            Ok(Err(ClientWriteError::LogEntryDiscarded(forward))) => unknown(Loss::LeaderChanged {
                leader: forward.leader_id,
            }),
            // Neither is an answer to a proposal of commands; to know nothing is always true.
            Ok(Err(ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)))
            | Err(_) => unknown(Loss::Stopped),
        })
    }
}

impl<R: Rt, O: Send + Sync + 'static> std::fmt::Debug for Pending<R, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

/// Where a node stands; each number as of about now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// This node.
    pub node: u64,
    /// The term it knows.
    pub term: u64,
    /// The node that leads, if this one knows.
    pub leader: Option<u64>,
    /// The last entry in its log.
    pub last_index: Option<u64>,
    /// The last entry that it knows to be committed.
    pub committed_index: Option<u64>,
    /// The last entry that it applied.
    pub applied_index: Option<u64>,
    /// The last entry in its newest snapshot.
    pub snapshot_index: Option<u64>,
    /// The last entry that is gone from its log.
    pub purged_index: Option<u64>,
    /// The members of the cluster.
    pub members: Vec<MemberStatus>,
}

/// One member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub node: u64,
    /// Where its peers reach it.
    pub address: String,
    /// Whether it has a vote.
    pub standing: Standing,
}

/// What a member counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It counts for the quorum.
    Voter,
    /// It only follows.
    Learner,
}

async fn take_snapshot<R: Rt, A: Applier>(shared: &Weak<Shared<R, A>>) {
    if let Some(shared) = shared.upgrade() {
        // It fails only if Raft has stopped, which whoever waits for its end sees.
        let _ = shared.raft.trigger().snapshot().await;
    }
}

fn index(id: Option<&LogId>) -> Option<u64> {
    id.map(|id| id.index)
}

async fn open_storage<R: Rt>(
    storage: &Storage,
    failure: &FirstFailure,
) -> Result<(LogStore, SnapshotStore), StartError> {
    let Storage::Directory(dir) = storage else {
        return Ok((LogStore::in_memory(), SnapshotStore::in_memory()));
    };
    let folder = dir.snapshots();
    let opened = R::run_blocking(move || SnapshotStore::in_folder(folder)).await;
    let snapshots = opened.map_err(|source| StartError::Thread { source })??;
    let member = dir.clone();
    let mark_member = Arc::new(move || member.mark_member().map_err(io::Error::other));
    let log = LogStore::on_disk(dir.log(), mark_member, failure.clone()).await?;
    let lost = match (log.vote(), log.purged(), snapshots.current()) {
        (None, _, current) if dir.is_member() || current.is_some() => {
            Some(StartError::LogLost { dir: dir.log() })
        }
        (_, Some(purged), current) => {
            let covered = current.and_then(|snapshot| snapshot.meta.last_log_id);
            (covered < Some(purged)).then(|| StartError::SnapshotLost {
                dir: dir.log(),
                purged: purged.index,
            })
        }
        _ => None,
    };
    match lost {
        Some(error) => {
            // Lets the log's thread end, and its files go, before the error is shown.
            let _ = log.close().await;
            Err(error)
        }
        None => Ok((log, snapshots)),
    }
}

fn start_error(failure: &FirstFailure, error: &dyn std::fmt::Display) -> StartError {
    match failure.get() {
        Some(failure) => StartError::Failed(failure),
        None => StartError::Raft {
            reason: error.to_string(),
        },
    }
}

fn raft_config(config: &NodeConfig) -> Result<Arc<openraft::Config>, StartError> {
    let checked = openraft::Config {
        cluster_name: "lease-store".to_owned(),
        heartbeat_interval: config.timings.heartbeat_ms,
        election_timeout_min: config.timings.election_min_ms,
        election_timeout_max: config.timings.election_max_ms,
        enable_pre_vote: Some(true),
        // A leader that came back in its old term would answer reads before its older entries are committed.
        enable_leader_restore: Some(false),
        quorum_loss_probe_interval: Some(2_500),
        // Taken when the state machine asks for one: it counts bytes.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: config.entries_kept,
        replication_lag_threshold: 20_000,
        purge_batch_size: 1_024,
        max_payload_entries: 1_024,
        // For a whole snapshot, over any network.
        install_snapshot_timeout: 60_000,
        ..openraft::Config::default()
    }
    .validate();
    checked.map(Arc::new).map_err(|error| StartError::Raft {
        reason: error.to_string(),
    })
}
