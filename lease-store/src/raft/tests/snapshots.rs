use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use lease_core::Timestamp;

use super::super::data_dir::DataDir;
use super::super::error::{SnapshotError, StartError};
use super::super::failure::NodeFailure;
use super::super::node::{NodeConfig, NodeStatus, RaftNode, Storage};
use super::counter::{Counter, NODE, Node, add, adds, in_dir, lead, start, until};

fn config(storage: Storage) -> NodeConfig {
    NodeConfig {
        entries_kept: 8,
        snapshot_after_bytes: 8_000,
        ..NodeConfig::alone(NODE, storage)
    }
}

fn in_directory(dir: &Path) -> NodeConfig {
    config(Storage::Directory(DataDir::open(dir, NODE).unwrap()))
}

/// Adds ones until a snapshot was taken and old entries were purged.
async fn run_past_a_snapshot(node: &Node) -> u64 {
    let leading = lead(node).await;
    let mut sum = 0;
    while node.status().purged_index.is_none_or(|purged| purged < 60) {
        assert!(sum < 100_000, "nothing is purged");
        sum = add(node, &leading, 5_000 + sum, 1).await.unwrap();
    }
    sum
}

fn snapshot_files(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("snapshots")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_restart_loads_the_snapshot_and_the_entries_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(in_directory(dir.path())).await;
    let sum = run_past_a_snapshot(&node).await;
    let last = lead(&node).await;
    add(&node, &last, 1_000_000, 1_000).await.unwrap();
    node.shutdown().await.unwrap();
    let kept = snapshot_files(dir.path());
    assert!((1..=2).contains(&kept.len()), "{kept:?}");

    let (node, counter) = start(in_directory(dir.path())).await;
    let leading = lead(&node).await;
    assert_eq!(counter.count().sum, sum + 1_000);
    assert_eq!(leading.anchor.unwrap().stamp, Timestamp::from_millis(1_000_000));
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_anchor_of_cluster_time_outlives_its_entry() {
    let dir = tempfile::tempdir().unwrap();
    let (node, counter) = start(NodeConfig {
        entries_kept: 0,
        ..in_directory(dir.path())
    })
    .await;
    run_past_a_snapshot(&node).await;
    // The snapshot alone holds the last stamp, if it reaches to the end.
    let leading = lead(&node).await;
    let at = counter.count().at + 77;
    add(&node, &leading, at, 1).await.unwrap();
    let end = node.applied_next();
    node.core_for_tests().trigger().snapshot().await.unwrap();
    until("the snapshot", || {
        node.status().snapshot_index.is_some_and(|index| index + 1 >= end)
    })
    .await;
    node.shutdown().await.unwrap();

    let (node, _) = start(in_directory(dir.path())).await;
    assert_eq!(lead(&node).await.anchor.unwrap().stamp.as_millis(), at);
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_log_in_memory_is_purged_behind_snapshots_too() {
    let (node, counter) = start(config(Storage::Memory)).await;
    let sum = run_past_a_snapshot(&node).await;
    assert_eq!(counter.count().sum, sum);
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn large_entries_behind_a_snapshot_are_bounded_by_their_bytes() {
    const ENTRY: usize = 256 * 1_024;
    let (node, _) = start(NodeConfig {
        entries_kept: 20_000,
        bytes_kept: 8 * ENTRY as u64,
        snapshot_after_bytes: 4 * ENTRY as u64,
        ..NodeConfig::alone(NODE, Storage::Memory)
    })
    .await;
    let leading = lead(&node).await;
    let mut body = 1_u64.to_le_bytes().to_vec();
    body.resize(ENTRY, 7);
    let kept = |status: &NodeStatus| status.last_index.unwrap() - status.purged_index.unwrap_or(0);
    for at in 0..100 {
        let stamp = Timestamp::from_millis(5_000 + at);
        let pending = node
            .propose(stamp, Bytes::from(body.clone()), leading.id)
            .await
            .unwrap();
        pending.await.unwrap();
    }
    // What is kept, what a group of the count holds, and what comes between two snapshots. Groups of four are dropped
    // whole, so one less than the bound may be left.
    until("entries within the bound", || {
        (8 - 4..=8 + 4 + 2 * 4 + 4).contains(&kept(&node.status()))
    })
    .await;
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_damaged_snapshot_is_a_clear_error_and_is_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(in_directory(dir.path())).await;
    run_past_a_snapshot(&node).await;
    node.shutdown().await.unwrap();
    let newest = snapshot_files(dir.path()).pop().unwrap();
    let whole = fs::read(&newest).unwrap();
    for position in [0, 20, whole.len() - 20, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[position] ^= 1;
        fs::write(&newest, &damaged).unwrap();
        let error = Node::start(in_directory(dir.path()), Counter::default())
            .await
            .unwrap_err();
        // The head is read at the opening, the rest when the state is loaded.
        let named = if let StartError::Snapshot(SnapshotError::Damaged { name, .. }) = &error {
            name.clone()
        } else if let StartError::Failed(NodeFailure::Snapshot { source }) = &error
            && let SnapshotError::Damaged { name, .. } = source.as_ref()
        {
            name.clone()
        } else {
            panic!("{error}")
        };
        assert_eq!(Path::new(&named), newest.canonicalize().unwrap());
        assert_eq!(fs::read(&newest).unwrap(), damaged);
    }
    fs::write(&newest, &whole).unwrap();
    let (node, _) = in_dir(dir.path()).await;
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_log_whose_snapshot_is_gone_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(in_directory(dir.path())).await;
    run_past_a_snapshot(&node).await;
    node.shutdown().await.unwrap();
    for file in snapshot_files(dir.path()) {
        fs::remove_file(file).unwrap();
    }
    let error = Node::start(in_directory(dir.path()), Counter::default())
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::SnapshotLost { .. }), "{error}");
}

#[tokio::test]
async fn what_a_crash_left_of_a_snapshot_is_cleared() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    node.shutdown().await.unwrap();
    let left = dir
        .path()
        .join("snapshots/00000000000000000009-1-7.snapshot.unfinished");
    fs::write(&left, b"half").unwrap();
    let (node, _) = in_dir(dir.path()).await;
    assert!(!left.exists());
    node.shutdown().await.unwrap();
}

mod slow {
    //! A machine whose view takes as long to write as the test wants.

    use std::io::{self, Read, Write};
    use std::sync::{Arc, Mutex};

    use super::super::super::applier::{Applier, CannotApply, SnapshotView};
    use super::*;

    pub(super) struct Slow(pub(super) Arc<Mutex<mpsc::Receiver<()>>>);
    pub(super) struct SlowView(Arc<Mutex<mpsc::Receiver<()>>>);

    impl Applier for Slow {
        type Outcome = ();
        type View = SlowView;
        type State = ();

        fn apply(&mut self, _at: Timestamp, _body: &Bytes) -> Result<(), CannotApply> {
            Ok(())
        }

        fn view(&self) -> SlowView {
            SlowView(Arc::clone(&self.0))
        }

        fn decode(_from: &mut dyn Read) -> io::Result<()> {
            Ok(())
        }

        fn replace(&mut self, _state: ()) {}
    }

    impl SnapshotView for SlowView {
        fn encode(&self, _out: &mut dyn Write) -> io::Result<()> {
            self.0
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_secs(20))
                .map_err(io::Error::other)
        }
    }
}

#[tokio::test]
async fn entries_go_on_being_applied_while_a_snapshot_is_written() {
    let (go_on, wait) = mpsc::sync_channel(16);
    let machine = slow::Slow(std::sync::Arc::new(std::sync::Mutex::new(wait)));
    let node = RaftNode::<crate::runtime::Tokio, _>::start(config(Storage::Memory), machine)
        .await
        .unwrap();
    let mut leadership = node.leadership();
    let leading = loop {
        if let Some(super::super::leadership::Role::Leading(leading)) = leadership.changed().await {
            break leading;
        }
    };
    // Far past what makes a snapshot due; its builder waits for this test.
    for _ in 0..200 {
        node.propose(Timestamp::ZERO, adds(1), leading.id)
            .await
            .unwrap()
            .await
            .unwrap();
    }
    assert_eq!(node.status().snapshot_index, None);
    go_on.send(()).unwrap();
    until("the snapshot", || node.status().snapshot_index.is_some()).await;
    // Whatever else is being built is let go, so that the shutdown does not wait for it in vain.
    for _ in 0..8 {
        let _ = go_on.send(());
    }
    node.shutdown().await.unwrap();
}
