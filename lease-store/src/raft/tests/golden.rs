//! The bytes of everything stored, held by files in `tests/data/raft/`.
//!
//! A difference means that a log or snapshot written by the build before cannot be read any more: it needs a new format
//! number and a way to read the old one. `UPDATE=1` writes the files anew, for a new kind of record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use lease_core::Timestamp;
use raft_log::codeq::{Decode, Encode};

use super::super::log_store::frames::{LogIdFrame, PayloadFrame, VoteFrame};
use super::super::records::SnapshotRecord;
use super::super::snapshot::format::{SnapshotReader, SnapshotWriter};
use super::super::types::{
    LeaderId, LogId, Member, Membership, Payload, Proposal, SnapshotMeta, StoredMembership, Vote,
};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/raft")
        .join(format!("{name}.hex"))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        for byte in line {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Compares with the golden file, and gives back its bytes.
pub(super) fn golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = path(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, hex(bytes)).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(hex(bytes), text, "{name} is stored differently");
    unhex(&text)
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = value.encode(&mut bytes).unwrap();
    assert_eq!(length, bytes.len());
    bytes
}

pub(super) fn id(term: u64, node_id: u64, index: u64) -> LogId {
    let leader_id = LeaderId { term, node_id };
    LogId { leader_id, index }
}

pub(super) fn membership() -> Membership {
    let nodes: BTreeMap<u64, Member> = [1, 2, 3]
        .map(|node| {
            (
                node,
                Member {
                    address: format!("10.0.0.{node}:7421"),
                },
            )
        })
        .into();
    Membership::new(vec![BTreeSet::from([1, 2]), BTreeSet::from([2, 3])], nodes).unwrap()
}

#[test]
fn the_id_of_an_entry() {
    let frame = LogIdFrame(id(3, 0xFFFF_FFFF_0000_0001, 42));
    let bytes = golden("log-id", &encoded(&frame));
    assert_eq!(LogIdFrame::decode(bytes.as_slice()).unwrap(), frame);
}

#[test]
fn a_vote() {
    for (name, committed) in [("vote-committed", true), ("vote-open", false)] {
        let leader_id = LeaderId { term: 7, node_id: 2 };
        let frame = VoteFrame(Vote { leader_id, committed });
        let bytes = golden(name, &encoded(&frame));
        assert_eq!(VoteFrame::decode(bytes.as_slice()).unwrap(), frame);
    }
}

#[test]
fn the_payload_of_an_entry() {
    let proposal = Proposal {
        at: Timestamp::from_millis(123_456_789),
        body: Bytes::from_static(b"commands"),
    };
    for (name, payload) in [
        ("payload-blank", Payload::Blank),
        ("payload-commands", Payload::Normal(proposal)),
        ("payload-membership", Payload::Membership(membership())),
    ] {
        let bytes = golden(name, &encoded(&PayloadFrame(payload.clone())));
        assert_eq!(PayloadFrame::decode(bytes.as_slice()).unwrap().0, payload);
    }
}

#[test]
fn a_snapshot() {
    let meta = SnapshotMeta {
        last_log_id: Some(id(9, 2, 1_000_000)),
        last_membership: StoredMembership::new(Some(id(1, 1, 5)), membership()),
    };
    let head = SnapshotRecord::new(&meta, Some(Timestamp::from_millis(77_000)));
    let mut writer = SnapshotWriter::begin(Vec::new(), &head).unwrap();
    std::io::Write::write_all(&mut writer, b"the state").unwrap();
    let (bytes, _) = writer.finish().unwrap();
    let bytes = golden("snapshot", &bytes);
    let (found, mut reader) = SnapshotReader::begin(bytes.as_slice()).unwrap();
    assert_eq!(found.meta().unwrap(), meta);
    assert_eq!(found.last_stamp(), Some(Timestamp::from_millis(77_000)));
    let mut state = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut state).unwrap();
    assert_eq!(state, b"the state");
    reader.finish().unwrap();
}
