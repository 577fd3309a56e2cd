//! What nodes say to each other: the recorded bytes, and bytes that make no sense.

use bytes::Bytes;
use lease_core::Timestamp;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderError, TransferLeaderRequest, VoteRequest,
    VoteResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::peer_rpc::{
    Nonsense, SnapshotAnswer, SnapshotBegin, SnapshotChunk, SnapshotEnd, decode, decode_append,
    decode_append_answer, decode_transfer, decode_transfer_answer, decode_vote, decode_vote_answer, encode,
    encode_append, encode_append_answer, encode_transfer, encode_transfer_answer, encode_vote,
    encode_vote_answer,
};
use super::super::records::SnapshotRecord;
use super::super::types::{Entry, LeaderId, Payload, Proposal, SnapshotMeta, StoredMembership, Types, Vote};
use super::golden::{golden, id, membership};
use crate::runtime::Tokio;

type T = Types<Tokio, u64>;

const LEADER: u64 = 2;

const LEADS: Vote = Vote {
    leader_id: LeaderId {
        term: 7,
        node_id: LEADER,
    },
    committed: true,
};
const STANDS: Vote = Vote {
    committed: false,
    ..LEADS
};

fn entry(index: u64, payload: Payload) -> Entry {
    Entry {
        log_id: id(7, LEADER, index),
        payload,
    }
}

fn commands(body: &'static [u8]) -> Payload {
    Payload::Normal(Proposal {
        at: Timestamp::from_millis(123_456_789),
        body: Bytes::from_static(body),
    })
}

fn append(entries: Vec<Entry>) -> AppendEntriesRequest<T> {
    AppendEntriesRequest {
        vote: LEADS,
        prev_log_id: Some(id(6, 1, 40)),
        entries,
        leader_commit: Some(id(6, 1, 39)),
    }
}

fn three_kinds() -> AppendEntriesRequest<T> {
    append(vec![
        entry(41, Payload::Blank),
        entry(42, commands(b"commands")),
        entry(43, Payload::Membership(membership())),
    ])
}

#[test]
fn an_append() {
    let request = three_kinds();
    let (bytes, count) = encode_append(&request).unwrap();
    assert_eq!(count, 3);
    let bytes = golden("peer-append", &bytes);
    let found = decode_append::<Tokio, u64>(LEADER, bytes.into()).unwrap();
    assert_eq!(format!("{found:?}"), format!("{request:?}"));
}

#[test]
fn the_answers_to_an_append() {
    for (name, answer) in [
        ("peer-append-success", AppendEntriesResponse::<T>::Success),
        ("peer-append-conflict", AppendEntriesResponse::Conflict),
        (
            "peer-append-higher-vote",
            AppendEntriesResponse::HigherVote(LEADS),
        ),
        (
            "peer-append-partial",
            AppendEntriesResponse::PartialSuccess(Some(id(7, 2, 41))),
        ),
    ] {
        let bytes = golden(name, &encode_append_answer(answer.clone()).unwrap());
        assert_eq!(decode_append_answer::<Tokio, u64>(&bytes).unwrap(), answer);
    }
}

#[test]
fn a_vote_and_its_answer() {
    let mut request = VoteRequest::<T>::new(STANDS, Some(id(6, 1, 40)));
    request.leadership_transfer = true;
    let bytes = golden("peer-vote", &encode_vote(&request).unwrap());
    assert_eq!(decode_vote::<Tokio, u64>(LEADER, &bytes).unwrap(), request);
    let answer = VoteResponse::<T>::new(STANDS, Some(id(6, 1, 40)), true);
    let bytes = golden("peer-vote-answer", &encode_vote_answer(&answer).unwrap());
    assert_eq!(decode_vote_answer::<Tokio, u64>(&bytes).unwrap(), answer);
}

#[test]
fn a_hand_over_and_its_answers() {
    let request = TransferLeaderRequest::<T>::new(LEADS, 3, Some(id(7, 2, 50)));
    let bytes = golden("peer-transfer", &encode_transfer(&request).unwrap());
    assert_eq!(decode_transfer::<Tokio, u64>(LEADER, &bytes).unwrap(), request);
    let changed = TransferLeaderError::VoteChanged {
        expected: LEADS,
        actual: STANDS,
    };
    let behind = TransferLeaderError::LogNotFlushed {
        expected: Some(id(7, 2, 50)),
        actual: None,
    };
    for (name, answer) in [
        ("peer-transfer-accepted", Ok(())),
        ("peer-transfer-vote-changed", Err(changed)),
        ("peer-transfer-behind", Err(behind)),
    ] {
        let bytes = golden(
            name,
            &encode_transfer_answer::<Tokio, u64>(answer.clone()).unwrap(),
        );
        assert_eq!(decode_transfer_answer::<Tokio, u64>(&bytes).unwrap(), answer);
    }
}

fn recorded<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, message: &M) {
    let bytes = golden(name, &encode(message).unwrap());
    assert_eq!(decode::<M>(&bytes).unwrap(), *message);
}

#[test]
fn a_snapshot_on_its_way() {
    let meta = SnapshotMeta {
        last_log_id: Some(id(6, 1, 1_000_000)),
        last_membership: StoredMembership::new(Some(id(1, 1, 5)), membership()),
    };
    let begin = SnapshotBegin {
        session: 0x0102_0304_0506_0708,
        vote: (&LEADS).into(),
        covers: SnapshotRecord::new(&meta, None),
        bytes: 300_000,
    };
    recorded("peer-snapshot-begin", &begin);
    assert_eq!(begin.covers.meta().unwrap(), meta);
    let chunk = SnapshotChunk {
        session: 9,
        offset: 262_144,
        bytes: Bytes::from_static(b"a piece"),
    };
    recorded("peer-snapshot-chunk", &chunk);
    let end = SnapshotEnd {
        session: 9,
        checksum: 0xDEAD_BEEF,
    };
    recorded("peer-snapshot-end", &end);
    let vote = (&LEADS).into();
    recorded("peer-snapshot-go-on", &SnapshotAnswer::GoOn);
    recorded("peer-snapshot-over", &SnapshotAnswer::Over { vote });
    let reason = "no room".to_owned();
    recorded("peer-snapshot-failed", &SnapshotAnswer::Failed { reason });
}

#[test]
fn as_many_entries_leave_as_fit_one_call_and_the_first_always() {
    let large = Bytes::from(vec![7; 5_000_000]);
    let payload = || {
        Payload::Normal(Proposal {
            at: Timestamp::ZERO,
            body: large.clone(),
        })
    };
    let two = append(vec![entry(41, payload()), entry(42, payload())]);
    assert_eq!(encode_append(&two).unwrap().1, 1);
    let many = append((41..9_000).map(|index| entry(index, Payload::Blank)).collect());
    let (bytes, count) = encode_append(&many).unwrap();
    assert!(count < many.entries.len());
    let found = decode_append::<Tokio, u64>(LEADER, bytes).unwrap();
    assert_eq!(found.entries.len(), count);
}

#[test]
fn what_raft_takes_for_granted_is_checked() {
    let decoded = |request| {
        let (bytes, _) = encode_append::<Tokio, u64>(request).unwrap();
        decode_append::<Tokio, u64>(LEADER, bytes)
    };
    let gap = append(vec![entry(41, Payload::Blank), entry(43, Payload::Blank)]);
    assert!(matches!(decoded(&gap), Err(Nonsense::Gap)));
    let late = append(vec![entry(42, Payload::Blank)]);
    assert!(matches!(decoded(&late), Err(Nonsense::Gap)));
    let uncommitted = AppendEntriesRequest {
        vote: STANDS,
        ..append(Vec::new())
    };
    assert!(matches!(decoded(&uncommitted), Err(Nonsense::Vote)));
    let (bytes, _) = encode_append::<Tokio, u64>(&append(Vec::new())).unwrap();
    let of_another = decode_append::<Tokio, u64>(LEADER + 1, bytes);
    assert!(matches!(of_another, Err(Nonsense::Vote)));
    let bytes = encode_vote(&VoteRequest::<T>::new(LEADS, None)).unwrap();
    assert!(matches!(
        decode_vote::<Tokio, u64>(LEADER, &bytes),
        Err(Nonsense::Vote)
    ));
    let asks = TransferLeaderRequest::<T>::new(LEADS, 3, None);
    let bytes = encode_transfer(&asks).unwrap();
    assert!(matches!(
        decode_transfer::<Tokio, u64>(1, &bytes),
        Err(Nonsense::Vote)
    ));
}

#[test]
fn every_cut_of_a_message_is_an_error_and_no_damage_panics() {
    let (bytes, _) = encode_append(&three_kinds()).unwrap();
    let entries_at: Vec<usize> = (1..bytes.len())
        .filter(|end| decode_append::<Tokio, u64>(LEADER, bytes.slice(..*end)).is_ok())
        .collect();
    // Only between two entries: that is a shorter message, which the length of its frame rules out.
    assert_eq!(entries_at.len(), 3, "{entries_at:?}");
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[position] ^= 1 << bit;
            // Some of these are other sound messages; frames have checksums. None may panic or take much memory.
            let _ = decode_append::<Tokio, u64>(LEADER, flipped.into());
        }
    }
    let huge = [0xFF; 64];
    assert!(decode_append::<Tokio, u64>(LEADER, Bytes::copy_from_slice(&huge)).is_err());
    assert!(decode::<SnapshotChunk>(&huge).is_err());
}
