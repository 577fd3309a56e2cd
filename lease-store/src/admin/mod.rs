//! The admin address: health, readiness, metrics and the state of the cluster, over HTTP.
//!
//! It only reads. The one folder of this crate that knows the HTTP framework.

mod routes;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::store::LeaseStore;

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

    /// Serves until `stop` is closed or set, and then ends what it has begun.
    pub(crate) async fn run(self, mut stop: watch::Receiver<()>) {
        let stopped = async move {
            // A change or a closed channel: the server stops.
            let _ = stop.changed().await;
        };
        let served = axum::serve(self.socket, routes::routes(self.state))
            .with_graceful_shutdown(stopped)
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the admin address is not served any more");
        }
    }
}
