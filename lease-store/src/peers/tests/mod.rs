//! Tests of the network as a whole, over real sockets and in memory.

mod in_memory;
mod over_tcp;
mod silence;

use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};

use super::identity::PeerIdentity;
use super::tcp_client::TcpPeers;
use super::tcp_server::TcpServer;
use super::transport::{Kind, Lane, PeerError, PeerHandler, PeerTransport, Refusal};
use crate::runtime::{AsyncRuntime, Instant as _, Rt, Tokio};

const CLUSTER: u64 = 0xC1;
const LONG: Duration = Duration::from_secs(20);

/// Answers with what it is asked, but for a few words.
#[derive(Debug, Default)]
struct Echo {
    served: AtomicU64,
    dropped: Arc<AtomicU64>,
    go_on: Notify,
}

struct Dropped(Arc<AtomicU64>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl PeerHandler for Echo {
    async fn handle(&self, from: u64, _kind: Kind, body: Bytes) -> Result<Bytes, Refusal> {
        self.served.fetch_add(1, Ordering::AcqRel);
        match &body[..] {
            b"refuse" => Err(Refusal::NotReady),
            b"wait" => {
                self.go_on.notified().await;
                Ok(body)
            }
            b"for ever" => {
                let _dropped = Dropped(Arc::clone(&self.dropped));
                pending().await
            }
            b"who" => Ok(Bytes::from(from.to_string())),
            _ => Ok(body),
        }
    }
}

/// A server of node 2 that runs, and node 1's way to it.
struct Pair {
    address: SocketAddr,
    echo: Arc<Echo>,
    peers: TcpPeers,
    stop: watch::Sender<()>,
    serves: <Tokio as AsyncRuntime>::JoinHandle<()>,
}

impl Pair {
    async fn start() -> Self {
        Self::of(member(1), member(2)).await
    }

    async fn of(caller: PeerIdentity, called: PeerIdentity) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = TcpServer::bind(any, called).await.unwrap();
        let address = server.local_addr().unwrap();
        let echo = Arc::new(Echo::default());
        let (stop, stopped) = watch::channel(());
        let serves = Tokio::spawn_on(2, server.run(Arc::clone(&echo), stopped));
        let peers = TcpPeers::new(caller, BTreeMap::from([(2, address.to_string())]));
        Self {
            address,
            echo,
            peers,
            stop,
            serves,
        }
    }

    async fn ask(&self, words: &'static str) -> Result<Bytes, PeerError> {
        request(&self.peers, words, LONG).await
    }
}

fn member(node: u64) -> PeerIdentity {
    PeerIdentity::in_cluster(node, CLUSTER)
}

/// Asks node 2.
async fn request(
    peers: &impl PeerTransport,
    words: &'static str,
    within: Duration,
) -> Result<Bytes, PeerError> {
    let words = Bytes::from_static(words.as_bytes());
    peers.call(2, Lane::Request, Kind::Request, words, within).await
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Tokio::now() + LONG;
    while !holds() {
        assert!(Tokio::now() < deadline, "waited in vain: {what}");
        Tokio::sleep(Duration::from_millis(5)).await;
    }
}

/// Asks node 2 again and again until it answers; answers how often it did not.
async fn wait_for(peers: &impl PeerTransport, words: &'static str, within: Duration) -> u32 {
    let deadline = Tokio::now() + LONG;
    let mut failed = 0;
    loop {
        match request(peers, words, within).await {
            Ok(answer) => {
                assert_eq!(answer, words);
                return failed;
            }
            Err(error) => assert!(Tokio::now() < deadline, "never answered: {error}"),
        }
        failed += 1;
        Tokio::sleep(Duration::from_millis(5)).await;
    }
}
