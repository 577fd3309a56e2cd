//! How a store is set up.

use std::path::PathBuf;
use std::time::Duration;

use lease_core::machine::Limits;

use crate::token_floor::TokenFloor;

/// The node id of a store that is alone and was given none.
pub const DEFAULT_NODE: u64 = 1;
/// How long a start may take until the node leads, unless the configuration says otherwise.
const LEAD_WITHIN_DEFAULT: Duration = Duration::from_secs(30);

/// Where a store keeps what it must not forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageConfig {
    /// Nowhere: a restart forgets every lease and every token. For tests.
    Memory,
    /// In a directory, which only one process may use at a time.
    Directory(PathBuf),
}

/// How a store of one node is set up.
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

    /// How long a start may take until the node leads. Too short: a long log cannot be read back in time.
    #[must_use]
    pub const fn lead_within(mut self, limit: Duration) -> Self {
        self.lead_within = limit;
        self
    }
}
