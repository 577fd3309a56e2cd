//! The data directory of a simulated node: the same small files, on a simulated disk.

use std::path::PathBuf;
use std::sync::Arc;

use super::{DataDir, DataDirError, Held, IDENTITY, INCARNATION, Place, field};
use crate::raft::simulated::SimulatedDisk;

impl DataDir {
    /// Opens what is on the disk for this node, or makes it new with this number for its cluster, and counts one more
    /// incarnation.
    ///
    /// # Errors
    /// The disk is another node's.
    pub fn simulated(disk: &SimulatedDisk, node: u64, cluster: u64) -> Result<Self, DataDirError> {
        let dir = PathBuf::from(format!("simulated disk of node {node}"));
        let number = |name, of: &str| {
            let text = disk.note(name)?;
            field(&text, of)?.parse::<u64>().ok()
        };
        let stored = number(IDENTITY, "node");
        if let Some(stored) = stored.filter(|stored| *stored != node) {
            let asked = node;
            return Err(DataDirError::OtherNode { dir, stored, asked });
        }
        let cluster = number(IDENTITY, "cluster").unwrap_or(cluster);
        disk.put_note(IDENTITY, format!("node {node}\ncluster {cluster}\n"));
        let incarnation = number(INCARNATION, "incarnation").unwrap_or(0).saturating_add(1);
        disk.put_note(INCARNATION, format!("incarnation {incarnation}\n"));
        let held = Held {
            dir,
            node,
            cluster,
            incarnation,
            place: Place::Simulated(disk.clone()),
        };
        Ok(Self { held: Arc::new(held) })
    }

    /// The disk, if it is a simulated one.
    pub(in crate::raft) fn simulated_disk(&self) -> Option<&SimulatedDisk> {
        match &self.held.place {
            Place::Folder { .. } => None,
            Place::Simulated(disk) => Some(disk),
        }
    }
}
