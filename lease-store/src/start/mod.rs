//! Starts a store: storage first, then Raft, then the actors, and waits until it serves.

mod assemble;
mod cluster;
mod peer_handler;
#[cfg(any(test, feature = "test-util"))]
mod simulated;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use self::assemble::{Assembly, Shared};
use crate::config::{SnapshotCadence, StorageConfig, StoreConfig};
use crate::formation::FormationError;
use crate::forward::NobodyElse;
use crate::peers::OtherCluster;
use crate::raft::data_dir::{DataDir, DataDirError};
use crate::raft::error::StartError as RaftStartError;
use crate::raft::failure::NodeFailure;
use crate::raft::node::{NodeConfig, RaftNode, Storage};
use crate::runtime::Rt;
use crate::store::{LeaseStore, Store};
use crate::token_floor::{FloorError, Opened};

/// The incarnation of a store in memory: it remembers no earlier one.
const FIRST_INCARNATION: u64 = 1;

/// Why a store does not start. Nothing was served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// What is stored cannot be used, or Raft refuses it.
    #[error(transparent)]
    Raft(#[from] RaftStartError),
    /// No token floor can be taken from the wall clock.
    #[error(transparent)]
    Clock(#[from] FloorError),
    /// The directory could not be opened off the runtime.
    #[error("cannot open the data directory {}", directory.display())]
    Open {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The node failed while it started.
    #[error("the node failed while it started")]
    Failed(#[source] Arc<NodeFailure>),
    /// A node in memory forgets its vote at a restart, and could vote twice.
    #[error(
        "a node of a cluster needs a data directory: one in memory forgets its vote, and could vote twice"
    )]
    ForgetfulMember,
    /// The cluster cannot be formed or gone on with from here.
    #[error(transparent)]
    Formation(#[from] FormationError),
    /// This node agreed to another cluster before.
    #[error("the data directory belongs to another cluster")]
    OtherCluster(#[source] OtherCluster),
    /// Peers cannot be listened for.
    #[error("cannot listen for peers on {address}: is another process there?")]
    PeerListen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The store was shut down while it started.
    #[error("the start was interrupted")]
    Interrupted,
    /// The node did not lead in time.
    #[error("the node did not lead within {within:?}: see the log for what it waits for")]
    NotLeading {
        /// How long it was given.
        within: Duration,
    },
}

impl LeaseStore {
    /// Starts a store in this process, and returns once it serves. A node of a cluster waits for the others for as long
    /// as it takes.
    ///
    /// # Errors
    /// [`StartError`] says what is wrong and what to do. Nothing was served.
    ///
    /// # Cancel safety
    /// Not cancel safe: a start that is dropped half-way may hold the data directory until the process ends.
    pub async fn start(config: StoreConfig) -> Result<Self, StartError> {
        match config.cluster.clone() {
            None => Self::start_alone(config).await,
            Some(members) => Box::pin(cluster::start(config, members)).await,
        }
    }
}

impl<R: Rt> Store<R> {
    /// Starts a store of one node.
    pub(crate) async fn start_alone(config: StoreConfig) -> Result<Self, StartError> {
        // An absurd clock is told at once, and not as a leadership that never opens.
        config.floor.at_start::<R>(Opened::Yes)?;
        let (storage, incarnation) = open_storage::<R>(&config).await?;
        let (shared, applier, schedule) = Shared::new(config.node, incarnation);
        let SnapshotCadence {
            after_bytes,
            entries_kept,
        } = config.snapshots;
        let raft = NodeConfig::alone(config.node, storage).with_snapshots(after_bytes, entries_kept);
        let node = RaftNode::start(raft, applier).await?;
        let lead_within = config.lead_within;
        let forward = Arc::new(NobodyElse);
        let store = Assembly {
            config,
            incarnation,
            node,
            schedule,
            shared,
            forward,
            peers: None,
        }
        .complete();
        store.wait_until_leading(lead_within).await?;
        Ok(store)
    }

    /// Waits for the role that serves.
    async fn wait_until_leading(&self, within: Duration) -> Result<(), StartError> {
        let mut role = self.role();
        let leading = role.wait_for(|role| role.leading().is_some());
        let led = tokio::select! {
            biased;
            led = leading => led.map(|_| ()).map_err(|_| StartError::NotLeading { within }),
            failure = self.failed() => Err(StartError::Failed(Arc::new(failure))),
            () = R::sleep(within) => Err(StartError::NotLeading { within }),
        };
        if led.is_err() {
            // The reason that is returned says more than a second failure.
            let _ = self.shutdown().await;
        }
        led
    }
}

async fn open_storage<R: Rt>(config: &StoreConfig) -> Result<(Storage, u64), StartError> {
    match &config.storage {
        StorageConfig::Memory => Ok((Storage::Memory, FIRST_INCARNATION)),
        StorageConfig::Directory(directory) => {
            let data_dir = open_directory::<R>(directory, config.node).await?;
            let incarnation = data_dir.incarnation();
            Ok((Storage::Directory(data_dir), incarnation))
        }
    }
}

async fn open_directory<R: Rt>(directory: &Path, node: u64) -> Result<DataDir, StartError> {
    let directory = directory.to_owned();
    let opening = directory.clone();
    let opened = R::run_blocking(move || DataDir::open(&opening, node)).await;
    Ok(opened.map_err(|source| StartError::Open { directory, source })??)
}
