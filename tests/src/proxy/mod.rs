//! A TCP proxy that stands for a network: it can break connections, and hold up the packets of one direction.
//!
//! Before a node's peer port it learns from their first words who calls, so that the packets of one caller can be held up
//! and those of another one not: together with the proxies before the other nodes that cuts any pair, in either
//! direction. A packet that is held up is not lost: as TCP sends lost packets again, it passes once the network is whole,
//! and so does the end of a connection. Until then nobody hears anything, not even that the other side is gone.

mod connection;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};

use tokio::runtime::Runtime;
use tokio::sync::watch;

use connection::accept;

/// Who calls, if the proxy does not ask: all callers are one.
pub const ANYBODY: u64 = 0;

/// Where packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the caller to the server.
    ToServer,
    /// From the server to the caller.
    FromServer,
}

/// How the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Weather {
    /// Packets pass.
    #[default]
    Fair,
    /// Packets are held up, and pass once it is fair again.
    Slow,
    /// Connections are broken, and new ones too.
    Cut,
}

/// Whether the proxy asks who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callers {
    AllOne,
    Peers,
}

/// The network as it is at the moment, and what has happened to it.
#[derive(Debug, Default)]
struct State {
    weather: BTreeMap<(u64, Direction), Weather>,
    /// Packets that were stopped on their way, ever.
    held_up: u64,
}

impl State {
    fn of(&self, caller: u64, direction: Direction) -> Weather {
        self.weather
            .get(&(caller, direction))
            .copied()
            .unwrap_or_default()
    }

    fn both(&self, caller: u64) -> [Weather; 2] {
        [Direction::ToServer, Direction::FromServer].map(|direction| self.of(caller, direction))
    }
}

/// A proxy. It runs on a thread of its own until it is dropped, and breaks its connections then.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    running: Option<Runtime>,
}

impl Proxy {
    /// A proxy before `server`, which may come later. All who call it are one caller, [`ANYBODY`].
    #[must_use]
    pub fn before(server: SocketAddr) -> Self {
        Self::start(server, Callers::AllOne)
    }

    /// A proxy before the peer port of a node: each caller is the node that it says it is.
    #[must_use]
    pub fn before_peers_of(server: SocketAddr) -> Self {
        Self::start(server, Callers::Peers)
    }

    fn start(server: SocketAddr, callers: Callers) -> Self {
        let bind = || {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(1).enable_io().build()?;
            Ok((listener.local_addr()?, listener, runtime))
        };
        let bound = bind();
        let (address, listener, runtime) =
            bound.unwrap_or_else(|error: std::io::Error| panic!("harness: no proxy: {error}"));
        let state = watch::Sender::new(State::default());
        runtime.spawn(accept(listener, server, callers, state.clone()));
        Self {
            address,
            state,
            running: Some(runtime),
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks every connection, and every new one.
    pub fn cut(&self) {
        self.set(ANYBODY, Direction::ToServer, Weather::Cut);
        self.set(ANYBODY, Direction::FromServer, Weather::Cut);
    }

    /// Holds up whatever is sent from now on.
    pub fn slow_down(&self) {
        self.hold_up(ANYBODY, Direction::ToServer);
        self.hold_up(ANYBODY, Direction::FromServer);
    }

    /// Holds up what goes between this caller and the server in one direction.
    pub fn hold_up(&self, caller: u64, direction: Direction) {
        self.set(caller, direction, Weather::Slow);
    }

    /// Puts the network back. What was held up goes on.
    pub fn heal(&self) {
        self.state.send_modify(|state| state.weather.clear());
    }

    /// How many packets were ever held up.
    #[must_use]
    pub fn held_up(&self) -> u64 {
        self.state.borrow().held_up
    }

    /// Waits until a packet is held up, or was.
    pub async fn holds_a_packet_up(&self) {
        let mut held = self.state.subscribe();
        let waited = held.wait_for(|state| state.held_up > 0).await;
        assert!(waited.is_ok(), "harness: the proxy is gone");
    }

    fn set(&self, caller: u64, direction: Direction, weather: Weather) {
        self.state.send_modify(|state| {
            state.weather.insert((caller, direction), weather);
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may be dropped where nothing may block.
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
    }
}
