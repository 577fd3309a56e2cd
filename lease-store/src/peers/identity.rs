//! Who this node is to its peers.

use std::sync::{Arc, OnceLock};

use thiserror::Error;

/// The node, and the cluster once it is in one. Clones share it.
#[derive(Debug, Clone)]
pub struct PeerIdentity {
    node: u64,
    cluster: Arc<OnceLock<u64>>,
}

/// A node belongs to one cluster for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this node is in cluster {is:016x} and cannot be in cluster {asked:016x}")]
pub struct OtherCluster {
    /// The cluster that it is in.
    pub is: u64,
    /// The one asked for.
    pub asked: u64,
}

impl PeerIdentity {
    /// A node that is in no cluster yet.
    #[must_use]
    pub fn new(node: u64) -> Self {
        let cluster = Arc::default();
        Self { node, cluster }
    }

    /// A node of this cluster.
    #[must_use]
    pub fn in_cluster(node: u64, cluster: u64) -> Self {
        let cluster = Arc::new(OnceLock::from(cluster));
        Self { node, cluster }
    }

    /// The node.
    #[must_use]
    pub const fn node(&self) -> u64 {
        self.node
    }

    /// The cluster, once it is known.
    #[must_use]
    pub fn cluster(&self) -> Option<u64> {
        self.cluster.get().copied()
    }

    /// Makes the cluster known, for this node's calls and for those of its peers.
    ///
    /// # Errors
    /// The node is in another one; nothing has changed.
    pub fn join(&self, cluster: u64) -> Result<(), OtherCluster> {
        let is = *self.cluster.get_or_init(|| cluster);
        let asked = cluster;
        if is == asked {
            Ok(())
        } else {
            Err(OtherCluster { is, asked })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_joins_one_cluster_and_no_other() {
        let node = PeerIdentity::new(1);
        let clone = node.clone();
        assert_eq!(node.cluster(), None);
        node.join(7).unwrap();
        node.join(7).unwrap();
        assert_eq!(node.join(8), Err(OtherCluster { is: 7, asked: 8 }));
        assert_eq!(clone.cluster(), Some(7));
    }
}
