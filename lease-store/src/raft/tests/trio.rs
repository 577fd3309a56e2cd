//! Three nodes in one process, over real sockets or over the network in memory.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::watch;

use super::super::data_dir::DataDir;
use super::super::leadership::{Leading, Role};
use super::super::node::{Formation, NodeConfig, Storage};
use super::super::peer_service::RaftService;
use super::super::types::Member;
use super::counter::{Counter, Node};
use crate::peers::memory::MemoryNet;
use crate::peers::{PeerIdentity, TcpPeers, TcpServer};
use crate::runtime::{AsyncRuntime, Rt, Tokio};

pub(super) const NODES: [u64; 3] = [1, 2, 3];
const CLUSTER: u64 = 0xC1C1;

pub(super) type Lead = Leading<<Tokio as AsyncRuntime>::Instant>;

/// A node that runs.
pub(super) struct Running {
    pub(super) node: Node,
    pub(super) counter: Counter,
    /// What is stopped before Raft is; nothing in memory.
    tcp: Option<Tcp>,
}

struct Tcp {
    peers: TcpPeers,
    stop: watch::Sender<()>,
    serves: <Tokio as AsyncRuntime>::JoinHandle<()>,
}

/// Three nodes, some of which run.
pub(super) struct Trio {
    dirs: TempDir,
    addresses: BTreeMap<u64, SocketAddr>,
    /// Nodes that have a directory keep it; without, they are in memory and reach each other over this.
    pub(super) net: MemoryNet<Tokio>,
    change: fn(&mut NodeConfig),
    pub(super) running: BTreeMap<u64, Running>,
}

fn identity(node: u64) -> PeerIdentity {
    PeerIdentity::in_cluster(node, CLUSTER)
}

impl Trio {
    fn new(change: fn(&mut NodeConfig)) -> Self {
        Self {
            dirs: tempfile::tempdir().unwrap(),
            addresses: BTreeMap::new(),
            net: MemoryNet::new(),
            change,
            running: BTreeMap::new(),
        }
    }

    /// Three nodes on disk, over real sockets.
    pub(super) async fn over_tcp(change: fn(&mut NodeConfig)) -> Self {
        let mut trio = Self::new(change);
        let mut servers = Vec::new();
        for node in NODES {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let server = TcpServer::bind(any, identity(node)).await.unwrap();
            trio.addresses.insert(node, server.local_addr().unwrap());
            servers.push((node, server));
        }
        for (node, server) in servers {
            trio.start_with(node, server).await;
        }
        trio
    }

    /// Three nodes in memory, over links that can be cut.
    pub(super) async fn in_memory(change: fn(&mut NodeConfig)) -> Self {
        let mut trio = Self::new(change);
        for node in NODES {
            let counter = Counter::default();
            let config = trio.config(node, Storage::Memory);
            let started = Node::start_with_peers(config, counter.clone(), trio.net.transport(node));
            let running = Running {
                node: started.await.unwrap(),
                counter,
                tcp: None,
            };
            let service = RaftService::new();
            service.serve(&running.node);
            trio.net.attach(node, Arc::new(service));
            trio.running.insert(node, running);
        }
        trio
    }

    pub(super) fn dir(&self, node: u64) -> PathBuf {
        self.dirs.path().join(node.to_string())
    }

    fn config(&self, node: u64, storage: Storage) -> NodeConfig {
        let member = |node| Member {
            address: self
                .addresses
                .get(&node)
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        let members = NODES.map(|node| (node, member(node)));
        let mut config = NodeConfig {
            formation: Formation::With(members.into()),
            entries_kept: 20_000,
            ..NodeConfig::alone(node, storage)
        };
        (self.change)(&mut config);
        config
    }

    /// Starts a node again where it was.
    pub(super) async fn restart(&mut self, node: u64) {
        let server = TcpServer::bind(self.addresses[&node], identity(node)).await;
        self.start_with(node, server.unwrap()).await;
    }

    async fn start_with(&mut self, node: u64, server: TcpServer) {
        let dir = DataDir::open(&self.dir(node), node).unwrap();
        let addresses = self
            .addresses
            .iter()
            .map(|(node, address)| (*node, address.to_string()));
        let peers = TcpPeers::new(identity(node), addresses.collect());
        let service = RaftService::new();
        let (stop, stopped) = watch::channel(());
        // It listens before Raft runs, as a server does that forms its cluster first.
        let serves = Tokio::spawn_on(node, server.run(Arc::new(service.clone()), stopped));
        let counter = Counter::default();
        let config = self.config(node, Storage::Directory(dir));
        let started = Node::start_with_peers(config, counter.clone(), peers.clone());
        let started = started.await.unwrap();
        service.serve(&started);
        let running = Running {
            node: started,
            counter,
            tcp: Some(Tcp { peers, stop, serves }),
        };
        self.running.insert(node, running);
    }

    /// Stops a node: its listener first, then Raft, then its calls.
    pub(super) async fn stop(&mut self, node: u64) {
        self.net.detach(node);
        let running = self.running.remove(&node).unwrap();
        if let Some(tcp) = running.tcp {
            drop(tcp.stop);
            tcp.serves.await.unwrap();
            running.node.shutdown().await.unwrap();
            tcp.peers.stop();
        } else {
            running.node.shutdown().await.unwrap();
        }
    }

    pub(super) async fn stop_all(mut self) {
        for node in NODES {
            if self.running.contains_key(&node) {
                self.stop(node).await;
            }
        }
    }

    /// Waits until one of `among` leads, and all of them say so. At their first start several stand at once.
    pub(super) async fn leader(&self, among: &[u64]) -> (u64, Lead) {
        let mut found = None;
        eventually("a leader", || {
            found = among.iter().find_map(|node| {
                let role = self.running.get(node)?.node.leadership().role();
                let Role::Leading(leading) = role else {
                    return None;
                };
                let led = |other: &u64| self.running[other].node.status().leader == Some(*node);
                among.iter().all(led).then_some((*node, leading))
            });
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Waits until all that run have this sum.
    pub(super) async fn all_have(&self, sum: u64) {
        eventually("the same sum everywhere", || {
            self.running
                .values()
                .all(|running| running.counter.count().sum == sum)
        })
        .await;
    }
}

/// Waits until `holds`, which must become true.
pub(super) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Tokio::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Tokio::now() < deadline, "waited in vain: {what}");
        Tokio::sleep(Duration::from_millis(10)).await;
    }
}
