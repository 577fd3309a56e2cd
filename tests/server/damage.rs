//! Files that are not as they were written: a torn tail is what a crash leaves, anything else is refused.

use std::path::{Path, PathBuf};

use lease_core::wire::Reply;
use tests::Launch;

/// A data directory with so many locks in its log, and the log's file.
fn written(directory: &Path, locks: usize) -> PathBuf {
    let node = Launch::in_directory(directory).start();
    let mut client = node.client();
    for number in 0..locks {
        let set = ["SET", &format!("lock-{number}"), "v", "NX", "PX", "600000"];
        assert_eq!(client.call_args(&set), Reply::OK);
    }
    node.kill();
    let folder = directory.join("log");
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "wal"))
        .collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_bit_in_the_log_refuses_the_start_and_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let log = written(directory.path(), 50);
    let whole = std::fs::read(&log).unwrap();
    // At the start, in the middle, and well before the end: none of these is a torn tail.
    for at in [20, whole.len() / 4, whole.len() / 2, whole.len() * 3 / 4] {
        std::fs::write(&log, &whole).unwrap();
        flip(&log, at);
        let damaged = std::fs::read(&log).unwrap();
        let exit = Launch::in_directory(directory.path()).run_to_end();
        exit.expect_failure(&[log.parent().unwrap().to_str().unwrap(), "damaged", "backup"]);
        assert_eq!(std::fs::read(&log).unwrap(), damaged, "nothing was changed");
    }
    std::fs::write(&log, &whole).unwrap();
    let node = Launch::in_directory(directory.path()).start();
    assert_eq!(node.client().say("GET lock-49"), "\"v\"", "put back, it starts");
    node.stop();
}

#[test]
fn a_torn_tail_is_cut_off_and_everything_before_it_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let log = written(directory.path(), 20);
    let node = Launch::in_directory(directory.path()).start();
    let mut client = node.client();
    assert_eq!(client.say("SET last v NX"), "+OK");
    let before = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
    assert_eq!(client.say("SET torn v NX"), "+OK");
    node.kill();
    let whole = std::fs::read(&log).unwrap();
    assert!(whole.len() > before + 20);
    // As a crash leaves it that comes while the last record is written, at any of its bytes.
    let record = whole.len() - before;
    for cut in [1, 2, 5, 9, record / 2, record - 9, record - 1] {
        let torn = tempfile::tempdir().unwrap();
        copy(directory.path(), torn.path());
        let log = torn.path().join(log.strip_prefix(directory.path()).unwrap());
        std::fs::write(&log, &whole[..before + cut]).unwrap();
        let node = Launch::in_directory(torn.path()).start();
        let mut client = node.client();
        assert_eq!(client.say("GET last"), "\"v\"", "cut {cut} bytes into {record}");
        for number in 0..20 {
            assert_eq!(client.say(&format!("GET lock-{number}")), "\"v\"");
        }
        assert_eq!(client.say("SET more v NX"), "+OK");
        node.kill();
        let node = Launch::in_directory(torn.path()).start();
        assert_eq!(node.client().say("GET more"), "\"v\"");
        node.kill();
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_tail_of_zeros_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let log = written(directory.path(), 20);
    let mut bytes = std::fs::read(&log).unwrap();
    // The file had grown, and the crash came before the data.
    bytes.extend_from_slice(&[0; 4_096]);
    std::fs::write(&log, bytes).unwrap();
    let node = Launch::in_directory(directory.path()).start();
    assert_eq!(node.client().say("GET lock-19"), "\"v\"");
    node.stop();
}

#[test]
fn a_truncated_log_starts_with_what_is_whole_and_its_tokens_still_rise() {
    let directory = tempfile::tempdir().unwrap();
    let log = written(directory.path(), 20);
    let node = Launch::in_directory(directory.path()).start();
    let Reply::Integer(last) = node.client().call("LEASE.TOKEN lock-19 v") else {
        panic!()
    };
    node.kill();
    let file = std::fs::File::options().write(true).open(&log).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len - 7).unwrap();
    let node = Launch::in_directory(directory.path()).start();
    let mut client = node.client();
    assert_eq!(client.say("GET lock-10"), "\"v\"");
    assert_eq!(client.say("SET next v NX"), "+OK");
    let Reply::Integer(next) = client.call("LEASE.TOKEN next v") else {
        panic!()
    };
    assert!(
        next > last,
        "{next} after {last}: the floor of each start lies above an old copy of the log"
    );
    node.stop();
}

#[test]
fn a_small_file_that_is_damaged_is_named() {
    for name in ["identity", "incarnation"] {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path(), 1);
        let path = directory.path().join(name);
        std::fs::write(&path, "\0\0\0\0").unwrap();
        let exit = Launch::in_directory(directory.path()).run_to_end();
        exit.expect_failure(&[path.to_str().unwrap(), "damaged", "backup"]);
    }
}

#[test]
fn a_log_that_is_gone_is_never_taken_for_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let log = written(directory.path(), 5);
    std::fs::remove_file(&log).unwrap();
    let exit = Launch::in_directory(directory.path()).run_to_end();
    exit.expect_failure(&[log.parent().unwrap().to_str().unwrap(), "voted before", "backup"]);
}
