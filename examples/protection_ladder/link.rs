//! The way from a worker to a server: a forwarder that can be cut, or hold what is sent on its way.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes that are forwarded in one go; a request of these examples is far shorter.
const PIECE_BYTES: usize = 4_096;

/// How the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// What the worker sends stays on its way; answers come through.
    Held,
    Cut,
}

/// A way to one server. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Link {
    address: SocketAddr,
    way: watch::Sender<Way>,
    _forwarder: JoinSet<()>,
}

impl Link {
    /// A way to the server at `to`, open.
    pub(crate) async fn to(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (way, watched) = watch::channel(Way::Open);
        let mut forwarder = JoinSet::new();
        forwarder.spawn(forward_all(listener, to, watched));
        Ok(Self {
            address,
            way,
            _forwarder: forwarder,
        })
    }

    /// Where a worker finds it.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks all connections, and every new one, until it is opened.
    pub(crate) fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    /// Keeps what the worker sends from now on, until it is opened.
    pub(crate) fn hold(&self) {
        self.way.send_replace(Way::Held);
    }

    pub(crate) fn open(&self) {
        self.way.send_replace(Way::Open);
    }
}

async fn forward_all(listener: TcpListener, to: SocketAddr, way: watch::Receiver<Way>) {
    let mut connections = JoinSet::new();
    while let Ok((from, _)) = listener.accept().await {
        if *way.borrow() != Way::Cut {
            connections.spawn(forward(from, to, way.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Ends with either side, or with a cut.
async fn forward(from: TcpStream, to: SocketAddr, mut way: watch::Receiver<Way>) {
    let Ok(server) = TcpStream::connect(to).await else {
        return;
    };
    let ((worker_reads, worker_writes), (server_reads, server_writes)) =
        (from.into_split(), server.into_split());
    let sending = copy(worker_reads, server_writes, Some(way.clone()));
    let answering = copy(server_reads, worker_writes, None);
    tokio::select! {
        _ = sending => {}
        _ = answering => {}
        _ = way.wait_for(|way| *way == Way::Cut) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut way: Option<watch::Receiver<Way>>,
) -> io::Result<()> {
    let mut piece = [0; PIECE_BYTES];
    loop {
        let read = from.read(&mut piece).await?;
        if let Some(way) = &mut way {
            // Nobody opens a way whose owner is gone.
            way.wait_for(|way| *way == Way::Open)
                .await
                .map_err(io::Error::other)?;
        }
        match piece.get(..read) {
            Some([]) | None => return Ok(()),
            Some(bytes) => to.write_all(bytes).await?,
        }
    }
}
