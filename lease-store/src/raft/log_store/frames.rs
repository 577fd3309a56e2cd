//! The bytes of one field in a log record, laid out so that no flipped bit is taken for a torn tail.
//!
//! raft-log ends each record with a checksum, and drops a last record that ends before it should: a write that a
//! crash cut off was never acknowledged. A flipped bit in a *length* looks the same, and would silently drop
//! acknowledged entries. So each field here has a fixed length, or a length with a checksum of its own; and ids and
//! votes are equally long, so that a record whose type was flipped fails a checksum before it runs past the end.

use std::io::{self, Read, Write};

use raft_log::codeq;

use super::super::codec::{self, RECORD_BYTES_MAX};
use super::super::records::PayloadRecord;
use super::super::types::{LeaderId, LogId, Payload, Vote};

/// Bytes of an id or a vote: three numbers and a checksum.
const TRIPLE_BYTES: usize = 28;

/// What the checksum of each field begins with, so that none passes for another, and zeros pass for nothing.
const LOG_ID_SALT: u32 = 0x4C6F_4964;
const VOTE_SALT: u32 = 0x566F_7465;
const LENGTH_SALT: u32 = 0x4C65_6E67;

/// The id of an entry, as raft-log stores it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::raft) struct LogIdFrame(pub(in crate::raft) LogId);

/// A vote, as raft-log stores it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd)]
pub(in crate::raft) struct VoteFrame(pub(in crate::raft) Vote);

/// What an entry carries, as raft-log stores it.
#[derive(Debug, Clone)]
pub(in crate::raft) struct PayloadFrame(pub(in crate::raft) Payload);

impl codeq::Encode for LogIdFrame {
    fn encode<W: Write>(&self, mut out: W) -> io::Result<usize> {
        let id = &self.0;
        write_triple(
            &mut out,
            [id.leader_id.term, id.leader_id.node_id, id.index],
            LOG_ID_SALT,
        )
    }
}

impl codeq::Decode for LogIdFrame {
    fn decode<R: Read>(mut from: R) -> io::Result<Self> {
        let [term, node_id, index] = read_triple(&mut from, LOG_ID_SALT, "the id of an entry")?;
        let leader_id = LeaderId { term, node_id };
        Ok(Self(LogId { leader_id, index }))
    }
}

impl codeq::Encode for VoteFrame {
    fn encode<W: Write>(&self, mut out: W) -> io::Result<usize> {
        let vote = &self.0;
        let numbers = [
            vote.leader_id.term,
            vote.leader_id.node_id,
            u64::from(vote.committed),
        ];
        write_triple(&mut out, numbers, VOTE_SALT)
    }
}

impl codeq::Decode for VoteFrame {
    fn decode<R: Read>(mut from: R) -> io::Result<Self> {
        let [term, node_id, committed] = read_triple(&mut from, VOTE_SALT, "a vote")?;
        let committed = match committed {
            0 => false,
            1 => true,
            _ => return Err(damaged("a vote is neither committed nor not")),
        };
        let leader_id = LeaderId { term, node_id };
        Ok(Self(Vote { leader_id, committed }))
    }
}

impl codeq::Encode for PayloadFrame {
    fn encode<W: Write>(&self, mut out: W) -> io::Result<usize> {
        let record = codec::encode(&PayloadRecord::from(&self.0))?;
        let length = u32::try_from(record.len())
            .map_err(io::Error::other)?
            .to_le_bytes();
        out.write_all(&length)?;
        out.write_all(&checksum(LENGTH_SALT, &length))?;
        out.write_all(&record)?;
        Ok(length.len() + 4 + record.len())
    }
}

impl codeq::Decode for PayloadFrame {
    fn decode<R: Read>(mut from: R) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let mut sum = [0; 4];
        from.read_exact(&mut sum)?;
        let bytes = u32::from_le_bytes(length) as usize;
        if sum != checksum(LENGTH_SALT, &length) || bytes > RECORD_BYTES_MAX {
            return Err(damaged("the length of an entry is damaged"));
        }
        let mut record = vec![0; bytes];
        from.read_exact(&mut record)?;
        let record: PayloadRecord = codec::decode(&record, RECORD_BYTES_MAX)?;
        Ok(Self(record.try_into()?))
    }
}

fn write_triple(out: &mut impl Write, numbers: [u64; 3], salt: u32) -> io::Result<usize> {
    let mut bytes = [0; TRIPLE_BYTES];
    let (body, sum) = bytes.split_at_mut(TRIPLE_BYTES - 4);
    for (slot, number) in body.chunks_exact_mut(8).zip(numbers) {
        slot.copy_from_slice(&number.to_le_bytes());
    }
    sum.copy_from_slice(&checksum(salt, body));
    out.write_all(&bytes)?;
    Ok(bytes.len())
}

fn read_triple(from: &mut impl Read, salt: u32, what: &str) -> io::Result<[u64; 3]> {
    let mut bytes = [0; TRIPLE_BYTES];
    from.read_exact(&mut bytes)?;
    let (body, sum) = bytes.split_at(TRIPLE_BYTES - 4);
    if sum != checksum(salt, body) {
        return Err(damaged(&format!("{what} fails its checksum")));
    }
    let mut numbers = [0; 3];
    for (number, slot) in numbers.iter_mut().zip(body.chunks_exact(8)) {
        let mut raw = [0; 8];
        raw.copy_from_slice(slot);
        *number = u64::from_le_bytes(raw);
    }
    Ok(numbers)
}

fn checksum(salt: u32, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
