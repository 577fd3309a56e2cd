//! The admin address: health, readiness, metrics and the state of the cluster, over HTTP.
//!
//! It only reads. The one folder of this crate that knows the HTTP framework. A peer that sends nothing, or never reads,
//! costs one of few connections for a bounded time, and holds up no shutdown.

mod routes;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::runtime::{AsyncRuntime as _, Rt as _, Tokio};
use crate::store::LeaseStore;

/// Connections at once: people, probes and a scraper or two. More are closed unanswered.
const CONNECTIONS_MAX: usize = 64;
/// How long a peer may take to send the head of a request, and how long it may be idle before one.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection lasts at the most: its last answer must have been read by then.
const CONNECTION_WITHIN: Duration = Duration::from_secs(120);
/// How long what has begun may take to end once the server stops.
const END_WITHIN: Duration = Duration::from_secs(1);
/// Bytes of the head of a request at the most: every route is short, and nothing is read of a body.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// How long accepting pauses after it failed: descriptors may be short.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// What the routes show.
#[derive(Debug, Clone)]
pub(crate) struct AdminState {
    /// The store.
    pub(crate) store: LeaseStore,
    /// Clients that are connected.
    pub(crate) connections: Arc<AtomicUsize>,
}

/// The listening socket.
#[derive(Debug)]
pub(crate) struct Admin {
    socket: TcpListener,
    state: AdminState,
}

impl Admin {
    /// Takes the address.
    pub(crate) async fn bind(address: SocketAddr, state: AdminState) -> io::Result<Self> {
        Ok(Self {
            socket: TcpListener::bind(address).await?,
            state,
        })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` is closed or set, and then ends what it has begun, within a second.
    pub(crate) async fn run(self, mut stop: watch::Receiver<()>) {
        let routes = routes::routes(self.state);
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let accepted = tokio::select! {
                biased;
                // A change or a closed channel: the server stops.
                _ = stop.changed() => break,
                accepted = self.socket.accept() => accepted,
            };
            match (accepted, Arc::clone(&room).try_acquire_owned()) {
                (Ok((socket, _)), Ok(place)) => {
                    let served = serve(socket, routes.clone(), stop.clone(), place);
                    drop(Tokio::spawn_on(0, served));
                }
                (Ok((_, peer)), Err(_)) => tracing::debug!(%peer, "refused: too many admin connections"),
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept an admin connection");
                    Tokio::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        // Whoever is not done by then is cut off with the process.
        let _ = Tokio::timeout(2 * END_WITHIN, room.acquire_many(all)).await;
    }
}

/// Serves one connection, for a bounded time.
async fn serve(
    socket: TcpStream,
    routes: Router,
    mut stop: watch::Receiver<()>,
    place: OwnedSemaphorePermit,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(routes));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        served = connection.as_mut() => {
            if let Err(error) = served {
                tracing::debug!(%error, "an admin connection broke");
            }
        }
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = Tokio::timeout(END_WITHIN, connection).await;
        }
        () = Tokio::sleep(CONNECTION_WITHIN) => {}
    }
    drop(place);
}
