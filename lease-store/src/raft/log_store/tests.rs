use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use lease_core::Timestamp;
use openraft::storage::RaftLogStorageExt;

use super::super::types::{LeaderId, Payload, Proposal};
use super::*;
use crate::runtime::Tokio;

type T = Types<Tokio, ()>;

fn id(index: u64) -> LogId {
    let leader_id = LeaderId { term: 1, node_id: 7 };
    LogId { leader_id, index }
}

fn entry(index: u64, bytes: usize) -> Entry {
    let proposal = Proposal {
        at: Timestamp::from_millis(1_000 + index),
        body: Bytes::from(vec![u8::try_from(index).unwrap(); bytes]),
    };
    Entry {
        log_id: id(index),
        payload: Payload::Normal(proposal),
    }
}

fn vote(term: u64) -> Vote {
    let leader_id = LeaderId { term, node_id: 7 };
    Vote {
        leader_id,
        committed: true,
    }
}

async fn open(dir: &Path) -> Result<LogStore, OpenLogError> {
    LogStore::on_disk(dir.to_owned(), Arc::new(|| Ok(())), FirstFailure::default()).await
}

async fn append(log: &mut LogStore, entries: impl IntoIterator<Item = Entry> + Send) {
    let entries: Vec<Entry> = entries.into_iter().collect();
    RaftLogStorageExt::<T>::blocking_append(log, entries)
        .await
        .unwrap();
}

async fn all(log: &mut LogStore) -> Vec<Entry> {
    RaftLogReader::<T>::try_get_log_entries(log, ..).await.unwrap()
}

fn file(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|suffix| suffix == "wal"))
        .max()
        .unwrap()
}

/// A log with a record of each kind, closed.
async fn written(dir: &Path) -> Vec<Entry> {
    let mut log = open(dir).await.unwrap();
    RaftLogStorage::<T>::save_vote(&mut log, &vote(1)).await.unwrap();
    append(&mut log, (0..5).map(|index| entry(index, 20))).await;
    RaftLogStorage::<T>::truncate_after(&mut log, Some(id(3)))
        .await
        .unwrap();
    RaftLogStorage::<T>::save_committed(&mut log, Some(id(2)))
        .await
        .unwrap();
    append(&mut log, [entry(4, 30), entry(5, 0)]).await;
    RaftLogStorage::<T>::purge(&mut log, id(1)).await.unwrap();
    RaftLogStorage::<T>::save_vote(&mut log, &vote(3)).await.unwrap();
    let entries = all(&mut log).await;
    log.close().await.unwrap();
    entries
}

#[tokio::test]
async fn everything_comes_back_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let entries = written(dir.path()).await;
    let indexes: Vec<u64> = entries.iter().map(|entry| entry.log_id.index).collect();
    assert_eq!(indexes, [2, 3, 4, 5]);

    let mut log = open(dir.path()).await.unwrap();
    assert_eq!(all(&mut log).await, entries);
    assert_eq!(log.vote(), Some(vote(3)));
    assert_eq!(log.purged(), Some(id(1)));
    assert_eq!(
        RaftLogStorage::<T>::read_committed(&mut log).await.unwrap(),
        Some(id(2))
    );
    log.close().await.unwrap();
}

#[tokio::test]
async fn a_tail_that_a_crash_cut_off_is_dropped_and_the_rest_kept() {
    let dir = tempfile::tempdir().unwrap();
    let entries = written(dir.path()).await;
    let file = file(dir.path());
    let whole = fs::read(&file).unwrap();
    let mut log = open(dir.path()).await.unwrap();
    append(&mut log, [entry(6, 40)]).await;
    log.close().await.unwrap();
    let longer = fs::read(&file).unwrap();
    assert!(longer.starts_with(&whole));
    let zeros = vec![0; 50];
    let tails = [
        &longer[whole.len()..whole.len() + 1],
        &longer[whole.len()..longer.len() - 1],
        &zeros,
    ];
    for tail in tails {
        let torn = tempfile::tempdir().unwrap();
        let torn_file = torn.path().join(file.file_name().unwrap());
        fs::write(&torn_file, [&whole, tail].concat()).unwrap();
        let mut log = open(torn.path()).await.unwrap();
        assert_eq!(all(&mut log).await, entries);
        // It goes on as if the cut-off record had never been.
        append(&mut log, [entry(6, 1)]).await;
        log.close().await.unwrap();
        let mut log = open(torn.path()).await.unwrap();
        assert_eq!(all(&mut log).await.last(), Some(&entry(6, 1)));
        log.close().await.unwrap();
    }
}

#[tokio::test]
async fn no_flipped_bit_is_taken_for_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let file = file(dir.path());
    let whole = fs::read(&file).unwrap();
    let flipped_dir = tempfile::tempdir().unwrap();
    let flipped_file = flipped_dir.path().join(file.file_name().unwrap());
    for position in 0..whole.len() {
        // The lowest three turn one kind of record into another; the highest makes lengths long.
        for bit in [0, 1, 2, 7] {
            let mut flipped = whole.clone();
            flipped[position] ^= 1 << bit;
            fs::write(&flipped_file, &flipped).unwrap();
            match open(flipped_dir.path()).await {
                Err(OpenLogError::Damaged { .. }) => {}
                Err(other) => panic!("bit {bit} of byte {position}: {other}"),
                Ok(_) => panic!("bit {bit} of byte {position} of {} was not seen", whole.len()),
            }
            assert_eq!(
                fs::read(&flipped_file).unwrap(),
                flipped,
                "the damaged log was changed"
            );
        }
    }
}

#[tokio::test]
async fn entries_older_than_memory_holds_are_read_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).await.unwrap();
    append(&mut log, (0..40).map(|index| entry(index, 1 << 20))).await;
    assert!(
        matches!(log.window().read(0, 40, usize::MAX), Found::Older { .. }),
        "all is in memory"
    );
    let entries = all(&mut log).await;
    assert_eq!(entries.len(), 40);
    assert_eq!(entries[0], entry(0, 1 << 20));
    // In pieces, for the state machine.
    let stream = RaftLogReader::<T>::entries_stream(&mut log, 3..39).await;
    let streamed: Vec<Entry> = stream.try_collect().await.unwrap();
    assert_eq!(streamed, entries[3..39]);
    let few = RaftLogReader::<T>::limited_get_log_entries(&mut log, 1, 40)
        .await
        .unwrap();
    assert_eq!(few, entries[1..4]);
    log.close().await.unwrap();
}

#[tokio::test]
async fn entries_to_apply_must_begin_where_they_are_due() {
    for mut log in [
        LogStore::in_memory(),
        open(tempfile::tempdir().unwrap().path()).await.unwrap(),
    ] {
        append(&mut log, (0..10).map(|index| entry(index, 1))).await;
        RaftLogStorage::<T>::purge(&mut log, id(4)).await.unwrap();
        let stream = RaftLogReader::<T>::entries_stream(&mut log, 3..8).await;
        let found: io::Result<Vec<Entry>> = stream.try_collect().await;
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

#[tokio::test]
async fn the_mark_of_a_member_is_made_before_the_vote_is_given() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let marks = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&marks);
    let mark = Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let mut log = LogStore::on_disk(dir.path().to_owned(), mark, FirstFailure::default())
        .await
        .unwrap();
    assert_eq!(marks.load(Ordering::SeqCst), 0);
    RaftLogStorage::<T>::save_vote(&mut log, &vote(1)).await.unwrap();
    assert_eq!(marks.load(Ordering::SeqCst), 1);
    log.close().await.unwrap();
}

#[tokio::test]
async fn a_vote_whose_mark_fails_is_not_given_and_the_failure_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let failure = FirstFailure::default();
    let mark = Arc::new(|| Err(io::Error::from(io::ErrorKind::StorageFull)));
    let mut log = LogStore::on_disk(dir.path().to_owned(), mark, failure.clone())
        .await
        .unwrap();
    let error = RaftLogStorage::<T>::save_vote(&mut log, &vote(1))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(log.vote(), None);
    assert!(failure.get().is_some());
}

#[tokio::test]
async fn a_closed_log_refuses_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path()).await.unwrap();
    log.close().await.unwrap();
    assert!(RaftLogStorage::<T>::save_vote(&mut log, &vote(1)).await.is_err());
    assert!(
        RaftLogStorageExt::<T>::blocking_append(&mut log, [entry(0, 1)])
            .await
            .is_err()
    );
    assert!(log.close().await.is_err());
}
