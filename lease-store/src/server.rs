//! The server: a store with its listeners, and the order in which they start and stop.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lease_core::limits::{DATABASES_MAX, VALUE_BYTES_DEFAULT, VALUE_BYTES_MAX};
use thiserror::Error;
use tokio::sync::watch;

use crate::admin::{Admin, AdminState};
use crate::config::{ClusterConfig, StoreConfig};
use crate::error::StoreError;
use crate::raft::failure::NodeFailure;
use crate::resp::{Flushing, Listener, Password, PasswordError, RespConfig};
use crate::runtime::{AsyncRuntime, Tasks, Tokio};
use crate::start::StartError;
use crate::store::LeaseStore;

/// How long connections may take to end once the server stops.
const CONNECTIONS_END_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the listeners may take to end; they hold nothing up.
const LISTENERS_END_WITHIN: Duration = Duration::from_secs(5);

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The store that it serves.
    pub store: StoreConfig,
    /// Where Redis clients are served.
    pub listen: SocketAddr,
    /// Where health, metrics and state are served over HTTP.
    pub admin: SocketAddr,
    /// The file with the password that clients must show.
    pub password_file: Option<PathBuf>,
    /// Whether plain text off loopback is meant.
    pub exposure: Exposure,
    /// Connections at once. Too low: clients are refused. Too high: file descriptors and memory.
    pub connections_max: usize,
    /// Longest key or value of `SET`, in bytes.
    pub max_value: usize,
    /// Databases that `SELECT` reaches.
    pub databases: u8,
    /// Whether `FLUSHDB` and `FLUSHALL` are served.
    pub flushing: Flushing,
}

/// Whether a listener that anybody can reach may be open to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Off loopback only with a password, and the admin address not at all.
    Protected,
    /// As the addresses say: whoever reaches them is trusted.
    Insecure,
}

impl ServerConfig {
    /// A server of `store` on these addresses, protected, with the default bounds.
    #[must_use]
    pub const fn new(store: StoreConfig, listen: SocketAddr, admin: SocketAddr) -> Self {
        Self {
            store,
            listen,
            admin,
            password_file: None,
            exposure: Exposure::Protected,
            connections_max: 10_000,
            max_value: VALUE_BYTES_DEFAULT,
            databases: 16,
            flushing: Flushing::Refused,
        }
    }

    fn check(&self) -> Result<(), ServerError> {
        if !(1..=VALUE_BYTES_MAX).contains(&self.max_value) {
            return Err(ServerError::MaxValue {
                asked: self.max_value,
            });
        }
        if !(1..=DATABASES_MAX).contains(&self.databases) {
            return Err(ServerError::Databases {
                asked: self.databases,
            });
        }
        if self.exposure == Exposure::Protected {
            if !self.listen.ip().is_loopback() && self.password_file.is_none() {
                return Err(ServerError::UnprotectedListen { address: self.listen });
            }
            if !self.admin.ip().is_loopback() {
                return Err(ServerError::UnprotectedAdmin { address: self.admin });
            }
            if let Some(address) = self.store.cluster.as_ref().map(ClusterConfig::peer_listen)
                && !address.ip().is_loopback()
            {
                return Err(ServerError::UnprotectedPeers { address });
            }
        }
        Ok(())
    }
}

/// Why a server does not start, or has stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Clients off this machine could do everything without a password.
    #[error(
        "refusing to listen on {address} without a password: give --password-file, listen on 127.0.0.1, or give \
         --insecure if whoever reaches it is trusted"
    )]
    UnprotectedListen {
        /// The address.
        address: SocketAddr,
    },
    /// The admin address would be open to other machines.
    #[error(
        "refusing to serve the admin address on {address}: it has no password; serve it on 127.0.0.1, or give --insecure \
         if whoever reaches it is trusted"
    )]
    UnprotectedAdmin {
        /// The address.
        address: SocketAddr,
    },
    /// Anybody could speak as a peer.
    #[error(
        "refusing to listen for peers on {address}: they are not encrypted and show no certificate; listen on 127.0.0.1, \
         or give --insecure if the network between the nodes is trusted"
    )]
    UnprotectedPeers {
        /// The address.
        address: SocketAddr,
    },
    /// `--max-value` lies outside its range.
    #[error("--max-value must be 1 to {VALUE_BYTES_MAX} bytes, not {asked}")]
    MaxValue {
        /// What was asked for.
        asked: usize,
    },
    /// `--databases` lies outside its range.
    #[error("--databases must be 1 to {DATABASES_MAX}, not {asked}")]
    Databases {
        /// What was asked for.
        asked: u8,
    },
    /// The password file cannot be used.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The store does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: is another process there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The node is unfit to go on. Everything acknowledged is on disk; start it again once the cause is mended.
    #[error("the node has failed")]
    Failed(#[source] NodeFailure),
    /// The last sync failed. Everything acknowledged is on disk.
    #[error("the store did not stop cleanly")]
    Shutdown(#[source] StoreError),
}

/// A server that serves.
#[derive(Debug)]
pub struct Server {
    store: LeaseStore,
    ready: Ready,
    stop: watch::Sender<()>,
    tasks: Tasks<Tokio>,
    connections: Arc<AtomicUsize>,
}

/// Where a server serves; shows itself as the one line that the binary prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Where Redis clients are served.
    pub resp: SocketAddr,
    /// Where HTTP is served.
    pub admin: SocketAddr,
    /// The node's id.
    pub node: u64,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ready resp={} admin=http://{} node={}",
            self.resp, self.admin, self.node
        )
    }
}

impl Server {
    /// Starts the store, then its listeners. Port 0 takes a free one; [`Server::ready`] says which.
    ///
    /// # Errors
    /// [`ServerError`] says what is wrong and what to do. Nothing is left running.
    ///
    /// # Cancel safety
    /// Not cancel safe: a start that is dropped half-way may hold the data directory until the process ends.
    pub async fn start(config: ServerConfig) -> Result<Self, ServerError> {
        config.check()?;
        let password = config
            .password_file
            .as_deref()
            .map(Password::from_file)
            .transpose()?
            .map(Arc::new);
        let store = LeaseStore::start(config.store.clone()).await?;
        let resp = RespConfig {
            password,
            connections_max: config.connections_max,
            max_value: config.max_value,
            databases: config.databases,
            flushing: config.flushing,
        };
        match Self::listen(&config, store.clone(), resp).await {
            Ok(server) => Ok(server),
            Err(error) => {
                // The reason that is returned says more than a second failure.
                let _ = store.shutdown().await;
                Err(error)
            }
        }
    }

    async fn listen(config: &ServerConfig, store: LeaseStore, resp: RespConfig) -> Result<Self, ServerError> {
        let cannot = |address| move |source| ServerError::Listen { address, source };
        let (listener, announcer) =
            Listener::bind(config.listen, store.clone(), resp).map_err(cannot(config.listen))?;
        let connections = listener.connections();
        let state = AdminState {
            store: store.clone(),
            connections: Arc::clone(&connections),
        };
        let admin = Admin::bind(config.admin, state)
            .await
            .map_err(cannot(config.admin))?;
        let ready = Ready {
            resp: listener.local_addr().map_err(cannot(config.listen))?,
            admin: admin.local_addr().map_err(cannot(config.admin))?,
            node: config.store.node,
        };
        let (stop, stopped) = watch::channel(());
        let mut tasks = Tasks::new(config.store.node);
        tasks.spawn("listener", listener.run(stopped.clone()));
        tasks.spawn("announcer", announcer.run(stopped.clone()));
        tasks.spawn("admin", admin.run(stopped));
        Ok(Self {
            store,
            ready,
            stop,
            tasks,
            connections,
        })
    }

    /// Where it serves.
    #[must_use]
    pub const fn ready(&self) -> Ready {
        self.ready
    }

    /// The store that it serves.
    #[must_use]
    pub const fn store(&self) -> &LeaseStore {
        &self.store
    }

    /// Waits until the node is unfit to go on; for ever, if it stays fit.
    ///
    /// # Cancel safety
    /// Cancel safe: a failure stays.
    pub async fn failed(&self) -> ServerError {
        ServerError::Failed(self.store.failed().await)
    }

    /// Stops: a leader hands over first; then no new clients, those there finish what they have begun, then the store.
    ///
    /// # Errors
    /// [`ServerError`] if the last sync failed. Everything acknowledged is on disk.
    ///
    /// # Cancel safety
    /// Not cancel safe: drop it only together with the process.
    pub async fn shutdown(mut self) -> Result<(), ServerError> {
        // First, while the clients here are still served: what they ask goes to the new leader then.
        self.store.hand_over().await;
        self.stop.send_replace(());
        let deadline = Tokio::sleep(CONNECTIONS_END_WITHIN);
        tokio::pin!(deadline);
        while self.connections.load(Ordering::Relaxed) > 0 {
            tokio::select! {
                biased;
                () = &mut deadline => {
                    tracing::warn!("some connections did not end in time");
                    break;
                }
                () = Tokio::sleep(LOOK_EVERY) => {}
            }
        }
        let late = self.tasks.join_all(LISTENERS_END_WITHIN).await;
        if !late.is_empty() {
            tracing::warn!(?late, "some listeners did not end in time");
        }
        self.store.shutdown().await.map_err(ServerError::Shutdown)
    }
}
