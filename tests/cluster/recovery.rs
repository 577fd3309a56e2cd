//! A follower that comes back: after so long that the others have forgotten its entries, or with a disk that lies.

use std::path::{Path, PathBuf};

use lease_core::wire::Reply;
use tests::clock::{Deadline, SOON, wait_until};
use tests::{Client, http};

use crate::trio::{NODES, Trio, others};

/// Enough for some snapshots of nodes that take one every few entries.
const LOCKS: usize = 120;
/// Nodes that take a snapshot after some dozen entries, and keep few behind it.
const OFTEN: [&str; 4] = ["--snapshot-after", "4096", "--entries-kept", "8"];

fn form() -> Trio {
    Trio::form_by(NODES, start_often)
}

fn start_often(trio: &mut Trio, id: u64) {
    let launch = trio.launch(id).args(OFTEN);
    trio.spawn_as(id, launch);
}

fn lock(client: &mut Client, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let set = ["SET", &format!("lock-{number}"), "v", "NX"];
        assert_eq!(client.call_args(&set), Reply::OK);
    }
}

#[track_caller]
fn has_all(client: &mut Client, count: usize) {
    for number in 0..count {
        client.send(&format!("GET lock-{number}"));
    }
    for number in 0..count {
        assert_eq!(client.hear(), "\"v\"", "lock-{number} of {count}");
    }
}

/// A number that a node tells of its log; nothing if it has none.
fn index(trio: &Trio, id: u64, name: &str) -> Option<u64> {
    let answer = http::get(trio.node(id).admin(), "/v1/cluster");
    let status: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    status.get(name)?.as_u64()
}

#[test]
fn a_follower_that_was_away_for_long_catches_up_by_a_snapshot_and_needs_no_new_write() {
    let mut trio = form();
    let leader = trio.leader();
    let [away, other] = others(leader);
    lock(&mut trio.client(leader), 0..4);
    let known = wait_until("the follower has applied something", || {
        index(&trio, away, "applied_index")
    });
    trio.kill(away);
    // What a message to the other one still holds on to is dropped after a later snapshot only.
    let mut locks = 4;
    let snapshot = wait_until(
        "the leader has taken a snapshot, and dropped what comes after all that the other one knows",
        || {
            lock(&mut trio.client(leader), locks..locks + 10);
            locks += 10;
            let forgotten = index(&trio, leader, "purged_index").is_some_and(|at| at > known + 20);
            index(&trio, leader, "snapshot_index").filter(|at| forgotten && locks > LOCKS && *at > known + 60)
        },
    );

    start_often(&mut trio, away);
    trio.wait_until_ready(away);
    wait_until("it has caught up", || {
        let applied = index(&trio, away, "applied_index")?;
        (applied >= snapshot && Some(applied) >= index(&trio, leader, "committed_index")).then_some(())
    });
    let arrives = |text: &str| text.contains("a snapshot arrives").then_some(());
    let arrived = trio.node(away).stderr().wait_for(Deadline::after(SOON), arrives);
    assert!(arrived.is_some(), "{}", trio.node(away).stderr().text());

    // It counts again: without the old leader it is one of two.
    trio.kill(leader);
    trio.leader_among(&[away, other]);
    let mut client = trio.client(away);
    has_all(&mut client, locks);
    lock(&mut client, locks..locks + 10);
}

/// The files of a folder whose names end so, the newest last.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == end))
        .collect();
    found.sort();
    found
}

/// Turns one bit in the middle of a file; what it held before.
fn flip(path: &Path) -> Vec<u8> {
    let whole = std::fs::read(path).unwrap();
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    *bytes.get_mut(middle).unwrap() ^= 0x10;
    std::fs::write(path, bytes).unwrap();
    whole
}

#[test]
fn a_flipped_bit_in_a_followers_log_or_snapshot_stops_that_node_alone_which_says_how_to_come_back() {
    let mut trio = form();
    lock(&mut trio.client(1), 0..LOCKS);
    let leader = trio.leader();
    let [hurt, _] = others(leader);
    wait_until("the follower has a snapshot", || {
        index(&trio, hurt, "snapshot_index")
    });
    trio.kill(hurt);
    let mut locks = LOCKS;
    let directory = trio.directory(hurt);
    for (folder, end) in [("log", "wal"), ("snapshots", "snapshot")] {
        let path = files(&directory.join(folder), end).pop().unwrap();
        let whole = flip(&path);
        let exit = trio.launch(hurt).args(OFTEN).run_to_end();
        exit.expect_failure(&[
            directory.join(folder).to_str().unwrap(),
            "damaged",
            "On a cluster, remove this node and join it again under a new id",
        ]);
        assert_eq!(exit.code, Some(1));
        let mut client = trio.client(leader);
        lock(&mut client, locks..locks + 5);
        locks += 5;
        has_all(&mut client, locks);
        // Nothing was changed: put back, it goes on.
        std::fs::write(&path, whole).unwrap();
        start_often(&mut trio, hurt);
        trio.wait_until_ready(hurt);
        has_all(&mut trio.client(hurt), locks);
        trio.kill(hurt);
    }
    // Under its old id an empty directory does not bring it back: it would have forgotten what it promised.
    std::fs::remove_dir_all(&directory).unwrap();
    let exit = trio.launch(hurt).args(OFTEN).run_to_end();
    exit.expect_failure(&["remove it from the cluster", "under an id that was never used"]);
    has_all(&mut trio.client(leader), locks);
}
