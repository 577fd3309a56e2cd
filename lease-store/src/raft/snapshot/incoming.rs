//! A snapshot as it arrives from a peer: under a passing name, and checked as a whole before Raft hears of it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::format::SnapshotReader;
use super::{Draft, Place, SnapshotData, SnapshotError, SnapshotStore, UNFINISHED_SUFFIX, name_of};
use crate::raft::types::SnapshotMeta;

/// Bytes of one snapshot at the most: far above what the machine's bounds allow, and a bound on what a peer can make
/// this node keep.
const BYTES_MAX: u64 = 64 * 1_024 * 1_024 * 1_024;

/// Why a snapshot from a peer is not taken over. Nothing of it stays.
#[derive(Debug, thiserror::Error)]
pub(in crate::raft) enum IncomingError {
    /// It is longer than it may be, or pieces are missing, doubled or too many.
    #[error("the pieces do not make the snapshot that was announced")]
    Pieces,
    /// What arrived is not what the peer read, or what it read is damaged.
    #[error("it is damaged: {reason}")]
    Damaged {
        /// What is wrong.
        reason: String,
    },
    /// This node's disk failed.
    #[error("it cannot be kept")]
    Storage(#[source] SnapshotError),
}

/// A snapshot that is arriving. Everything about it blocks. Dropping it removes what has arrived.
pub(in crate::raft) struct Incoming {
    meta: SnapshotMeta,
    bytes: u64,
    received: u64,
    sum: crc32fast::Hasher,
    held: Held,
}

enum Held {
    Memory(Vec<u8>),
    File { draft: Draft, file: File },
}

/// A snapshot that has arrived whole, until Raft has taken it over. Dropping it removes what Raft has not.
pub(in crate::raft) struct Received {
    data: SnapshotData,
    /// Removes the file if it still has its passing name.
    _draft: Option<Draft>,
}

impl Received {
    pub(in crate::raft) fn data(&self) -> SnapshotData {
        self.data.clone()
    }
}

impl SnapshotStore {
    /// Makes room for a snapshot of `bytes` bytes. `mark` tells it from others that arrive at the same time.
    ///
    /// # Errors
    /// It is too long, or the disk failed.
    pub(in crate::raft) fn receive(
        &self,
        meta: &SnapshotMeta,
        mark: &str,
        bytes: u64,
    ) -> Result<Incoming, IncomingError> {
        if bytes > BYTES_MAX {
            return Err(IncomingError::Pieces);
        }
        let held = match &self.place {
            Place::Memory => Held::Memory(Vec::new()),
            Place::Folder(folder) => open(folder, meta, mark).map_err(IncomingError::Storage)?,
        };
        Ok(Incoming {
            meta: meta.clone(),
            bytes,
            received: 0,
            sum: crc32fast::Hasher::new(),
            held,
        })
    }
}

fn open(folder: &Path, meta: &SnapshotMeta, mark: &str) -> Result<Held, SnapshotError> {
    let name = format!("{}.{mark}.{UNFINISHED_SUFFIX}", name_of(meta));
    let draft = Draft::at(folder, folder.join(name), meta);
    let file = File::create(&draft.path).map_err(|error| draft.error("create", error))?;
    Ok(Held::File { draft, file })
}

impl Incoming {
    /// Adds the next piece.
    ///
    /// # Errors
    /// It is not the next one, or the disk failed.
    pub(in crate::raft) fn write(&mut self, offset: u64, piece: &[u8]) -> Result<(), IncomingError> {
        let received = self.received.saturating_add(piece.len() as u64);
        if offset != self.received || received > self.bytes {
            return Err(IncomingError::Pieces);
        }
        match &mut self.held {
            Held::Memory(bytes) => bytes.extend_from_slice(piece),
            Held::File { draft, file } => file
                .write_all(piece)
                .map_err(|error| IncomingError::Storage(draft.error("write", error)))?,
        }
        self.sum.update(piece);
        self.received = received;
        Ok(())
    }

    /// Checks the whole: its length, its sum, every block of it, and that it is what was announced.
    ///
    /// # Errors
    /// It is not, or the disk failed.
    pub(in crate::raft) fn finish(self, checksum: u32) -> Result<Received, IncomingError> {
        if self.received != self.bytes {
            return Err(IncomingError::Pieces);
        }
        if self.sum.finalize() != checksum {
            let reason = "its sum is another than its sender's".to_owned();
            return Err(IncomingError::Damaged { reason });
        }
        let (data, draft) = match self.held {
            Held::Memory(bytes) => (SnapshotData::Memory(Arc::new(bytes)), None),
            Held::File { draft, file } => {
                file.sync_all()
                    .map_err(|error| IncomingError::Storage(draft.error("sync", error)))?;
                (SnapshotData::File(draft.path.as_path().into()), Some(draft))
            }
        };
        check(&data, &self.meta)?;
        Ok(Received { data, _draft: draft })
    }
}

/// A sender whose own file is damaged must not bring down whoever it sends it to.
fn check(data: &SnapshotData, meta: &SnapshotMeta) -> Result<(), IncomingError> {
    let damaged = |error: io::Error| IncomingError::Damaged {
        reason: error.to_string(),
    };
    let from = data.open().map_err(IncomingError::Storage)?;
    let (head, mut reader) = SnapshotReader::begin(from).map_err(damaged)?;
    if head.meta().ok().as_ref() != Some(meta) {
        let reason = "it covers something else than was announced".to_owned();
        return Err(IncomingError::Damaged { reason });
    }
    io::copy(&mut reader, &mut io::sink()).map_err(damaged)?;
    reader.finish().map_err(damaged)
}
