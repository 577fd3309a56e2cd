//! How a store is set up.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lease_core::machine::Limits;
use thiserror::Error;

use crate::token_floor::TokenFloor;

/// The node id of a store that is alone and was given none.
pub const DEFAULT_NODE: u64 = 1;
/// How long a start may take until the node leads, unless the configuration says otherwise.
const LEAD_WITHIN_DEFAULT: Duration = Duration::from_secs(30);

/// Members of a cluster, exclusive: each entry is written by all of them.
const MEMBERS_MAX: usize = 10;

/// Where a store keeps what it must not forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageConfig {
    /// Nowhere: a restart forgets every lease and every token. For tests.
    Memory,
    /// In a directory, which only one process may use at a time.
    Directory(PathBuf),
}

/// The cluster that a node is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    pub(crate) members: BTreeMap<u64, String>,
    pub(crate) peer_listen: SocketAddr,
}

impl ClusterConfig {
    /// A cluster of these nodes, each with the `host:port` where its peers reach it; this one listens for its peers at
    /// `peer_listen`. All nodes are given the same list.
    ///
    /// # Errors
    /// [`ClusterConfigError`] if the list cannot be a cluster's.
    pub fn new(
        members: impl IntoIterator<Item = (u64, String)>,
        peer_listen: SocketAddr,
    ) -> Result<Self, ClusterConfigError> {
        let mut list = BTreeMap::new();
        for (node, address) in members {
            if node == 0 {
                return Err(ClusterConfigError::Zero);
            }
            if address
                .rsplit_once(':')
                .is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err())
            {
                return Err(ClusterConfigError::Address { node, address });
            }
            if list.values().any(|known| *known == address) || list.insert(node, address).is_some() {
                return Err(ClusterConfigError::Twice { node });
            }
        }
        match list.len() {
            0..2 => Err(ClusterConfigError::TooFew),
            MEMBERS_MAX.. => Err(ClusterConfigError::TooMany),
            _ => Ok(Self {
                members: list,
                peer_listen,
            }),
        }
    }
}

impl FromStr for ClusterConfig {
    type Err = ClusterConfigError;

    /// Reads `1=host:port,2=host:port,3=host:port`; the address to listen at is set by
    /// [`ClusterConfig::listening_at`].
    fn from_str(text: &str) -> Result<Self, ClusterConfigError> {
        let parse = |part: &str| {
            let (node, address) = part.split_once('=').ok_or_else(|| ClusterConfigError::Form {
                part: part.to_owned(),
            })?;
            let node = node.trim().parse().map_err(|_| ClusterConfigError::Form {
                part: part.to_owned(),
            })?;
            Ok((node, address.trim().to_owned()))
        };
        let members: Result<Vec<_>, ClusterConfigError> = text.split(',').map(parse).collect();
        Self::new(members?, SocketAddr::from(([127, 0, 0, 1], 0)))
    }
}

impl ClusterConfig {
    /// The same cluster, with this node listening for its peers here.
    #[must_use]
    pub const fn listening_at(mut self, peer_listen: SocketAddr) -> Self {
        self.peer_listen = peer_listen;
        self
    }

    /// Where this node listens for its peers.
    #[must_use]
    pub const fn peer_listen(&self) -> SocketAddr {
        self.peer_listen
    }
}

/// Why a list of members is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClusterConfigError {
    /// A part is not `id=host:port`.
    #[error("--cluster is 1=host:port,2=host:port,3=host:port; {part:?} is no such part")]
    Form {
        /// The part.
        part: String,
    },
    /// Node ids start at 1.
    #[error("node ids start at 1")]
    Zero,
    /// An address has no host or no port.
    #[error("the address of node {node} must be host:port, not {address:?}")]
    Address {
        /// The node.
        node: u64,
        /// What was given.
        address: String,
    },
    /// Two members share an id or an address.
    #[error("node {node} is named twice, or shares its address with another one")]
    Twice {
        /// The node.
        node: u64,
    },
    /// One node is no cluster.
    #[error(
        "a cluster has at least two nodes, and three to survive the loss of one; leave --cluster out for a single node"
    )]
    TooFew,
    /// More than a Raft cluster can use.
    #[error("a cluster has at most {MEMBERS_MAX} nodes")]
    TooMany,
}

/// When a store takes snapshots, and what it keeps beside them. What is `None` is chosen by the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotCadence {
    /// Bytes of entries after which a snapshot is taken, unless the last one was larger still. Too few: constant writing.
    /// Too many: a restart replays them all.
    pub after_bytes: Option<u64>,
    /// Entries that stay in the log behind a snapshot. Too few: a node that was away for a moment is sent a whole
    /// snapshot. Too many: disk space.
    pub entries_kept: Option<u64>,
}

/// How a store is set up.
///
/// ```
/// use lease_store::StoreConfig;
///
/// let for_tests = StoreConfig::in_memory();
/// let for_production = StoreConfig::in_directory("./lease-data");
/// # let _ = (for_tests, for_production);
/// ```
#[derive(Debug, Clone)]
pub struct StoreConfig {
    pub(crate) storage: StorageConfig,
    pub(crate) node: u64,
    pub(crate) floor: TokenFloor,
    pub(crate) limits: Option<Limits>,
    pub(crate) lead_within: Duration,
    pub(crate) cluster: Option<ClusterConfig>,
    pub(crate) snapshots: SnapshotCadence,
}

impl StoreConfig {
    /// A store that forgets everything at a restart.
    #[must_use]
    pub const fn in_memory() -> Self {
        Self::on(StorageConfig::Memory)
    }

    /// A store in a directory, which is made if it is not there.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self::on(StorageConfig::Directory(directory.into()))
    }

    const fn on(storage: StorageConfig) -> Self {
        Self {
            storage,
            node: DEFAULT_NODE,
            floor: TokenFloor::WallClock,
            limits: None,
            lead_within: LEAD_WITHIN_DEFAULT,
            cluster: None,
            snapshots: SnapshotCadence {
                after_bytes: None,
                entries_kept: None,
            },
        }
    }

    /// The node's id. It must be the one that the directory was made with, and never be used for another node.
    #[must_use]
    pub const fn node(mut self, node: u64) -> Self {
        self.node = node;
        self
    }

    /// Where the token counter starts. The default, [`TokenFloor::WallClock`], is right but for tests that want small
    /// tokens ([`TokenFloor::At`] 0) and for a host whose clock is known to be wrong.
    #[must_use]
    pub const fn token_floor(mut self, floor: TokenFloor) -> Self {
        self.floor = floor;
        self
    }

    /// The total bounds, replicated at each start. Too low: `LIMIT` under ordinary load. Too high: memory.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Makes the node part of a cluster. It needs a directory: a node that forgets its vote can vote twice.
    #[must_use]
    pub fn cluster(mut self, cluster: ClusterConfig) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// When it takes snapshots. The default is right but for tests that want to see many of them.
    #[must_use]
    pub const fn snapshots(mut self, cadence: SnapshotCadence) -> Self {
        self.snapshots = cadence;
        self
    }

    /// How long a start may take until the node leads. Too short: a long log cannot be read back in time.
    #[must_use]
    pub const fn lead_within(mut self, limit: Duration) -> Self {
        self.lead_within = limit;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_read_from_its_text_and_what_is_none_is_refused_with_the_form() {
        let cluster: ClusterConfig = "1=a:7422, 2=b:7422,3=[::1]:7422".parse().unwrap();
        assert_eq!(cluster.members.len(), 3);
        assert_eq!(cluster.members[&3], "[::1]:7422");
        let refused = |text: &str| text.parse::<ClusterConfig>().unwrap_err();
        assert!(refused("a:1,b:2").to_string().contains("1=host:port"));
        assert_eq!(refused("1=a:1"), ClusterConfigError::TooFew);
        assert_eq!(refused("1=a:1,1=b:1"), ClusterConfigError::Twice { node: 1 });
        assert_eq!(refused("1=a:1,2=a:1"), ClusterConfigError::Twice { node: 2 });
        assert_eq!(refused("0=a:1,2=b:1"), ClusterConfigError::Zero);
        assert!(matches!(
            refused("1=a,2=b:1"),
            ClusterConfigError::Address { node: 1, .. }
        ));
    }
}
