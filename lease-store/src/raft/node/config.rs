//! How a node is started, and what Raft is told for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use openraft::SnapshotPolicy;

use super::super::data_dir::DataDir;
use super::super::error::StartError;
use super::super::types::Member;

/// Some half a million commands, which a restart replays in about a second.
const SNAPSHOT_AFTER_BYTES_DEFAULT: u64 = 64 * 1_024 * 1_024;

/// Nobody else needs them; a few, since none at all is a path that Raft takes nowhere else. Their number bounds what
/// stays on disk: an entry with the largest values has some megabytes.
const ENTRIES_KEPT_ALONE: u64 = 16;

/// With none at all, a follower that is sent a snapshot may find the entry behind it gone, and need another one, for ever.
/// Source: openraft's issue 1828.
const ENTRIES_KEPT_MIN: u64 = 1;

/// Some seconds of a busy cluster, so that a node that restarts finds its entries and needs no whole snapshot.
const ENTRIES_KEPT_FOR_OTHERS: u64 = 20_000;

/// The same where entries are large: what a few seconds of a busy disk write.
const BYTES_KEPT_DEFAULT: u64 = 256 * 1_024 * 1_024;

/// Where a node keeps what it must not forget.
#[derive(Debug, Clone)]
pub enum Storage {
    /// Nowhere: it forgets everything at a restart, its vote too, so it may only ever be alone.
    Memory,
    /// In a directory.
    Directory(DataDir),
}

/// What a node does at its very first start. Later starts go on from what is stored.
#[derive(Debug, Clone)]
pub enum Formation {
    /// It forms a cluster of itself alone.
    Alone,
    /// It forms a cluster with these members, itself among them. All members must be given the same list.
    With(BTreeMap<u64, Member>),
    /// It waits to be added to a cluster.
    Wait,
}

/// How a node is started.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its id, never used before by another node.
    pub node: u64,
    /// Where it keeps its state.
    pub storage: Storage,
    /// What it does at its first start.
    pub formation: Formation,
    /// Its timings.
    pub timings: Timings,
    /// Entries that stay in the log behind a snapshot. Too few: a node that was away for a moment is sent a whole
    /// snapshot. Too many: disk space.
    pub entries_kept: u64,
    /// Bytes of entries that stay behind a snapshot at the most, whatever their number; the entries since then come on top.
    /// Too few and too many: as for their number.
    pub bytes_kept: u64,
    /// Bytes of entries after which a snapshot is taken, unless the last snapshot was larger still: writing it should
    /// not cost more than the entries did. Too few: constant writing. Too many: a restart replays them all.
    pub snapshot_after_bytes: u64,
}

/// The timings of Raft, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// Between two heartbeats. Too short: idle load. Too long: it must fit several times into an election timeout.
    pub heartbeat_ms: u64,
    /// The shortest silence after which a node stands for election, beyond the time in which it votes for nobody else.
    /// Too short: a slow disk or a busy host starts elections under load.
    pub election_min_ms: u64,
    /// The longest one, and also the time in which a node that has heard a leader votes for nobody else: a failover takes
    /// the sum of both, at the least. The further from the shortest, the rarer two nodes stand at once.
    pub election_max_ms: u64,
}

impl Default for Timings {
    /// For nodes in one place, on machines that others share: one stands for election 1.25 to 1.5 s after it last heard
    /// the leader.
    fn default() -> Self {
        Self {
            heartbeat_ms: 100,
            election_min_ms: 500,
            election_max_ms: 750,
        }
    }
}

impl NodeConfig {
    /// A node among others: it keeps what one that was away for a moment needs.
    #[must_use]
    pub fn member(node: u64, storage: Storage, formation: Formation) -> Self {
        Self {
            formation,
            entries_kept: ENTRIES_KEPT_FOR_OTHERS,
            ..Self::alone(node, storage)
        }
    }

    /// A node that is alone: it keeps few entries, since nobody else needs them.
    #[must_use]
    pub fn alone(node: u64, storage: Storage) -> Self {
        Self {
            node,
            storage,
            formation: Formation::Alone,
            timings: Timings::default(),
            entries_kept: ENTRIES_KEPT_ALONE,
            bytes_kept: BYTES_KEPT_DEFAULT,
            snapshot_after_bytes: SNAPSHOT_AFTER_BYTES_DEFAULT,
        }
    }

    /// With another rhythm of snapshots, where one is given. At least one entry is kept.
    #[must_use]
    pub fn with_snapshots(mut self, after_bytes: Option<u64>, entries_kept: Option<u64>) -> Self {
        self.snapshot_after_bytes = after_bytes.unwrap_or(self.snapshot_after_bytes);
        let asked = entries_kept.map(|kept| kept.max(ENTRIES_KEPT_MIN));
        self.entries_kept = asked.unwrap_or(self.entries_kept);
        self
    }
}

pub(super) fn raft_config(config: &NodeConfig) -> Result<Arc<openraft::Config>, StartError> {
    let checked = openraft::Config {
        cluster_name: "lease-store".to_owned(),
        heartbeat_interval: config.timings.heartbeat_ms,
        election_timeout_min: config.timings.election_min_ms,
        election_timeout_max: config.timings.election_max_ms,
        enable_pre_vote: Some(true),
        // A leader that came back in its old term would answer reads before its older entries are committed.
        enable_leader_restore: Some(false),
        quorum_loss_probe_interval: Some(2_500),
        // Taken when the state machine asks for one: it counts bytes.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: config.entries_kept,
        replication_lag_threshold: 20_000,
        // One purge for a snapshot, not one for each entry; and no more left over than is kept on purpose.
        purge_batch_size: config.entries_kept.clamp(1, 1_024),
        max_payload_entries: 1_024,
        // For a whole snapshot, over any network.
        install_snapshot_timeout: 60_000,
        ..openraft::Config::default()
    }
    .validate();
    checked.map(Arc::new).map_err(|error| StartError::Raft {
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_kept_behind_a_snapshot_whatever_is_asked_for() {
        let usual = NodeConfig::alone(1, Storage::Memory);
        assert_eq!(usual.clone().with_snapshots(None, Some(0)).entries_kept, 1);
        assert_eq!(usual.clone().with_snapshots(None, Some(7)).entries_kept, 7);
        assert_eq!(
            usual.clone().with_snapshots(None, None).entries_kept,
            usual.entries_kept
        );
    }
}
