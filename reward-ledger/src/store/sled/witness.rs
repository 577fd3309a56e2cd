//! The witness: how many commits were made durable, kept beside the database.
//!
//! sled ends a damaged log at the damage and opens as if the rest had never been. The witness knows better. It is
//! written after each barrier and never waited for, so it may be behind the database, after a power cut by seconds, and
//! is never ahead of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const VERSION: u8 = 1;
/// Bytes of one slot: version, commit, checksum, zeros. Two slots are written in turn, so that a torn write leaves one.
const SLOT_BYTES: usize = 64;
/// Version and commit.
const SUMMED_BYTES: usize = 9;

#[derive(Debug)]
pub(super) struct Witness {
    file: File,
}

impl Witness {
    /// Opens or makes the witness at `path`; with it, the last commit that it knows of.
    pub(super) fn open(path: &Path) -> io::Result<(Self, u64)> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut slots = [[0; SLOT_BYTES]; 2];
        let mut known = 0;
        for slot in &mut slots {
            match file.read_exact(slot) {
                Ok(()) => known = known.max(read_slot(slot).unwrap_or(0)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        Ok((Self { file }, known))
    }

    /// Notes that `commit`, and all before it, are durable.
    pub(super) fn note(&mut self, commit: u64) -> io::Result<()> {
        let offset = if commit.is_multiple_of(2) {
            0
        } else {
            SLOT_BYTES as u64
        };
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&slot(commit))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

fn slot(commit: u64) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    let mut summed = [VERSION; SUMMED_BYTES];
    let commit_bytes = commit.to_be_bytes();
    if let Some(place) = summed.last_chunk_mut() {
        *place = commit_bytes;
    }
    let sum = crc32fast::hash(&summed).to_be_bytes();
    for (place, byte) in slot.iter_mut().zip(summed.iter().chain(&sum)) {
        *place = *byte;
    }
    slot
}

fn read_slot(bytes: &[u8; SLOT_BYTES]) -> Option<u64> {
    let (_, rest) = bytes.split_first()?;
    let (commit, _) = rest.split_first_chunk()?;
    let commit = u64::from_be_bytes(*commit);
    (slot(commit) == *bytes).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_note_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("witness");
        let (mut witness, known) = Witness::open(&path).unwrap();
        assert_eq!(known, 0);
        for commit in 1..=9 {
            witness.note(commit).unwrap();
            assert_eq!(Witness::open(&path).unwrap().1, commit);
        }
    }

    #[test]
    fn a_torn_note_leaves_the_one_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("witness");
        let (mut witness, _) = Witness::open(&path).unwrap();
        for commit in 1..=8 {
            witness.note(commit).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        for at in 0..=SUMMED_BYTES {
            let mut torn = whole.clone();
            torn[at] ^= 0x40;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(Witness::open(&path).unwrap().1, 7, "byte {at}");
        }
        std::fs::write(&path, b"").unwrap();
        assert_eq!(Witness::open(&path).unwrap().1, 0);
    }
}
