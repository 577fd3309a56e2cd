//! Accepts clients, up to a bound.
//!
//! Owns: the listening socket. Asks: nobody. Asked by: nobody. Stops: when the server stops; its connections finish
//! what they have begun.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use lease_core::wire::{Access, ErrorWord, Protocol, Reply, RequestDecoder, RequestLimits};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::auth::Password;
use super::connection::{Connection, Facts};
use super::pubsub::{Announcer, Pubsub};
use super::session::Session;
use crate::runtime::{AsyncRuntime, Rt, Tokio};
use crate::store::LeaseStore;

/// Pause after the system refused to accept: it is out of file descriptors or memory, and says so at once.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted; the system may allow fewer. One too many waits a whole second for its next try,
/// and the default of 128 is full when the clients of a lost node come all at once.
const BACKLOG: u32 = 4_096;

/// How clients are served.
#[derive(Debug, Clone)]
pub(crate) struct RespConfig {
    /// What clients must show.
    pub(crate) password: Option<Arc<Password>>,
    /// Connections at once. Too low: clients are refused. Too high: file descriptors and memory.
    pub(crate) connections_max: usize,
    /// Longest key or value of `SET`, in bytes.
    pub(crate) max_value: usize,
    /// Databases that `SELECT` reaches.
    pub(crate) databases: u8,
    /// Whether `FLUSHDB` and `FLUSHALL` are served.
    pub(crate) flushing: Flushing,
}

/// Whether a client may end all leases at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushing {
    /// It may, as test suites of Redis clients do.
    Allowed,
    /// It may not.
    Refused,
}

/// The listening socket and its clients.
pub(crate) struct Listener {
    socket: TcpListener,
    store: LeaseStore,
    config: RespConfig,
    facts: Facts,
    next_id: AtomicU64,
}

impl Listener {
    /// Takes the address. Its subscribers are told by the announcer, once that runs.
    pub(crate) fn bind(
        address: SocketAddr,
        store: LeaseStore,
        config: RespConfig,
    ) -> io::Result<(Self, Announcer)> {
        let socket = listen(address)?;
        let port = socket.local_addr()?.port();
        let (feed, listened) = store.feed();
        let pubsub = Arc::new(Pubsub::new(listened));
        let facts = Facts {
            port,
            started_at: Tokio::now(),
            connections: Arc::new(AtomicUsize::new(0)),
            pubsub: Arc::clone(&pubsub),
            flushing: config.flushing,
        };
        let listener = Self {
            socket,
            store,
            config,
            facts,
            next_id: AtomicU64::new(1),
        };
        Ok((listener, Announcer { feed, pubsub }))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// How many clients are connected; goes on counting after the listener has stopped.
    pub(crate) fn connections(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.facts.connections)
    }

    /// Accepts until `stop` is closed or set. Connections end by themselves then.
    pub(crate) async fn run(self, mut stop: watch::Receiver<()>) {
        loop {
            let accepted = tokio::select! {
                biased;
                // A change or a closed channel: the server stops.
                _ = stop.changed() => break,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((socket, peer)) => self.admit(socket, peer, stop.clone()),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    Tokio::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
    }

    fn admit(&self, socket: TcpStream, peer: SocketAddr, stop: watch::Receiver<()>) {
        let count = self.facts.connections.fetch_add(1, Ordering::Relaxed);
        let open = Open(Arc::clone(&self.facts.connections));
        if count >= self.config.connections_max {
            self.store.metrics().connection_refused();
            drop(Tokio::spawn_on(0, refuse(socket, open)));
            return;
        }
        self.store.metrics().connection_accepted();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(client = id, %peer, "connected");
        // Answers are whole batches; waiting to fill a packet would only delay them.
        let _ = socket.set_nodelay(true);
        let connection = self.connection(id, socket);
        drop(Tokio::spawn_on(0, async move {
            connection.run(stop).await;
            drop(open);
            tracing::debug!(client = id, "disconnected");
        }));
    }

    fn connection(&self, id: u64, socket: TcpStream) -> Connection {
        let RespConfig {
            password,
            max_value,
            databases,
            ..
        } = self.config.clone();
        let access = if password.is_some() {
            Access::Unauthenticated
        } else {
            Access::Authenticated
        };
        Connection {
            store: self.store.clone(),
            session: Session::new(id, databases, password),
            max_value,
            socket,
            decoder: RequestDecoder::new(RequestLimits::for_values(max_value), access),
            facts: self.facts.clone(),
            out: BytesMut::new(),
            unclaimed: Vec::new(),
            served: 0,
            failed: 0,
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again takes its port although old connections linger. On Windows it would share the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Counts a connection as long as it is open.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says why, as Redis does, to a client that may not be reading.
async fn refuse(mut socket: TcpStream, open: Open) {
    let mut out = BytesMut::new();
    Reply::error(ErrorWord::Err, "max number of clients reached").encode(Protocol::Resp2, &mut out);
    let _ = Tokio::timeout(Duration::from_secs(1), socket.write_all(&out)).await;
    drop(open);
}
