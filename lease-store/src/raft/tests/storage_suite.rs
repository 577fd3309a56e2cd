//! openraft's own suite for storage, on both logs and both places for snapshots.

use std::sync::Arc;

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::TypeConfigExt as _;

use super::super::applied::AppliedMark;
use super::super::failure::FirstFailure;
use super::super::log_store::LogStore;
use super::super::retention::{Droppable, Retention};
use super::super::snapshot::SnapshotStore;
use super::super::state_machine::{StateMachine, Surroundings};
use super::super::types::Types;
use super::super::work_gate::WorkGate;
use super::counter::{Counter, NODE};
use crate::runtime::{Rt, Tokio};

type CounterTypes = Types<Tokio, u64>;
type Machine = StateMachine<Tokio, Counter>;

struct InMemory;
struct OnDisk;

fn machine(snapshots: SnapshotStore) -> Machine {
    machine_on(Arc::new(snapshots))
}

/// A machine that keeps its snapshots there.
pub(in crate::raft) fn machine_on<R: Rt>(snapshots: Arc<SnapshotStore>) -> StateMachine<R, Counter> {
    let around = Surroundings {
        retention: Retention::new(u64::MAX, Droppable::default()),
        node: NODE,
        restored: None,
        snapshots,
        failure: FirstFailure::default(),
        applied: AppliedMark::default(),
        gate: WorkGate::default(),
        snapshot_after_bytes: u64::MAX,
        snapshot_due: Arc::default(),
    };
    let (started, _) = Types::<R, u64>::watch_channel(None);
    StateMachine::new(Counter::default(), started, around)
}

impl StoreBuilder<CounterTypes, LogStore, Machine> for InMemory {
    async fn build(&self) -> Result<((), LogStore, Machine), StorageError<CounterTypes>> {
        Ok(((), LogStore::in_memory(), machine(SnapshotStore::in_memory())))
    }
}

impl StoreBuilder<CounterTypes, LogStore, Machine, tempfile::TempDir> for OnDisk {
    async fn build(&self) -> Result<(tempfile::TempDir, LogStore, Machine), StorageError<CounterTypes>> {
        let dir = tempfile::tempdir().unwrap();
        let (log, snapshots) = (dir.path().join("log"), dir.path().join("snapshots"));
        std::fs::create_dir(&log).unwrap();
        std::fs::create_dir(&snapshots).unwrap();
        let log = LogStore::on_disk(log, Arc::new(|| Ok(())), FirstFailure::default())
            .await
            .unwrap();
        Ok((dir, log, machine(SnapshotStore::in_folder(snapshots).unwrap())))
    }
}

#[tokio::test]
async fn openrafts_suite_passes_in_memory() {
    Suite::test_all(InMemory).await.unwrap();
}

#[tokio::test]
async fn openrafts_suite_passes_on_disk() {
    Suite::test_all(OnDisk).await.unwrap();
}
