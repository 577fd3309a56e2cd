//! The ledger as a service for every language, over HTTP. The one folder of this crate that knows the HTTP framework.
//!
//! It turns requests into calls of [`Ledger`] and answers into JSON; it decides nothing. An answer is sent when the store
//! has given it, so not before the barrier or the commit.

mod access;
mod claims;
mod connections;
#[cfg(test)]
mod connections_tests;
mod fences;
mod metrics;
mod outbox;
mod payments;
mod problem;
mod request;
mod stalls;
#[cfg(test)]
mod tests;
mod whole;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use self::access::Access;
use self::connections::Patience;
use self::metrics::Metrics;
use crate::ledger::Ledger;

/// Bytes of a request's body at the most: a batch of the longest claims.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Requests that are worked on at once at the most; more are told to come back.
const REQUESTS_MAX: usize = 1_024;
/// How long a request may take from its first byte to its answer, an audit and an export excepted. A client that sends
/// its body a byte at a time ends here.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the service does not listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The address cannot be had.
    #[error("could not listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The address is not of this machine alone, and everybody would be let in.
    #[error("{address} can be reached from other machines: a token is needed, or the word that none is")]
    Open {
        /// The address.
        address: SocketAddr,
    },
}

/// A listening service.
#[derive(Debug)]
pub struct Service {
    socket: TcpListener,
    address: SocketAddr,
    state: State,
    patience: Patience,
}

/// What all routes share.
#[derive(Debug, Clone)]
pub(crate) struct State {
    ledger: Ledger,
    access: Arc<Access>,
    metrics: Arc<Metrics>,
}

impl Service {
    /// Takes the address. Nothing is answered until [`Service::run`].
    ///
    /// # Errors
    /// [`ServiceError`]. Nothing was applied.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn bind(ledger: Ledger, address: SocketAddr, access: Access) -> Result<Self, ServiceError> {
        if !address.ip().is_loopback() && access == Access::LoopbackOnly {
            return Err(ServiceError::Open { address });
        }
        let listen = |source| ServiceError::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(listen)?;
        Ok(Self {
            address: socket.local_addr().map_err(listen)?,
            socket,
            state: State {
                ledger,
                access: Arc::new(access),
                metrics: Arc::new(Metrics::new(REQUESTS_MAX)),
            },
            patience: Patience::USUAL,
        })
    }

    /// The address, with the port that was chosen.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is done or the ledger has ended; then takes no more connections, and ends what it has begun.
    ///
    /// # Cancel safety
    /// A dropped call cuts connections off; what was asked may or may not have been applied.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let ledger = self.state.ledger.clone();
        let metrics = Arc::clone(&self.state.metrics);
        let (going, stopped) = watch::channel(());
        let served = connections::serve(self.socket, routes(self.state), metrics, self.patience, stopped);
        let told = async move {
            tokio::select! {
                () = stop => {}
                _ended = ledger.ended() => {}
            }
            drop(going);
        };
        tokio::join!(served, told);
    }
}

fn routes(state: State) -> Router {
    let quick = Router::new()
        .route("/v1/claims", post(claims::claim).get(claims::find))
        .route("/v1/claims/batch", post(claims::batch))
        .route("/v1/claims/{player_id}/{reward_event_id}", get(claims::record))
        .route(
            "/v1/claims/{player_id}/{reward_event_id}/reversal",
            post(claims::reverse),
        )
        .route("/v1/fences/{resource}", get(fences::get))
        .route("/v1/fences/{resource}/reset", post(fences::reset))
        .route("/v1/outbox", get(outbox::list))
        .route("/v1/outbox/{delivery_id}/retry", post(outbox::retry))
        .route("/v1/outbox/{delivery_id}/discard", post(outbox::discard))
        .route("/v1/payments", post(payments::start))
        .route("/v1/payments/{order_id}", get(payments::list))
        .route(
            "/v1/payments/{order_id}/{attempt_id}/report",
            post(payments::report),
        )
        .route(
            "/v1/payments/{order_id}/{attempt_id}/judgement",
            post(payments::judge),
        )
        .layer(from_fn(request::in_time));
    let slow = Router::new()
        .route("/v1/audit", get(whole::audit))
        .route("/v1/export", get(whole::export));
    let guarded = quick
        .merge(slow)
        .layer(from_fn_with_state(state.clone(), request::admit))
        .layer(from_fn_with_state(state.clone(), access::check));
    Router::new()
        .route("/healthz", get(metrics::healthz))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(whole::openapi))
        .merge(guarded)
        .fallback(request::no_such_route)
        .method_not_allowed_fallback(request::no_such_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(state.clone(), metrics::count))
        .with_state(state)
}
