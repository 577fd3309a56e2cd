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
use crate::peers::{PeerIdentity, TcpPeers, TcpServer};
use crate::raft::data_dir::DataDir;
use crate::raft::node::{Formation, NodeConfig, RaftNode, Storage};
use crate::raft::types::Member;
use crate::runtime::{AsyncRuntime as _, Rt as _, Tasks, Tokio};
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
    let stage = stage(&data_dir)?;
    let identity = match stage {
        Stage::Member { cluster } => PeerIdentity::in_cluster(config.node, cluster),
        Stage::Adopted { .. } | Stage::Empty { .. } => PeerIdentity::new(config.node),
    };
    let others = cluster.members.iter().filter(|(node, _)| **node != config.node);
    let peers = TcpPeers::new(
        identity.clone(),
        others.map(|(node, at)| (*node, at.clone())).collect(),
    );
    let standing = OwnStanding::new(Standing {
        list: cluster.members.clone(),
        stage,
    });
    let handler = Arc::new(NodeHandler::<Tokio>::new(standing.clone(), data_dir.clone()));
    let serving = serve(&cluster, identity.clone(), peers.clone(), Arc::clone(&handler)).await?;
    let here = Here {
        config,
        data_dir,
        identity,
        peers,
        standing,
        handler,
    };
    match here.join_cluster(&cluster).await {
        Ok(joined) => joined.complete(serving).await,
        Err(error) => {
            serving.stop().await;
            Err(error)
        }
    }
}

/// What is there before Raft runs.
struct Here {
    config: StoreConfig,
    data_dir: DataDir,
    identity: PeerIdentity,
    peers: TcpPeers,
    standing: OwnStanding,
    handler: Arc<NodeHandler<Tokio>>,
}

/// A node whose Raft runs.
struct Joined {
    here: Here,
    node: crate::replica::Node<Tokio>,
    schedule: watch::Receiver<crate::replica::Schedule>,
    shared: Shared,
    incarnation: u64,
}

impl Here {
    /// Agrees on the cluster, and starts Raft in it.
    async fn join_cluster(self, cluster: &ClusterConfig) -> Result<Joined, StartError> {
        let formation = self.agree(cluster).await?;
        let incarnation = self.data_dir.incarnation();
        let (shared, applier, schedule) = Shared::new(self.config.node, incarnation);
        let config = NodeConfig::member(
            self.config.node,
            Storage::Directory(self.data_dir.clone()),
            formation,
        )
        .with_snapshots(
            self.config.snapshots.after_bytes,
            self.config.snapshots.entries_kept,
        );
        let node = RaftNode::start_with_peers(config, applier, self.peers.clone()).await?;
        self.handler.raft().serve(&node);
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
        let decision = settle::<Tokio, _>(own, &self.standing, &self.peers).await?;
        let (id, forms) = match decision {
            Decision::Form { cluster } => (cluster, true),
            Decision::GoOn { cluster } => (cluster, false),
            Decision::Wait => return Err(StartError::Interrupted),
        };
        self.identity.join(id).map_err(StartError::OtherCluster)?;
        if !forms {
            return Ok(Formation::Wait);
        }
        let data_dir = self.data_dir.clone();
        let agreed = Tokio::run_blocking(move || data_dir.agree(id)).await;
        agreed.map_err(|source| StartError::Open {
            directory: self.data_dir.path().to_owned(),
            source,
        })??;
        self.standing.advance(Stage::Adopted { cluster: id });
        if cluster.members.keys().next() != Some(&own) {
            return Ok(Formation::Wait);
        }
        // Nobody must still look for an empty cluster when this one has begun.
        await_agreement::<Tokio, _>(own, &self.standing, &self.peers).await?;
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

impl Joined {
    /// Puts the store together, and waits until it serves.
    async fn complete(self, serving: PeerServing<Tokio>) -> Result<LeaseStore, StartError> {
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
        here.handler.serve_requests(requests);
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

impl Store<Tokio> {
    /// Waits until this node leads, or knows who does and is known to it.
    async fn wait_until_serving(&self) -> Result<(), StartError> {
        let mut role = self.role();
        loop {
            tokio::select! {
                biased;
                serves = role.wait_for(|role| role.leader().is_some()) => {
                    return serves.map(|_| ()).map_err(|_| StartError::Interrupted);
                }
                failure = self.failed() => return Err(StartError::Failed(Arc::new(failure))),
                () = Tokio::sleep(SAY_EVERY) => tracing::info!("waiting for a leader: a majority of the nodes is needed"),
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
