//! What the server is told: by its command line and environment, by a file, and what holds where neither says anything.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use lease_core::limits::{ISSUED_TOKEN_MAX, VALUE_BYTES_DEFAULT};
use lease_store::{
    ClusterConfig, DEFAULT_NODE, Exposure, Flushing, ServerConfig, SnapshotCadence, StoreConfig, TokenFloor,
};
use thiserror::Error;

const DATA_DIR_DEFAULT: &str = "./lease-data";
const LISTEN_DEFAULT: SocketAddr = loopback(7420);
const ADMIN_DEFAULT: SocketAddr = loopback(7421);
const CONNECTIONS_DEFAULT: usize = 10_000;
const DATABASES_DEFAULT: u8 = 16;
const WORKERS_DEFAULT: u16 = 1;
/// Threads that serve, at the most: far beyond what the one log behind them can use.
const WORKERS_MAX: u16 = 256;

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// What one source says; what it leaves out is another's to say, or has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Settings {
    /// Where everything is kept; made if it is not there [default: ./lease-data]
    #[arg(long, env = "LEASE_STORE_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keeps everything in memory instead: a restart forgets every lease and every token. For tests
    #[arg(long, env = "LEASE_STORE_MEMORY", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", value_parser = BoolishValueParser::new())]
    pub(crate) memory: Option<bool>,
    /// Where Redis clients are served [default: 127.0.0.1:7420]
    #[arg(long, env = "LEASE_STORE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where health, metrics and state are served over HTTP [default: 127.0.0.1:7421]
    #[arg(long, env = "LEASE_STORE_ADMIN", value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,
    /// The id of this node, from 1 up [default: 1]
    #[arg(long, env = "LEASE_STORE_NODE_ID", value_name = "N")]
    pub(crate) node_id: Option<u64>,
    /// The nodes of the cluster and where their peers reach them, the same list for all: 1=host:port,2=host:port,3=host:port
    #[arg(long, env = "LEASE_STORE_CLUSTER", value_name = "LIST")]
    pub(crate) cluster: Option<ClusterConfig>,
    /// Where this node listens for its peers
    #[arg(long, env = "LEASE_STORE_PEER_LISTEN", value_name = "ADDRESS")]
    pub(crate) peer_listen: Option<SocketAddr>,
    /// A file with the password that clients must show (AUTH)
    #[arg(long, env = "LEASE_STORE_PASSWORD_FILE", value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Allows listeners off loopback without a password: whoever reaches them is trusted
    #[arg(long, env = "LEASE_STORE_INSECURE", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", value_parser = BoolishValueParser::new())]
    pub(crate) insecure: Option<bool>,
    /// Fencing tokens start above this number at this start, instead of above what the wall clock says. It cannot be taken
    /// back: no later start goes below it
    #[arg(long, env = "LEASE_STORE_TOKEN_FLOOR", value_name = "N")]
    pub(crate) token_floor: Option<u64>,
    /// Connections at once [default: 10000]
    #[arg(long, env = "LEASE_STORE_MAX_CONNECTIONS", value_name = "N")]
    pub(crate) max_connections: Option<usize>,
    /// Longest key or value of SET, in bytes [default: 1048576]
    #[arg(long, env = "LEASE_STORE_MAX_VALUE", value_name = "BYTES")]
    pub(crate) max_value: Option<usize>,
    /// Databases that SELECT reaches [default: 16]
    #[arg(long, env = "LEASE_STORE_DATABASES", value_name = "N")]
    pub(crate) databases: Option<u8>,
    /// Serves FLUSHDB and FLUSHALL, which end every lease of a database or of all: for test suites
    #[arg(long, env = "LEASE_STORE_ALLOW_FLUSH", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", value_parser = BoolishValueParser::new())]
    pub(crate) allow_flush: Option<bool>,
    /// Threads that serve. On few cores one is the fastest; the log's disk has a thread of its own [default: 1]
    #[arg(long, env = "LEASE_STORE_WORKERS", value_name = "N")]
    pub(crate) workers: Option<u16>,
    /// A snapshot after so many bytes of entries. Not for users: tests reach with it what takes a busy cluster minutes
    #[arg(long, env = "LEASE_STORE_SNAPSHOT_AFTER", value_name = "BYTES", hide = true)]
    pub(crate) snapshot_after: Option<u64>,
    /// Entries that stay behind a snapshot, for nodes that were away. Not for users, either
    #[arg(long, env = "LEASE_STORE_ENTRIES_KEPT", value_name = "N", hide = true)]
    pub(crate) entries_kept: Option<u64>,
}

/// What the server starts with.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) config: ServerConfig,
    pub(crate) workers: u16,
    pub(crate) keeps: Keeps,
}

/// Whether a restart finds what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    Everything,
    Nothing,
}

/// Settings that do not go together, or lie outside their range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SettingsError {
    #[error(
        "--memory and --data-dir cannot be given together: one keeps nothing, the other names where to keep it"
    )]
    MemoryAndDirectory,
    #[error("--cluster needs --peer-listen, where this node listens for its peers")]
    ClusterWithoutPeerListen,
    #[error("--peer-listen needs --cluster, the list of the nodes")]
    PeerListenWithoutCluster,
    #[error("--node-id must be 1 or more")]
    NodeId,
    #[error(
        "--token-floor must be below {ISSUED_TOKEN_MAX}, not {asked}: a floor above leaves no token to grant"
    )]
    TokenFloor { asked: u64 },
    #[error("--workers must be 1 to {WORKERS_MAX}, not {asked}")]
    Workers { asked: u16 },
}

impl Settings {
    /// These, and beneath them what another source says. Where everything is kept is one setting with two names: a
    /// directory that is named here beats `memory` there, and the other way round.
    ///
    /// # Errors
    /// One of the two sources says both.
    pub(crate) fn over(self, beneath: Self) -> Result<Self, SettingsError> {
        self.check_storage()?;
        beneath.check_storage()?;
        let (data_dir, memory) = match (self.data_dir, self.memory) {
            (None, None) => (beneath.data_dir, beneath.memory),
            (None, Some(false)) => (beneath.data_dir, Some(false)),
            said => said,
        };
        Ok(Self {
            data_dir,
            memory,
            listen: self.listen.or(beneath.listen),
            admin: self.admin.or(beneath.admin),
            node_id: self.node_id.or(beneath.node_id),
            cluster: self.cluster.or(beneath.cluster),
            peer_listen: self.peer_listen.or(beneath.peer_listen),
            password_file: self.password_file.or(beneath.password_file),
            insecure: self.insecure.or(beneath.insecure),
            token_floor: self.token_floor.or(beneath.token_floor),
            max_connections: self.max_connections.or(beneath.max_connections),
            max_value: self.max_value.or(beneath.max_value),
            databases: self.databases.or(beneath.databases),
            allow_flush: self.allow_flush.or(beneath.allow_flush),
            workers: self.workers.or(beneath.workers),
            snapshot_after: self.snapshot_after.or(beneath.snapshot_after),
            entries_kept: self.entries_kept.or(beneath.entries_kept),
        })
    }

    /// What the server starts with: defaults stand where nothing was said.
    ///
    /// # Errors
    /// Settings that do not go together, or lie outside their range.
    pub(crate) fn resolve(self) -> Result<Resolved, SettingsError> {
        self.check_storage()?;
        let (keeps, store) = if self.memory == Some(true) {
            (Keeps::Nothing, StoreConfig::in_memory())
        } else {
            let directory = self.data_dir.unwrap_or_else(|| DATA_DIR_DEFAULT.into());
            (Keeps::Everything, StoreConfig::in_directory(directory))
        };
        let store = match (self.cluster, self.peer_listen) {
            (Some(cluster), Some(peer_listen)) => store.cluster(cluster.listening_at(peer_listen)),
            (None, None) => store,
            (Some(_), None) => return Err(SettingsError::ClusterWithoutPeerListen),
            (None, Some(_)) => return Err(SettingsError::PeerListenWithoutCluster),
        };
        let node = self.node_id.unwrap_or(DEFAULT_NODE);
        if node == 0 {
            return Err(SettingsError::NodeId);
        }
        if let Some(asked) = self.token_floor.filter(|floor| *floor >= ISSUED_TOKEN_MAX) {
            return Err(SettingsError::TokenFloor { asked });
        }
        let workers = self.workers.unwrap_or(WORKERS_DEFAULT);
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(SettingsError::Workers { asked: workers });
        }
        let floor = self.token_floor.map_or(TokenFloor::WallClock, TokenFloor::At);
        let cadence = SnapshotCadence {
            after_bytes: self.snapshot_after,
            entries_kept: self.entries_kept,
        };
        let mut config = ServerConfig::new(
            store.node(node).token_floor(floor).snapshots(cadence),
            self.listen.unwrap_or(LISTEN_DEFAULT),
            self.admin.unwrap_or(ADMIN_DEFAULT),
        );
        config.password_file = self.password_file;
        config.exposure = match self.insecure {
            Some(true) => Exposure::Insecure,
            Some(false) | None => Exposure::Protected,
        };
        config.connections_max = self.max_connections.unwrap_or(CONNECTIONS_DEFAULT);
        config.max_value = self.max_value.unwrap_or(VALUE_BYTES_DEFAULT);
        config.databases = self.databases.unwrap_or(DATABASES_DEFAULT);
        if self.allow_flush == Some(true) {
            config.flushing = Flushing::Allowed;
        }
        Ok(Resolved {
            config,
            workers,
            keeps,
        })
    }

    fn check_storage(&self) -> Result<(), SettingsError> {
        match (self.memory, &self.data_dir) {
            (Some(true), Some(_)) => Err(SettingsError::MemoryAndDirectory),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_directory(directory: &str) -> Settings {
        Settings {
            data_dir: Some(directory.into()),
            ..Settings::default()
        }
    }

    fn in_memory() -> Settings {
        Settings {
            memory: Some(true),
            ..Settings::default()
        }
    }

    #[test]
    fn what_is_said_above_holds_and_the_rest_comes_from_beneath() {
        let above = Settings {
            workers: Some(2),
            ..Settings::default()
        };
        let beneath = Settings {
            workers: Some(3),
            max_value: Some(7),
            ..Settings::default()
        };
        let resolved = above.over(beneath).unwrap().resolve().unwrap();
        assert_eq!(
            (
                resolved.workers,
                resolved.config.max_value,
                resolved.config.databases
            ),
            (2, 7, 16)
        );
        assert_eq!(resolved.config.listen, LISTEN_DEFAULT);
    }

    #[test]
    fn where_everything_is_kept_is_said_by_one_source() {
        let merged = |above: Settings, beneath| above.over(beneath).unwrap();
        assert_eq!(merged(in_directory("a"), in_memory()), in_directory("a"));
        assert_eq!(merged(in_memory(), in_directory("a")), in_memory());
        let not_in_memory = Settings {
            memory: Some(false),
            ..Settings::default()
        };
        let kept = merged(not_in_memory, in_memory()).resolve().unwrap();
        assert_eq!(kept.keeps, Keeps::Everything);
        let mut both = in_directory("a");
        both.memory = Some(true);
        assert_eq!(
            Settings::default().over(both.clone()),
            Err(SettingsError::MemoryAndDirectory)
        );
        assert_eq!(
            both.over(Settings::default()),
            Err(SettingsError::MemoryAndDirectory)
        );
    }

    #[test]
    fn a_cluster_and_where_to_listen_for_it_go_together() {
        let mut half = Settings {
            cluster: Some("1=a:1,2=b:1".parse().unwrap()),
            ..Settings::default()
        };
        let refused = |settings: &Settings| settings.clone().resolve().map(|_| ()).unwrap_err();
        assert_eq!(refused(&half), SettingsError::ClusterWithoutPeerListen);
        half.peer_listen = Some(loopback(1));
        half.clone().resolve().unwrap();
        half.cluster = None;
        assert_eq!(refused(&half), SettingsError::PeerListenWithoutCluster);
    }
}
