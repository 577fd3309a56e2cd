//! A TCP proxy between a client and its server, which can cut the network, hold up its packets, and put it back.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes that one packet of this network has at the most.
const PACKET_BYTES_MAX: usize = 4_096;

/// How the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    /// Packets pass.
    Fair,
    /// Packets are delayed: they pass once the network is fair again.
    Slow,
    /// Connections are broken, and new ones too.
    Cut,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    /// Packets that were stopped on their way.
    held_up: watch::Sender<u64>,
    _running: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (weather, held_up) = (watch::Sender::new(Weather::Fair), watch::Sender::new(0));
        let network = Network {
            server,
            weather: weather.clone(),
            held_up: held_up.clone(),
        };
        let mut running = JoinSet::new();
        running.spawn(network.accept(listener));
        Self {
            address,
            weather,
            held_up,
            _running: running,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Breaks every connection, and every new one.
    pub(crate) fn cut(&self) {
        self.weather.send_replace(Weather::Cut);
    }

    /// Holds up whatever is sent from now on.
    pub(crate) fn slow_down(&self) {
        self.weather.send_replace(Weather::Slow);
    }

    /// Puts the network back. What was held up goes on.
    pub(crate) fn heal(&self) {
        self.weather.send_replace(Weather::Fair);
    }

    /// Waits until a packet is held up.
    pub(crate) async fn holds_a_packet_up(&self) {
        self.held_up
            .subscribe()
            .wait_for(|packets| *packets > 0)
            .await
            .unwrap();
    }
}

#[derive(Clone)]
struct Network {
    server: SocketAddr,
    weather: watch::Sender<Weather>,
    held_up: watch::Sender<u64>,
}

impl Network {
    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let (client, _) = listener.accept().await.unwrap();
            connections.spawn(self.clone().connect(client));
            while connections.try_join_next().is_some() {}
        }
    }

    /// Ends with either direction, and with the network; both sockets are closed then.
    async fn connect(self, client: TcpStream) {
        if *self.weather.borrow() == Weather::Cut {
            return;
        }
        let Ok(server) = TcpStream::connect(self.server).await else {
            return;
        };
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let mut weather = self.weather.subscribe();
        tokio::select! {
            biased;
            _ = weather.wait_for(|weather| *weather == Weather::Cut) => {}
            () = self.carry(from_client, to_server) => {}
            () = self.carry(from_server, to_client) => {}
        }
    }

    async fn carry(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut weather = self.weather.subscribe();
        let mut packet = vec![0; PACKET_BYTES_MAX];
        loop {
            let read = match from.read(&mut packet).await {
                Ok(0) | Err(_) => return,
                Ok(read) => read,
            };
            if *weather.borrow() == Weather::Slow {
                self.held_up.send_modify(|packets| *packets += 1);
            }
            let fair = weather
                .wait_for(|weather| *weather == Weather::Fair)
                .await
                .is_ok();
            let packet = packet.get(..read).unwrap_or_default();
            if !fair || to.write_all(packet).await.is_err() {
                return;
            }
        }
    }
}
