//! The bytes of a snapshot: a magic number, then blocks, each with its own checksum.
//!
//! ```text
//! "LEASSNP1"
//! block: length (u32), checksum (u32), bytes      the first: what the snapshot covers (a codec record)
//! block: ...                                      the state, cut into blocks
//! block: length 0, checksum                       the end
//! ```
//! Numbers are little-endian. The checksum of a block begins with the block's number, so none is missing, doubled or
//! swapped unseen; a snapshot without its end is cut off. A damaged byte never reaches the decoder of the state.

use std::io::{self, Read, Write};

use super::super::codec;
use super::super::records::SnapshotRecord;

const MAGIC: [u8; 8] = *b"LEASSNP1";

/// Bytes of one block of state: large enough that its 8 bytes of head are nothing, small enough to hold twice.
const BLOCK_BYTES_MAX: usize = 64 * 1_024;

/// Bytes of the first block at the most: it lists the members of the cluster.
const HEAD_BYTES_MAX: usize = 1_024 * 1_024;

/// Writes a snapshot block by block.
pub(in crate::raft) struct SnapshotWriter<W> {
    out: W,
    block: Vec<u8>,
    number: u32,
    bytes: u64,
}

impl<W: Write> SnapshotWriter<W> {
    pub(in crate::raft) fn begin(mut out: W, head: &SnapshotRecord) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        let mut writer = Self {
            out,
            block: Vec::with_capacity(BLOCK_BYTES_MAX),
            number: 0,
            bytes: MAGIC.len() as u64,
        };
        writer.block = codec::encode(head)?;
        if writer.block.len() > HEAD_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the membership is too long for a snapshot",
            ));
        }
        writer.write_block()?;
        Ok(writer)
    }

    /// Writes the end, and gives back what was written to, and how many bytes it took.
    pub(in crate::raft) fn finish(mut self) -> io::Result<(W, u64)> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        self.write_block()?;
        self.out.flush()?;
        Ok((self.out, self.bytes))
    }

    fn write_block(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.block.len()).map_err(io::Error::other)?;
        let sum = checksum(self.number, &self.block);
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.bytes = self.bytes.saturating_add(8).saturating_add(u64::from(length));
        self.number = self.number.wrapping_add(1);
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for SnapshotWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BLOCK_BYTES_MAX.saturating_sub(self.block.len());
        let (now, _later) = bytes.split_at(room.min(bytes.len()));
        self.block.extend_from_slice(now);
        if self.block.len() >= BLOCK_BYTES_MAX {
            self.write_block()?;
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // A block is written when it is full, and at the end.
        Ok(())
    }
}

/// Reads a snapshot, each block checked before any of it is handed out.
pub(in crate::raft) struct SnapshotReader<R> {
    from: R,
    block: Vec<u8>,
    used: usize,
    number: u32,
    ended: bool,
    broken: Option<io::Error>,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads up to the state.
    pub(in crate::raft) fn begin(mut from: R) -> io::Result<(SnapshotRecord, Self)> {
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic).map_err(cut_off)?;
        if magic != MAGIC {
            return Err(damaged("it does not begin like a snapshot of this format"));
        }
        let mut reader = Self {
            from,
            block: Vec::new(),
            used: 0,
            number: 0,
            ended: false,
            broken: None,
        };
        reader.read_block(HEAD_BYTES_MAX)?;
        let head = codec::decode(&reader.block, HEAD_BYTES_MAX)?;
        reader.used = reader.block.len();
        Ok((head, reader))
    }

    /// What was wrong with the snapshot itself, if reading it failed for that.
    pub(in crate::raft) fn into_broken(self) -> Option<io::Error> {
        self.broken
    }

    /// Checks that the state was read to its end, and that nothing follows.
    pub(in crate::raft) fn finish(mut self) -> io::Result<()> {
        let mut rest = [0; 1];
        if self.read(&mut rest)? != 0 {
            return Err(damaged("it goes on after the state"));
        }
        if self.from.read(&mut rest)? != 0 {
            return Err(damaged("bytes follow its end"));
        }
        Ok(())
    }

    fn read_block(&mut self, bytes_max: usize) -> io::Result<()> {
        let mut length = [0; 4];
        self.from.read_exact(&mut length).map_err(cut_off)?;
        let mut sum = [0; 4];
        self.from.read_exact(&mut sum).map_err(cut_off)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > bytes_max {
            return Err(damaged(&format!(
                "the length of block {} is damaged",
                self.number
            )));
        }
        self.block.resize(length, 0);
        self.from.read_exact(&mut self.block).map_err(cut_off)?;
        if u32::from_le_bytes(sum) != checksum(self.number, &self.block) {
            return Err(damaged(&format!("block {} fails its checksum", self.number)));
        }
        self.number = self.number.wrapping_add(1);
        self.used = 0;
        Ok(())
    }
}

impl<R: Read> Read for SnapshotReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.used >= self.block.len() && !self.ended {
            if let Err(error) = self.read_block(BLOCK_BYTES_MAX) {
                self.broken = Some(io::Error::new(error.kind(), error.to_string()));
                return Err(error);
            }
            self.ended = self.block.is_empty();
        }
        let rest = self.block.get(self.used..).unwrap_or_default();
        let count = rest.len().min(into.len());
        let (now, _later) = rest.split_at(count);
        if let Some(slot) = into.get_mut(..count) {
            slot.copy_from_slice(now);
        }
        self.used = self.used.saturating_add(count);
        Ok(count)
    }
}

fn checksum(number: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn cut_off(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        damaged("it is cut off")
    } else {
        error
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::super::records::{LogIdRecord, MembershipRecord};
    use super::*;

    fn head() -> SnapshotRecord {
        let membership = MembershipRecord {
            voter_sets: vec![BTreeSet::from([1])],
            nodes: BTreeMap::new(),
        };
        SnapshotRecord {
            last: Some(LogIdRecord {
                term: 3,
                node: 1,
                index: 40,
            }),
            membership_at: None,
            membership,
            last_stamp_ms: Some(77),
        }
    }

    fn written(state: &[u8]) -> Vec<u8> {
        let mut writer = SnapshotWriter::begin(Vec::new(), &head()).unwrap();
        writer.write_all(state).unwrap();
        let (bytes, length) = writer.finish().unwrap();
        assert_eq!(bytes.len() as u64, length);
        bytes
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (found, mut reader) = SnapshotReader::begin(bytes)?;
        assert_eq!(found, head());
        let mut state = Vec::new();
        reader.read_to_end(&mut state)?;
        reader.finish()?;
        Ok(state)
    }

    #[test]
    fn a_snapshot_comes_back_at_every_length_about_a_block() {
        for length in [
            0,
            1,
            BLOCK_BYTES_MAX - 1,
            BLOCK_BYTES_MAX,
            BLOCK_BYTES_MAX + 1,
            3 * BLOCK_BYTES_MAX,
        ] {
            let state: Vec<u8> = (0..length)
                .map(|byte| u8::try_from(byte % 251).unwrap())
                .collect();
            assert_eq!(read(&written(&state)).unwrap(), state);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let bytes = written(b"some state");
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[position] ^= 1 << bit;
                assert!(read(&flipped).is_err(), "bit {bit} of byte {position}");
            }
            assert!(read(&bytes[..position]).is_err(), "cut at {position}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(read(&longer).is_err());
    }

    #[test]
    fn a_state_that_is_not_read_to_its_end_is_seen() {
        let bytes = written(b"some state");
        let (_, mut reader) = SnapshotReader::begin(bytes.as_slice()).unwrap();
        reader.read_exact(&mut [0; 4]).unwrap();
        assert!(reader.finish().is_err());
    }
}
