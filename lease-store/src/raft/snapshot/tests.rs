use std::io::Write;

use super::super::tests::counter::{Count, Counter};
use super::super::types::{LeaderId, LogId, StoredMembership};
use super::*;

fn meta(index: u64) -> SnapshotMeta {
    let leader_id = LeaderId { term: 2, node_id: 7 };
    SnapshotMeta {
        last_log_id: Some(LogId { leader_id, index }),
        last_membership: StoredMembership::default(),
    }
}

fn count(sum: u64) -> Count {
    Count {
        sum,
        entries: 1,
        at: 5,
        ballast: vec![3; 100_000],
    }
}

#[test]
fn the_newest_snapshot_is_found_again_and_two_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = SnapshotStore::in_folder(dir.path().to_owned()).unwrap();
    assert!(store.current().is_none());
    for index in [9, 10, 100] {
        store
            .write(&meta(index), Some(Timestamp::from_millis(index)), &count(index))
            .unwrap();
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), KEPT_MAX);

    let store = SnapshotStore::in_folder(dir.path().to_owned()).unwrap();
    let current = store.current().unwrap();
    assert_eq!(current.meta, meta(100));
    let (head, state) = current.data.decode::<Counter>().unwrap();
    assert_eq!(head.last_stamp(), Some(Timestamp::from_millis(100)));
    assert_eq!(state, count(100));
}

#[test]
fn a_snapshot_from_elsewhere_is_copied_in_and_checked() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = SnapshotStore::in_folder(theirs.path().to_owned()).unwrap();
    let sent = from.write(&meta(30), None, &count(30)).unwrap();
    for to in [
        SnapshotStore::in_folder(ours.path().to_owned()).unwrap(),
        SnapshotStore::in_memory(),
    ] {
        let (_, state) = to.adopt::<Counter>(&sent.meta, &sent.data).unwrap();
        assert_eq!(state, count(30));
        assert_eq!(to.current().unwrap().meta, meta(30));
        assert!(matches!(
            to.adopt::<Counter>(&meta(31), &sent.data),
            Err(SnapshotError::Mismatch { .. })
        ));
        assert_eq!(
            to.current().unwrap().meta,
            meta(30),
            "a mismatch was put in place"
        );
    }
    assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 1, "a draft stayed");
}

#[test]
fn a_damaged_snapshot_from_elsewhere_is_not_put_in_place() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = SnapshotStore::in_folder(theirs.path().to_owned()).unwrap();
    let sent = from.write(&meta(30), None, &count(30)).unwrap();
    let SnapshotData::File(path) = &sent.data else {
        panic!("not a file")
    };
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
    let to = SnapshotStore::in_folder(ours.path().to_owned()).unwrap();
    assert!(matches!(
        to.adopt::<Counter>(&sent.meta, &sent.data),
        Err(SnapshotError::Damaged { .. })
    ));
    assert!(to.current().is_none());
    assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 0, "a draft stayed");
}

#[test]
fn an_older_snapshot_never_replaces_a_newer_one() {
    let store = SnapshotStore::in_memory();
    store.write(&meta(50), None, &count(50)).unwrap();
    store.write(&meta(40), None, &count(40)).unwrap();
    assert_eq!(store.current().unwrap().meta, meta(50));
}

#[test]
fn a_view_that_cannot_be_written_leaves_nothing() {
    struct Broken;
    impl SnapshotView for Broken {
        fn encode(&self, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(&[0; 200_000])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let store = SnapshotStore::in_folder(dir.path().to_owned()).unwrap();
    let error = store.write(&meta(1), None, &Broken).unwrap_err();
    assert!(
        matches!(
            error,
            SnapshotError::Io {
                operation: "write",
                ..
            }
        ),
        "{error}"
    );
    assert!(store.current().is_none());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
