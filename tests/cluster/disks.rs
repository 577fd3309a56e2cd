//! L27: the disks of the nodes, which can hang; and what a power cut leaves of what they were never asked to keep.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tests::Client;
use tests::clock::now;
use tests::show::show;

use crate::load::has_no_outcome;
use crate::trio::{NODES, Trio};

/// A node answers after 2 s at the latest; the rest is the machine's, which may be busy.
const ANSWERED_WITHIN: Duration = Duration::from_secs(6);

/// Whether the disk of a node hangs: while its order stands, none of its syncs comes back.
pub(crate) struct Disks {
    orders: TempDir,
}

impl Disks {
    pub(crate) fn new() -> Self {
        Self {
            orders: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn form(&self) -> Trio {
        Trio::form_by(NODES, |trio, id| self.spawn(trio, id))
    }

    fn spawn(&self, trio: &mut Trio, id: u64) {
        let directory = trio.directory(id);
        std::fs::create_dir_all(&directory).unwrap();
        let launch = trio.launch(id).faults(&directory, &self.order(id));
        trio.spawn_as(id, launch);
    }

    pub(crate) fn hang(&self, id: u64) {
        std::fs::write(self.order(id), "sync hangs\n").unwrap();
    }

    pub(crate) fn go_on(&self, id: u64) {
        std::fs::remove_file(self.order(id)).unwrap();
    }

    fn order(&self, id: u64) -> PathBuf {
        self.orders.path().join(format!("node-{id}"))
    }
}

/// The file that a node's log grows in, and its length.
fn log(trio: &Trio, id: u64) -> (PathBuf, u64) {
    let paths = std::fs::read_dir(trio.directory(id).join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let newest = paths
        .filter(|path| path.extension().is_some_and(|end| end == "wal"))
        .max();
    let path = newest.unwrap();
    let bytes = path.metadata().unwrap().len();
    (path, bytes)
}

#[test]
fn l27_a_power_cut_that_takes_all_unsynced_writes_of_all_nodes_takes_nothing_that_was_acknowledged() {
    let disks = Disks::new();
    let mut trio = disks.form();
    let leader = trio.leader();
    let mut client = trio.client(leader);
    // Without a deadline, so that nothing but these is ever written.
    for number in 0..50 {
        assert_eq!(client.say(&format!("SET kept-{number} v NX")), "+OK");
    }
    for id in NODES {
        assert_eq!(trio.client(id).say("GET kept-49"), "\"v\"");
        disks.hang(id);
    }
    let synced = NODES.map(|id| log(&trio, id));
    let asked: Vec<(Client, _)> = NODES
        .iter()
        .map(|id| {
            let mut client = trio.client(*id);
            client.send(&format!("SET lost-{id} v NX"));
            (client, now())
        })
        .collect();
    for (mut client, sent) in asked {
        let reply = client.receive();
        assert!(
            has_no_outcome(&reply),
            "acknowledged and on no disk: {}",
            show(&reply)
        );
        assert!(sent.elapsed() < ANSWERED_WITHIN, "{:?}", sent.elapsed());
    }
    let nodes = NODES.map(|id| trio.take(id));
    for node in nodes {
        node.kill();
    }
    let mut lost = 0;
    for ((path, bytes), id) in synced.iter().zip(NODES) {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        lost += file.metadata().unwrap().len() - bytes;
        file.set_len(*bytes).unwrap();
        disks.go_on(id);
    }
    println!("{lost} bytes were written and never synced");
    assert!(lost > 0, "nothing was taken");
    for id in NODES {
        disks.spawn(&mut trio, id);
    }
    for id in NODES {
        trio.wait_until_ready(id);
    }
    let mut client = trio.client(trio.leader());
    for number in 0..50 {
        assert_eq!(
            client.say(&format!("GET kept-{number}")),
            "\"v\"",
            "kept-{number}"
        );
    }
    assert_eq!(client.say("SET after v NX"), "+OK");
}
