//! The simulated disk is a disk: openraft's own suite passes on it, and a crash takes what was not synced.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use lease_core::Timestamp;
use openraft::StorageError;
use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogReader, RaftLogStorage, RaftLogStorageExt};
use openraft::testing::log::{StoreBuilder, Suite};

use super::super::log_store::LogStore;
use super::super::state_machine::StateMachine;
use super::super::tests::counter::Counter;
use super::super::tests::storage_suite::machine_on;
use super::super::types::{LeaderId, Payload, Proposal, Types};
use super::*;
use crate::raft::failure::FirstFailure;
use crate::runtime::{AsyncRuntime as _, Rt as _};
use crate::simulation::{Chaos, ClockRate, NodeRt, Steps, begin, crash};

type T = Types<NodeRt, u64>;
type Machine = StateMachine<NodeRt, Counter>;

const NODE: u64 = 1;

struct OnSimulatedDisk;

impl StoreBuilder<T, LogStore, Machine> for OnSimulatedDisk {
    async fn build(&self) -> Result<((), LogStore, Machine), StorageError<T>> {
        begin(NODE, ClockRate::default(), Steps::Prompt);
        let disk = SimulatedDisk::new();
        Ok(((), open(&disk), machine_on(disk.snapshots())))
    }
}

fn open(disk: &SimulatedDisk) -> LogStore {
    LogStore::simulated::<NodeRt>(NODE, disk, Arc::new(|| Ok(())), FirstFailure::default())
}

fn simulate<F: Future>(test: F) -> F::Output {
    NodeRt::with_seed(3, Chaos::NONE).block_on(test)
}

fn entry(index: u64) -> Entry {
    let leader_id = LeaderId { term: 1, node_id: 7 };
    let proposal = Proposal {
        at: Timestamp::from_millis(index),
        body: Bytes::from(vec![7; 10]),
    };
    Entry {
        log_id: LogId { leader_id, index },
        payload: Payload::Normal(proposal),
    }
}

async fn append(log: &mut LogStore, from: u64, to: u64) -> Result<(), StorageError<T>> {
    let entries: Vec<Entry> = (from..to).map(entry).collect();
    RaftLogStorageExt::<T>::blocking_append(log, entries).await
}

async fn indexes(log: &mut LogStore) -> Vec<u64> {
    let entries = RaftLogReader::<T>::try_get_log_entries(log, ..).await.unwrap();
    entries.iter().map(RaftEntry::index).collect()
}

#[test]
fn openrafts_suite_passes_on_the_simulated_disk() {
    simulate(Suite::test_all(OnSimulatedDisk)).unwrap();
}

#[test]
fn a_crash_takes_what_was_not_synced_and_nothing_that_was() {
    simulate(async {
        for kept in [0, 2] {
            begin(NODE, ClockRate::default(), Steps::Prompt);
            let disk = SimulatedDisk::new();
            let mut log = open(&disk);
            append(&mut log, 0, 3).await.unwrap();
            let unanswered = NodeRt::spawn_on(NODE, async move { append(&mut log, 3, 9).await });
            NodeRt::sleep(Duration::from_micros(20)).await;
            assert_eq!(disk.unsynced(), 6);
            crash(NODE);
            assert!(unanswered.await.is_err());
            disk.lose_unsynced(kept);
            begin(NODE, ClockRate::default(), Steps::Prompt);
            let mut log = open(&disk);
            let stayed: Vec<u64> = (0..3 + kept as u64).collect();
            assert_eq!(indexes(&mut log).await, stayed);
            assert_eq!(disk.counts().lost, 6 - kept as u64);
            // It goes on from there.
            append(&mut log, stayed.len() as u64, 5).await.unwrap();
            let read = RaftLogReader::<T>::entries_stream(&mut log, 0..5).await;
            assert_eq!(read.try_collect::<Vec<_>>().await.unwrap().len(), 5);
        }
    });
}

#[test]
fn a_vote_that_was_given_outlives_every_crash() {
    simulate(async {
        begin(NODE, ClockRate::default(), Steps::Prompt);
        let disk = SimulatedDisk::new();
        let mut log = open(&disk);
        let vote = Vote {
            leader_id: LeaderId { term: 2, node_id: 1 },
            committed: false,
        };
        RaftLogStorage::<T>::save_vote(&mut log, &vote).await.unwrap();
        crash(NODE);
        disk.lose_unsynced(0);
        begin(NODE, ClockRate::default(), Steps::Prompt);
        let kept = RaftLogReader::<T>::read_vote(&mut open(&disk)).await;
        assert_eq!(kept.unwrap(), Some(vote));
    });
}

#[test]
fn the_first_failed_sync_is_the_last_operation_that_is_tried() {
    simulate(async {
        begin(NODE, ClockRate::default(), Steps::Prompt);
        let disk = SimulatedDisk::new();
        let failure = FirstFailure::default();
        let mut log = LogStore::simulated::<NodeRt>(NODE, &disk, Arc::new(|| Ok(())), failure.clone());
        append(&mut log, 0, 1).await.unwrap();
        let broken = DiskBehaviour {
            syncs: Syncs::Fail,
            ..DiskBehaviour::default()
        };
        disk.behave(broken);
        assert!(append(&mut log, 1, 2).await.is_err());
        assert!(failure.get().is_some());
        disk.behave(DiskBehaviour::default());
        assert!(append(&mut log, 2, 3).await.is_err(), "nothing is tried again");
        let vote = Vote {
            leader_id: LeaderId { term: 2, node_id: 1 },
            committed: false,
        };
        assert!(RaftLogStorage::<T>::save_vote(&mut log, &vote).await.is_err());
        assert_eq!((disk.counts().synced, disk.counts().failed), (1, 1));
    });
}
