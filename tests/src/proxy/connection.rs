//! One connection through the proxy, in both directions.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{ANYBODY, Callers, Direction, State, Weather};

/// Bytes that one packet of this network has at the most.
const PACKET_BYTES_MAX: usize = 4_096;
/// The first words of a peer, whose layout never changes: magic (8), length (2), checksum (4), versions (4), lane (1),
/// in a cluster (1), cluster (8), from (8), to (8).
const HELLO_BYTES: usize = 44;
const HELLO_FROM: usize = 28;

/// Takes connections until the proxy ends.
pub(super) async fn accept(
    listener: std::net::TcpListener,
    server: SocketAddr,
    callers: Callers,
    state: watch::Sender<State>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let route = Route {
            server,
            caller: ANYBODY,
            state: state.clone(),
        };
        connections.spawn(route.connect(client, callers));
        while connections.try_join_next().is_some() {}
    }
}

/// Who talks to whom.
struct Route {
    server: SocketAddr,
    caller: u64,
    state: watch::Sender<State>,
}

impl Route {
    /// Both sockets are closed at the end.
    async fn connect(mut self, mut client: TcpStream, callers: Callers) {
        let mut first = vec![0; if callers == Callers::Peers { HELLO_BYTES } else { 0 }];
        if client.read_exact(&mut first).await.is_err() {
            return;
        }
        if let Some(from) = first.get(HELLO_FROM..).and_then(<[u8]>::first_chunk) {
            self.caller = u64::from_le_bytes(*from);
        }
        if !self.is_reached(&mut client, &mut first).await {
            return;
        }
        let Ok(mut server) = TcpStream::connect(self.server).await else {
            return;
        };
        let small = client.set_nodelay(true).and(server.set_nodelay(true));
        if small.is_err() || server.write_all(&first).await.is_err() {
            return;
        }
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let mut state = self.state.subscribe();
        tokio::select! {
            biased;
            _ = state.wait_for(|state| state.both(self.caller).contains(&Weather::Cut)) => {}
            () = self.carry(from_client, to_server, Direction::ToServer) => {}
            () = self.carry(from_server, to_client, Direction::FromServer) => {}
        }
    }

    /// Waits until the server can be called, which takes packets in both directions; false if that is not to be, or if
    /// the caller has given up. What it says meanwhile is kept.
    async fn is_reached(&self, client: &mut TcpStream, first: &mut Vec<u8>) -> bool {
        let mut state = self.state.subscribe();
        loop {
            let [one, other] = state.borrow_and_update().both(self.caller);
            if one == Weather::Cut || other == Weather::Cut {
                return false;
            }
            if one == Weather::Fair && other == Weather::Fair {
                return true;
            }
            let room = first.len() < PACKET_BYTES_MAX;
            tokio::select! {
                biased;
                changed = state.changed() => if changed.is_err() {
                    return false;
                },
                read = client.read_buf(first), if room => match read {
                    Ok(0) | Err(_) => return false,
                    Ok(_) => self.count(),
                },
            }
        }
    }

    /// Ends when either side is gone, once the news of it has passed.
    async fn carry(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, direction: Direction) {
        let back = match direction {
            Direction::ToServer => Direction::FromServer,
            Direction::FromServer => Direction::ToServer,
        };
        let mut packet = vec![0; PACKET_BYTES_MAX];
        loop {
            let read = from.read(&mut packet).await.unwrap_or_default();
            self.pass(direction).await;
            if read == 0 {
                return;
            }
            let packet = packet.get(..read).unwrap_or_default();
            if to.write_all(packet).await.is_err() {
                self.pass(back).await;
                return;
            }
        }
    }

    fn count(&self) {
        self.state.send_modify(|state| state.held_up += 1);
    }

    /// Waits until packets pass in this direction.
    async fn pass(&self, direction: Direction) {
        let mut state = self.state.subscribe();
        if state.borrow().of(self.caller, direction) == Weather::Slow {
            self.count();
        }
        let passes = state.wait_for(|state| state.of(self.caller, direction) == Weather::Fair);
        // The sender is this proxy's own.
        let _ = passes.await;
    }
}
