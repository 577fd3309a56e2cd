//! Snapshots from peers: whole ones are installed, and nothing of any other stays.

use std::fs;
use std::path::Path;

use bytes::Bytes;

use super::super::peer_rpc::{SnapshotAnswer, SnapshotBegin, SnapshotChunk, SnapshotEnd, decode, encode};
use super::super::peer_service::RaftService;
use super::super::records::SnapshotRecord;
use super::super::snapshot::SnapshotStore;
use super::super::types::{LeaderId, SnapshotMeta, StoredMembership, Vote};
use super::counter::{Count, Counter, Node, in_dir, lead};
use super::golden::{id, membership};
use super::trio::eventually;
use crate::peers::{Kind, PeerHandler as _, Refusal};
use crate::runtime::Tokio;

const SENDER: u64 = 2;

/// What a leader that is node 2 sends of its state.
struct Sent {
    meta: SnapshotMeta,
    vote: Vote,
    bytes: Vec<u8>,
    session: u64,
}

fn sent() -> Sent {
    let meta = SnapshotMeta {
        last_log_id: Some(id(90, SENDER, 1_000)),
        last_membership: StoredMembership::new(Some(id(90, SENDER, 5)), membership()),
    };
    let count = Count {
        sum: 77,
        entries: 9,
        at: 5,
        ballast: vec![3; 100_000],
    };
    let stored = SnapshotStore::in_memory().write(&meta, None, &count).unwrap();
    let mut outgoing = stored.data.outgoing().unwrap();
    let bytes = outgoing.next(1_000_000).unwrap().to_vec();
    assert_eq!(outgoing.bytes(), bytes.len() as u64);
    assert!(outgoing.next(10).unwrap().is_empty());
    let leader_id = LeaderId {
        term: 91,
        node_id: SENDER,
    };
    let committed = true;
    let vote = Vote { leader_id, committed };
    let session = 1;
    Sent {
        meta,
        vote,
        bytes,
        session,
    }
}

/// A node that takes snapshots.
struct Taker {
    dir: tempfile::TempDir,
    node: Node,
    counter: Counter,
    service: RaftService<Tokio, Counter>,
}

impl Taker {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (node, counter) = in_dir(dir.path()).await;
        lead(&node).await;
        let service = RaftService::new();
        service.serve(&node);
        Self {
            dir,
            node,
            counter,
            service,
        }
    }

    async fn ask(&self, kind: Kind, body: Bytes) -> Result<SnapshotAnswer, Refusal> {
        let answer = self.service.handle(SENDER, kind, body).await?;
        Ok(decode(&answer).unwrap())
    }

    async fn begin(&self, sent: &Sent) -> Result<SnapshotAnswer, Refusal> {
        let begin = SnapshotBegin {
            session: sent.session,
            vote: (&sent.vote).into(),
            covers: SnapshotRecord::new(&sent.meta, None),
            bytes: sent.bytes.len() as u64,
        };
        self.ask(Kind::SnapshotBegin, encode(&begin).unwrap()).await
    }

    async fn chunk(&self, sent: &Sent, from: usize, to: usize) -> SnapshotAnswer {
        let chunk = SnapshotChunk {
            session: sent.session,
            offset: from as u64,
            bytes: Bytes::copy_from_slice(&sent.bytes[from..to]),
        };
        self.ask(Kind::SnapshotChunk, encode(&chunk).unwrap())
            .await
            .unwrap()
    }

    async fn end(&self, sent: &Sent, checksum: u32) -> SnapshotAnswer {
        let session = sent.session;
        let end = encode(&SnapshotEnd { session, checksum }).unwrap();
        self.ask(Kind::SnapshotEnd, end).await.unwrap()
    }

    /// Sends all of it, with its own sum.
    async fn whole(&self, sent: &Sent) -> SnapshotAnswer {
        assert_eq!(self.begin(sent).await, Ok(SnapshotAnswer::GoOn));
        let half = sent.bytes.len() / 2;
        assert_eq!(self.chunk(sent, 0, half).await, SnapshotAnswer::GoOn);
        assert_eq!(
            self.chunk(sent, half, sent.bytes.len()).await,
            SnapshotAnswer::GoOn
        );
        self.end(sent, crc32fast::hash(&sent.bytes)).await
    }

    fn unfinished(&self) -> usize {
        unfinished(self.dir.path())
    }

    /// It is as it was, and well.
    async fn expect_untouched(self) {
        eventually("nothing unfinished is left", || self.unfinished() == 0).await;
        assert_eq!(self.counter.count(), Count::default());
        assert!(self.node.failure().is_none());
        self.node.shutdown().await.unwrap();
    }
}

fn unfinished(dir: &Path) -> usize {
    let files = fs::read_dir(dir.join("snapshots")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".snapshot")).count()
}

fn failed(answer: &SnapshotAnswer) -> &str {
    match answer {
        SnapshotAnswer::Failed { reason } => reason,
        SnapshotAnswer::GoOn | SnapshotAnswer::Over { .. } => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn a_whole_snapshot_is_in_force_and_there_after_a_restart() {
    let taker = Taker::start().await;
    let sent = sent();
    let vote = (&sent.vote).into();
    assert_eq!(taker.whole(&sent).await, SnapshotAnswer::Over { vote });
    assert_eq!(taker.counter.count().sum, 77);
    assert_eq!(taker.node.applied_next(), 1_001);
    assert_eq!(taker.unfinished(), 0);
    taker.node.shutdown().await.unwrap();
    let (node, counter) = in_dir(taker.dir.path()).await;
    assert_eq!(counter.count().ballast.len(), 100_000);
    node.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_same_snapshot_a_second_time_leaves_nothing_behind() {
    let taker = Taker::start().await;
    let mut sent = sent();
    taker.whole(&sent).await;
    sent.session = 2;
    let vote = (&sent.vote).into();
    assert_eq!(taker.whole(&sent).await, SnapshotAnswer::Over { vote });
    assert_eq!(taker.unfinished(), 0);
    taker.node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_whose_bytes_changed_on_the_way_is_refused() {
    let taker = Taker::start().await;
    let sent = sent();
    assert_eq!(taker.begin(&sent).await, Ok(SnapshotAnswer::GoOn));
    assert_eq!(taker.unfinished(), 1);
    taker.chunk(&sent, 0, sent.bytes.len()).await;
    let answer = taker.end(&sent, crc32fast::hash(&sent.bytes) ^ 1).await;
    assert!(failed(&answer).contains("damaged"), "{answer:?}");
    taker.expect_untouched().await;
}

#[tokio::test]
async fn a_snapshot_that_was_damaged_at_its_sender_is_refused_and_does_not_bring_the_node_down() {
    for position in [3, 40, 50_000] {
        let taker = Taker::start().await;
        let mut sent = sent();
        sent.bytes[position] ^= 1;
        let answer = taker.whole(&sent).await;
        assert!(failed(&answer).contains("damaged"), "{answer:?}");
        taker.expect_untouched().await;
    }
}

#[tokio::test]
async fn a_snapshot_that_covers_something_else_than_was_announced_is_refused() {
    let taker = Taker::start().await;
    let mut sent = sent();
    sent.meta.last_log_id = Some(id(90, SENDER, 1_001));
    let answer = taker.whole(&sent).await;
    assert!(failed(&answer).contains("announced"), "{answer:?}");
    taker.expect_untouched().await;
}

#[tokio::test]
async fn pieces_that_are_missing_doubled_or_too_many_end_the_sending() {
    let taker = Taker::start().await;
    let mut sent = sent();
    for (from, to) in [(10, 20), (0, 10)] {
        sent.session += 1;
        assert_eq!(taker.begin(&sent).await, Ok(SnapshotAnswer::GoOn));
        if from == 0 {
            assert_eq!(taker.chunk(&sent, from, to).await, SnapshotAnswer::GoOn);
        }
        let again = taker.chunk(&sent, from, to).await;
        assert!(failed(&again).contains("pieces"), "{again:?}");
        // It is gone with its file: what follows finds nothing.
        failed(&taker.chunk(&sent, 0, 10).await);
        assert_eq!(taker.unfinished(), 0);
    }
    sent.session += 1;
    assert_eq!(taker.begin(&sent).await, Ok(SnapshotAnswer::GoOn));
    taker.chunk(&sent, 0, 10).await;
    failed(&taker.end(&sent, 0).await);
    taker.expect_untouched().await;
}

#[tokio::test]
async fn a_sender_that_begins_anew_ends_what_it_began_before() {
    let taker = Taker::start().await;
    let mut sent = sent();
    assert_eq!(taker.begin(&sent).await, Ok(SnapshotAnswer::GoOn));
    sent.session = 2;
    assert_eq!(taker.begin(&sent).await, Ok(SnapshotAnswer::GoOn));
    assert_eq!(taker.unfinished(), 1);
    sent.session = 1;
    failed(&taker.chunk(&sent, 0, 10).await);
    sent.session = 2;
    assert_eq!(taker.chunk(&sent, 0, 10).await, SnapshotAnswer::GoOn);
    drop(taker.service);
    eventually("what was begun goes with the service", || {
        unfinished(taker.dir.path()) == 0
    })
    .await;
    taker.node.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_leader_that_is_over_is_told_so_before_it_sends_anything() {
    let taker = Taker::start().await;
    let mut old = sent();
    old.vote.leader_id.term = 0;
    old.meta.last_log_id = Some(id(0, SENDER, 1_000));
    let Ok(SnapshotAnswer::Over { vote }) = taker.begin(&old).await else {
        panic!()
    };
    assert!(Vote::from(vote) > old.vote);
    taker.expect_untouched().await;
}

#[tokio::test]
async fn a_snapshot_that_holds_more_than_its_leader_can_have_written_is_refused() {
    let taker = Taker::start().await;
    let mut sent = sent();
    sent.meta.last_log_id = Some(id(92, SENDER, 1_000));
    assert_eq!(taker.begin(&sent).await, Err(Refusal::Malformed));
    taker.expect_untouched().await;
}

/// Its cluster has the same id and another history: somebody has put back an old copy of a directory.
#[tokio::test]
async fn l22_a_snapshot_that_contradicts_what_is_committed_is_refused_and_the_node_goes_on() {
    let taker = Taker::start().await;
    let committed = taker.node.status().committed_index.unwrap();
    let mut other = sent();
    other.meta.last_log_id = Some(id(90, SENDER, committed));
    let count = Count {
        sum: 5,
        ..Count::default()
    };
    let stored = SnapshotStore::in_memory()
        .write(&other.meta, None, &count)
        .unwrap();
    other.bytes = stored.data.outgoing().unwrap().next(1_000_000).unwrap().to_vec();
    let answer = taker.whole(&other).await;
    assert!(failed(&answer).contains("contradicts"), "{answer:?}");
    taker.expect_untouched().await;
}

#[tokio::test]
async fn a_node_whose_raft_does_not_run_yet_says_so() {
    let service = RaftService::<Tokio, Counter>::new();
    let answer = service.handle(SENDER, Kind::Vote, Bytes::new()).await;
    assert_eq!(answer, Err(Refusal::NotReady));
}
