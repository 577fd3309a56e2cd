//! Connections: how many there may be, and for how long a peer may do nothing.
//!
//! A peer that sends no request, sends one a byte at a time, or never reads its answer costs one of a bounded number of
//! places for a bounded time, and holds up no shutdown.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::REQUEST_TIMEOUT;
use super::metrics::Metrics;
use super::stalls::Moving;

/// How long accepting pauses after it failed: descriptors may be short.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);
/// Bytes that are held of a request's head at the most: the longest path and query are below 8 KiB.
const HEAD_BYTES_MAX: usize = 32 * 1_024;

/// How patient the service is with its peers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Connections at once. More are closed unanswered.
    pub(super) connections_max: usize,
    /// How long a peer may take to send the head of a request, and how long it may be idle before one.
    pub(super) head_within: Duration,
    /// How long a peer may read nothing of an answer that waits for it.
    pub(super) read_within: Duration,
    /// How long what has begun may take to end once the service stops.
    pub(super) end_within: Duration,
}

impl Patience {
    /// Of a service in earnest.
    pub(super) const USUAL: Self = Self {
        // Four for each request that may be worked on: pools of clients keep idle ones.
        connections_max: 4_096,
        // Clients keep connections for later; one that is closed in their hands costs them a repetition.
        head_within: Duration::from_secs(60),
        read_within: Duration::from_secs(30),
        // A request that had just begun gets its answer; an export that is still read is cut off, which shows.
        end_within: REQUEST_TIMEOUT.saturating_add(Duration::from_secs(1)),
    };
}

/// Serves connections until `stop` is closed or set, then ends what has begun.
pub(super) async fn serve(
    socket: TcpListener,
    routes: Router,
    metrics: Arc<Metrics>,
    patience: Patience,
    mut stop: watch::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            // A change or a closed channel: the service stops.
            _ = stop.changed() => break,
            // First those that have ended, so that their places are free.
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                if ended.is_err() {
                    tracing::error!("a request panicked");
                }
                metrics.connections.store(connections.len(), Ordering::Relaxed);
                continue;
            }
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((peer, _)) if connections.len() < patience.connections_max => {
                connections.spawn(connection(peer, routes.clone(), patience, stop.clone()));
                metrics.connections.store(connections.len(), Ordering::Relaxed);
            }
            Ok((_, peer)) => {
                metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%peer, "refused: too many connections");
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
    // Nobody waits in the queue of a service that has stopped.
    drop(socket);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn connection(peer: TcpStream, routes: Router, patience: Patience, mut stop: watch::Receiver<()>) {
    // An answer is one write; waiting for more would only delay it. A socket that is gone shows itself soon enough.
    let _gone = peer.set_nodelay(true);
    let peer = TokioIo::new(Moving::new(peer, patience.read_within));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head_within)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(peer, TowerToHyperService::new(routes));
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        _ = stop.changed() => {
            served.as_mut().graceful_shutdown();
            match tokio::time::timeout(patience.end_within, served).await {
                Ok(ended) => ended,
                Err(_) => {
                    tracing::warn!("a request was cut off: the service stops");
                    Ok(())
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
