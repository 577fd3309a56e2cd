//! Starts a node of a simulated cluster: all that a real one does, on a simulated disk and over the network in memory.

use std::sync::Arc;

use tokio::sync::watch;

use super::StartError;
use super::cluster::{Here, Introduction, RaftSize};
use crate::config::{ClusterConfig, StoreConfig};
use crate::keeper::PeerServing;
use crate::peers::memory::MemoryNet;
use crate::raft::data_dir::DataDir;
use crate::raft::simulated::SimulatedDisk;
use crate::runtime::{Rt, Tasks};
use crate::store::Store;

/// Entries that stay in the log behind a snapshot: few, so that a node that was away needs a snapshot.
const ENTRIES_KEPT: u64 = 8;
/// Bytes of entries after which a snapshot is taken: few, so that there are many.
const SNAPSHOT_AFTER_BYTES: u64 = 4 * 1_024;

impl<R: Rt> Store<R> {
    /// Starts a node of a cluster, and returns once it serves. It waits for the others for as long as it takes.
    ///
    /// # Errors
    /// [`StartError`], as for a real node.
    ///
    /// # Cancel safety
    /// Not cancel safe: drop it only together with the node.
    pub async fn start_simulated(
        config: StoreConfig,
        cluster: ClusterConfig,
        disk: &SimulatedDisk,
        net: &MemoryNet<R>,
    ) -> Result<Self, StartError> {
        let node = config.node;
        let data_dir = DataDir::simulated(disk, node, R::random_u64())?;
        let introduction = Introduction::new(&cluster, &data_dir)?;
        net.attach(node, Arc::clone(&introduction.handler));
        let here = Here {
            config,
            raft: RaftSize {
                entries_kept: Some(ENTRIES_KEPT),
                snapshot_after_bytes: Some(SNAPSHOT_AFTER_BYTES),
            },
            data_dir,
            introduction,
            peers: net.transport(node),
        };
        let joined = here.join_cluster(&cluster).await?;
        let (stop, _) = watch::channel(());
        let net = net.clone();
        let serving = PeerServing::new(stop, Tasks::new(node), move || net.detach(node));
        joined.complete(serving).await
    }
}
