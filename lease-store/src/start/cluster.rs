//! A node of a cluster: its peers first, then the cluster's beginning or its own return to it, then Raft.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::assemble::{Assembly, Shared};
use super::peer_handler::NodeHandler;
use super::{StartError, open_directory};
use crate::config::{ClusterConfig, StorageConfig, StoreConfig};
use crate::formation::{Decision, OwnStanding, Stage, Standing, await_agreement, settle};
use crate::forward::{OverPeers, RequestHandler};
use crate::keeper::PeerServing;
use crate::peers::{PeerIdentity, PeerTransport, TcpPeers, TcpServer};
use crate::raft::data_dir::DataDir;
use crate::raft::node::{Formation, NodeConfig, RaftNode, Storage};
use crate::raft::types::Member;
use crate::runtime::{Rt, Tasks, Tokio};
use crate::store::{LeaseStore, Store};
use crate::token_floor::TokenFloor;

/// How often it is said what a node waits for.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Starts a node of a cluster, and returns once it serves: as leader, or with a leader that it knows. It waits for the
/// others for as long as it takes.
pub(super) async fn start(config: StoreConfig, cluster: ClusterConfig) -> Result<LeaseStore, StartError> {
    let StorageConfig::Directory(directory) = &config.storage else {
        return Err(StartError::ForgetfulMember);
    };
    let data_dir = open_directory::<Tokio>(directory, config.node).await?;
    let introduction = Introduction::new(&cluster, &data_dir)?;
    let identity = introduction.identity.clone();
    let others = cluster.members.iter().filter(|(node, _)| **node != config.node);
    let peers = TcpPeers::new(
        identity.clone(),
        others.map(|(node, at)| (*node, at.clone())).collect(),
    );
    let handler = Arc::clone(&introduction.handler);
    let serving = serve(&cluster, identity, peers.clone(), handler).await?;
    let here = Here {
        config,
        raft: RaftSize::default(),
        data_dir,
        introduction,
        peers,
    };
    match here.join_cluster(&cluster).await {
        Ok(joined) => joined.complete(serving).await,
        Err(error) => {
            serving.stop().await;
            Err(error)
        }
    }
}

/// How this node appears to the others before Raft runs.
pub(super) struct Introduction<R: Rt> {
    pub(super) identity: PeerIdentity,
    standing: OwnStanding,
    pub(super) handler: Arc<NodeHandler<R>>,
}

/// What is there before Raft runs.
pub(super) struct Here<R: Rt, T> {
    pub(super) config: StoreConfig,
    pub(super) raft: RaftSize,
    pub(super) data_dir: DataDir,
    pub(super) introduction: Introduction<R>,
    pub(super) peers: T,
}

/// How much Raft keeps; the usual where nothing is said.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RaftSize {
    pub(super) entries_kept: Option<u64>,
    pub(super) snapshot_after_bytes: Option<u64>,
}

/// A node whose Raft runs.
pub(super) struct Joined<R: Rt, T> {
    here: Here<R, T>,
    node: crate::replica::Node<R>,
    schedule: watch::Receiver<crate::replica::Schedule>,
    shared: Shared,
    incarnation: u64,
}

impl<R: Rt> Introduction<R> {
    pub(super) fn new(cluster: &ClusterConfig, data_dir: &DataDir) -> Result<Self, StartError> {
        let stage = stage(data_dir)?;
        let identity = match stage {
            Stage::Member { cluster } => PeerIdentity::in_cluster(data_dir.node(), cluster),
            Stage::Adopted { .. } | Stage::Empty { .. } => PeerIdentity::new(data_dir.node()),
        };
        let standing = OwnStanding::new(Standing {
            list: cluster.members.clone(),
            stage,
            alike: 1,
        });
        let handler = Arc::new(NodeHandler::new(standing.clone(), data_dir.clone()));
        Ok(Self {
            identity,
            standing,
            handler,
        })
    }
}

impl<R: Rt, T: PeerTransport> Here<R, T> {
    /// Agrees on the cluster, and starts Raft in it.
    pub(super) async fn join_cluster(self, cluster: &ClusterConfig) -> Result<Joined<R, T>, StartError> {
        let formation = self.agree(cluster).await?;
        let incarnation = self.data_dir.incarnation();
        let (shared, applier, schedule) = Shared::new(self.config.node, incarnation);
        let usual = NodeConfig::member(
            self.config.node,
            Storage::Directory(self.data_dir.clone()),
            formation,
        )
        .with_snapshots(
            self.config.snapshots.after_bytes,
            self.config.snapshots.entries_kept,
        );
        let RaftSize {
            entries_kept,
            snapshot_after_bytes,
        } = self.raft;
        let config = NodeConfig {
            entries_kept: entries_kept.unwrap_or(usual.entries_kept),
            snapshot_after_bytes: snapshot_after_bytes.unwrap_or(usual.snapshot_after_bytes),
            ..usual
        };
        let node = RaftNode::start_with_peers(config, applier, self.peers.clone()).await?;
        self.introduction.handler.raft().serve(&node);
        Ok(Joined {
            here: self,
            node,
            schedule,
            shared,
            incarnation,
        })
    }

    async fn agree(&self, cluster: &ClusterConfig) -> Result<Formation, StartError> {
        let own = self.config.node;
        let Introduction {
            identity, standing, ..
        } = &self.introduction;
        let decision = settle::<R, _>(own, standing, &self.peers).await?;
        let (id, forms) = match decision {
            Decision::Form { cluster } => (cluster, true),
            Decision::GoOn { cluster } => (cluster, false),
            Decision::Wait => return Err(StartError::Interrupted),
        };
        identity.join(id).map_err(StartError::OtherCluster)?;
        if !forms {
            return Ok(Formation::Wait);
        }
        let data_dir = self.data_dir.clone();
        let agreed = R::run_blocking(move || data_dir.agree(id)).await;
        agreed.map_err(|source| StartError::Open {
            directory: self.data_dir.path().to_owned(),
            source,
        })??;
        standing.advance(Stage::Adopted { cluster: id });
        if cluster.members.keys().next() != Some(&own) {
            return Ok(Formation::Wait);
        }
        // Nobody must still look for an empty cluster when this one has begun.
        await_agreement::<R, _>(own, standing, &self.peers).await?;
        tracing::info!(cluster = format!("{id:016x}"), "forming the cluster");
        let members = cluster.members.iter();
        let members: BTreeMap<u64, Member> = members
            .map(|(node, address)| {
                (
                    *node,
                    Member {
                        address: address.clone(),
                    },
                )
            })
            .collect();
        Ok(Formation::With(members))
    }
}

impl<R: Rt, T: PeerTransport> Joined<R, T> {
    /// Puts the store together, and waits until it serves.
    pub(super) async fn complete(self, serving: PeerServing<R>) -> Result<Store<R>, StartError> {
        let Self {
            here,
            node,
            schedule,
            shared,
            incarnation,
        } = self;
        // The cluster's own log is its memory of the tokens issued.
        let config = match here.config.floor {
            TokenFloor::WallClock => here.config.clone().token_floor(TokenFloor::Keep),
            TokenFloor::At(_) | TokenFloor::Keep => here.config.clone(),
        };
        let forward = Arc::new(OverPeers::new(here.peers.clone()));
        let peers = Some(serving);
        let store = Assembly {
            config,
            incarnation,
            node: node.clone(),
            schedule,
            shared,
            forward,
            peers,
        }
        .complete();
        let requests = RequestHandler::new(node, store.role(), store.proposer().clone());
        here.introduction.handler.serve_requests(requests);
        match store.wait_until_serving().await {
            Ok(()) => Ok(store),
            Err(error) => {
                // The reason that is returned says more than a second failure.
                let _ = store.shutdown().await;
                Err(error)
            }
        }
    }
}

impl<R: Rt> Store<R> {
    /// Waits until this node leads, or knows who does and is known to it.
    async fn wait_until_serving(&self) -> Result<(), StartError> {
        let mut role = self.role();
        loop {
            tokio::select! {
                biased;
                // First, since roles end with the node: the reason says more.
                failure = self.failed() => return Err(StartError::Failed(Arc::new(failure))),
                serves = role.wait_for(|role| role.leader().is_some()) => {
                    return serves.map(|_| ()).map_err(|_| StartError::Interrupted);
                }
                () = R::sleep(SAY_EVERY) => tracing::info!("waiting for a leader: a majority of the nodes is needed"),
            }
        }
    }
}

fn stage(data_dir: &DataDir) -> Result<Stage, StartError> {
    let agreed = data_dir.agreed()?;
    Ok(match (data_dir.is_member(), agreed) {
        (true, agreed) => Stage::Member {
            cluster: agreed.unwrap_or_else(|| data_dir.cluster()),
        },
        (false, Some(cluster)) => Stage::Adopted { cluster },
        (false, None) => Stage::Empty {
            proposed: data_dir.cluster(),
        },
    })
}

async fn serve(
    cluster: &ClusterConfig,
    identity: PeerIdentity,
    peers: TcpPeers,
    handler: Arc<NodeHandler<Tokio>>,
) -> Result<PeerServing<Tokio>, StartError> {
    let node = identity.node();
    let address = cluster.peer_listen;
    let server = TcpServer::bind(address, identity).await;
    let server = server.map_err(|source| StartError::PeerListen { address, source })?;
    let (stop, stopped) = watch::channel(());
    let mut tasks = Tasks::new(node);
    tasks.spawn("peers", server.run(handler, stopped));
    Ok(PeerServing::new(stop, tasks, move || peers.stop()))
}
