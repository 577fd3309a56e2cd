//! Serves peers over TCP.
//!
//! Owns: the listening socket and its connections. Asks: the handler. Asked by: nobody. Stops: when it is told to, and
//! only then returns, with every connection ended. It is stopped before Raft is, since Raft's own shutdown does not
//! hold off the calls of peers.

mod connection;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use self::connection::Connection;
use super::handshake::Room;
use super::identity::PeerIdentity;
use super::transport::{Lane, PeerHandler};
use crate::runtime::{AsyncRuntime, Rt, Tokio};

/// Connections at once, those that have not introduced themselves too: five lanes of some twenty peers.
const CONNECTIONS_MAX: usize = 128;
/// Beyond that, connections that are still told that there is no room.
const TURNED_AWAY_MAX: usize = 32;
/// Pause after the system refused to accept: it is out of file descriptors or memory, and says so at once.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A socket that takes the calls of peers.
#[derive(Debug)]
pub struct TcpServer {
    socket: TcpListener,
    identity: PeerIdentity,
}

impl TcpServer {
    /// Takes the address. Peers may connect from now on; they are answered once it runs.
    ///
    /// # Errors
    /// The address cannot be listened on.
    ///
    /// # Cancel safety
    /// Cancel safe: a socket that was not returned is closed.
    pub async fn bind(address: SocketAddr, identity: PeerIdentity) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        Ok(Self { socket, identity })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` is set or closed, and returns when every connection has ended.
    ///
    /// # Cancel safety
    /// Not cancel safe: connections go on until `stop` is set or closed.
    pub async fn run<H: PeerHandler>(self, handler: Arc<H>, mut stop: watch::Receiver<()>) {
        let known = Arc::new(Known::default());
        let mut open = FuturesUnordered::new();
        loop {
            let accepted = tokio::select! {
                biased;
                // A change or a closed channel: the node stops.
                _ = stop.changed() => break,
                Some(ended) = open.next(), if !open.is_empty() => {
                    tell_panic(ended);
                    continue;
                }
                accepted = self.socket.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a peer");
                    Tokio::sleep(PAUSE_AFTER_FAILURE).await;
                    continue;
                }
            };
            let room = match open.len() {
                0..CONNECTIONS_MAX => Room::There,
                count if count < CONNECTIONS_MAX.saturating_add(TURNED_AWAY_MAX) => Room::None,
                _ => {
                    tracing::warn!(%address, "too many connections of peers");
                    continue;
                }
            };
            let connection = Connection {
                identity: self.identity.clone(),
                handler: Arc::clone(&handler),
                known: Arc::clone(&known),
                address,
            };
            open.push(self.start(connection, stream, room, stop.clone()));
        }
        drop(self.socket);
        while let Some(ended) = open.next().await {
            tell_panic(ended);
        }
    }

    fn start<H: PeerHandler>(
        &self,
        connection: Connection<H>,
        stream: TcpStream,
        room: Room,
        stop: watch::Receiver<()>,
    ) -> <Tokio as AsyncRuntime>::JoinHandle<()> {
        // Answers are whole messages; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        Tokio::spawn_on(self.identity.node(), connection.run(stream, room, stop))
    }
}

fn tell_panic(ended: Result<(), <Tokio as AsyncRuntime>::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection of a peer ended by a bug");
    }
}

/// The connection of each peer and lane. A newer one ends the older: the peer has given that up, or does not know it.
#[derive(Debug, Default)]
struct Known {
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    next_number: u64,
    connections: BTreeMap<(u64, Lane), (u64, oneshot::Sender<()>)>,
}

impl Known {
    /// Makes a connection the current one; what is returned tells when it is so no longer.
    fn enter(&self, from: u64, lane: Lane) -> (u64, oneshot::Receiver<()>) {
        let (replace, replaced) = oneshot::channel();
        let mut current = self.lock();
        let number = current.next_number;
        current.next_number = number.saturating_add(1);
        // Dropping its sender tells the older one.
        drop(current.connections.insert((from, lane), (number, replace)));
        (number, replaced)
    }

    /// Forgets a connection, unless a newer one is there.
    fn leave(&self, from: u64, lane: Lane, number: u64) {
        let mut current = self.lock();
        let connection = current.connections.get(&(from, lane));
        if connection.is_some_and(|(current, _)| *current == number) {
            current.connections.remove(&(from, lane));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        // No code under this lock can panic half-way through a change.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_connection_ends_the_older_and_outlives_its_leaving() {
        let known = Known::default();
        let (first, mut first_replaced) = known.enter(2, Lane::Append);
        let (_, mut other) = known.enter(2, Lane::Heartbeat);
        assert!(
            first_replaced
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Empty)
        );
        let (second, mut second_replaced) = known.enter(2, Lane::Append);
        let closed = oneshot::error::TryRecvError::Closed;
        assert_eq!(first_replaced.try_recv(), Err(closed.clone()));
        known.leave(2, Lane::Append, first);
        assert_eq!(
            second_replaced.try_recv(),
            Err(oneshot::error::TryRecvError::Empty)
        );
        known.leave(2, Lane::Append, second);
        assert_eq!(second_replaced.try_recv(), Err(closed));
        assert_eq!(other.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }
}
