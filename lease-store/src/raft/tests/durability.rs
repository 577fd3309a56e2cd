use std::fs;
use std::path::Path;

use bytes::{BufMut as _, Bytes, BytesMut};
use lease_core::Timestamp;

use super::super::data_dir::DataDir;
use super::super::error::{OpenLogError, StartError};
use super::super::failure::NodeFailure;
use super::super::node::{NodeConfig, Storage};
use super::counter::{Counter, NODE, Node, add, in_dir, lead};

/// A body of a mebibyte that adds one.
fn large() -> Bytes {
    let mut body = BytesMut::with_capacity(1 << 20);
    body.put_u64_le(1);
    body.put_bytes(7, (1 << 20) - 8);
    body.freeze()
}

#[tokio::test]
async fn a_restart_keeps_what_was_applied() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    let leading = lead(&node).await;
    for number in 1..=10 {
        add(&node, &leading, 1_000 + number, number).await.unwrap();
    }
    node.shutdown().await.unwrap();
    drop(node);

    let (node, counter) = in_dir(dir.path()).await;
    let again = lead(&node).await;
    assert!(again.id > leading.id, "a leadership was resumed");
    let count = counter.count();
    assert_eq!((count.sum, count.entries), (55, 10));
    assert_eq!(again.anchor.unwrap().stamp.as_millis(), 1_010);
    assert_eq!(add(&node, &again, 2_000, 1).await.unwrap(), 56);
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_node_that_was_only_dropped_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    let leading = lead(&node).await;
    add(&node, &leading, 1, 3).await.unwrap();
    drop(node);
    let opened = loop {
        match DataDir::open(dir.path(), NODE) {
            Ok(opened) => break opened,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let counter = Counter::default();
    let config = NodeConfig::alone(NODE, Storage::Directory(opened));
    let node = Node::start(config, counter.clone()).await.unwrap();
    lead(&node).await;
    assert_eq!(counter.count().sum, 3);
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_log_longer_than_a_file_and_than_memory_holds_comes_back_whole() {
    let dir = tempfile::tempdir().unwrap();
    let config = |dir: &Path| NodeConfig {
        snapshot_after_bytes: u64::MAX,
        ..NodeConfig::alone(NODE, Storage::Directory(DataDir::open(dir, NODE).unwrap()))
    };
    let node = Node::start(config(dir.path()), Counter::default()).await.unwrap();
    let leading = lead(&node).await;
    for at in 0..70 {
        let pending = node
            .propose(Timestamp::from_millis(at), large(), leading.id)
            .await
            .unwrap();
        pending.await.unwrap();
    }
    node.shutdown().await.unwrap();
    assert!(
        fs::read_dir(dir.path().join("log")).unwrap().count() > 2,
        "one file holds it all"
    );

    let counter = Counter::default();
    let node = Node::start(config(dir.path()), counter.clone()).await.unwrap();
    lead(&node).await;
    assert_eq!(counter.count().sum, 70);
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_log_that_was_lost_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    lead(&node).await;
    node.shutdown().await.unwrap();
    for file in fs::read_dir(dir.path().join("log")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let opened = DataDir::open(dir.path(), NODE).unwrap();
    let config = NodeConfig::alone(NODE, Storage::Directory(opened));
    let error = Node::start(config, Counter::default()).await.unwrap_err();
    assert!(matches!(error, StartError::LogLost { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_log_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    let leading = lead(&node).await;
    for number in 1..=10 {
        add(&node, &leading, number, number).await.unwrap();
    }
    node.shutdown().await.unwrap();
    let file = log_file(dir.path());
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&file, &bytes).unwrap();
    for _ in 0..2 {
        let opened = DataDir::open(dir.path(), NODE).unwrap();
        let config = NodeConfig::alone(NODE, Storage::Directory(opened));
        let error = Node::start(config, Counter::default()).await.unwrap_err();
        assert!(
            matches!(error, StartError::Log(OpenLogError::Damaged { .. })),
            "{error}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), bytes, "the damaged log was changed");
}

#[tokio::test]
async fn a_write_that_fails_stops_the_node_and_a_restart_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    let leading = lead(&node).await;
    let mut acknowledged = add(&node, &leading, 1, 1).await.unwrap();
    // The next log file cannot be made where no folder is.
    let (log, away) = (dir.path().join("log"), dir.path().join("away"));
    fs::rename(&log, &away).unwrap();
    loop {
        assert!(acknowledged < 200, "the log goes on without its folder");
        match node.propose(Timestamp::from_millis(2), large(), leading.id).await {
            Ok(pending) => match pending.await {
                Ok(applied) => acknowledged = applied.outcome,
                Err(error) => {
                    assert!(error.may_have_applied(), "{error}");
                    break;
                }
            },
            Err(error) => panic!("refused before it failed: {error}"),
        }
    }
    let failure = node.failed().await;
    assert!(
        matches!(
            failure,
            NodeFailure::Storage {
                operation: "writing entries",
                ..
            }
        ),
        "{failure}"
    );
    assert!(add(&node, &leading, 3, 1).await.is_err());
    assert!(node.read_barrier().await.is_err());
    assert!(node.shutdown().await.is_err());
    drop(node);
    fs::rename(&away, &log).unwrap();

    let (node, counter) = in_dir(dir.path()).await;
    lead(&node).await;
    let sum = counter.count().sum;
    assert!(
        (acknowledged..=acknowledged + 1).contains(&sum),
        "{acknowledged} acknowledged, {sum} found"
    );
    node.shutdown().await.unwrap();
}

pub(super) fn log_file(dir: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|suffix| suffix == "wal"))
        .max()
        .unwrap()
}
