//! The bytes of a snapshot as they leave for a peer, piece by piece.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;

use super::{SnapshotData, SnapshotError, length_of};

/// A snapshot that is being sent. Everything about it blocks.
#[derive(Debug)]
pub(in crate::raft) struct Outgoing {
    data: SnapshotData,
    file: Option<File>,
    bytes: u64,
    sent: u64,
}

impl SnapshotData {
    /// Opens the snapshot to be sent.
    ///
    /// # Errors
    /// It cannot be opened: it may have been superseded and cleared.
    pub(in crate::raft) fn outgoing(&self) -> Result<Outgoing, SnapshotError> {
        let file = match self {
            Self::File(path) => Some(File::open(path).map_err(|error| self.io("open", error))?),
            Self::Memory(_) => None,
        };
        Ok(Outgoing {
            bytes: length_of(self)?,
            data: self.clone(),
            file,
            sent: 0,
        })
    }
}

impl Outgoing {
    /// Bytes in all.
    pub(in crate::raft) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next bytes, at most `bytes_max`; none at the end.
    ///
    /// # Errors
    /// The disk failed, or the file is shorter than it was.
    pub(in crate::raft) fn next(&mut self, bytes_max: usize) -> Result<Bytes, SnapshotError> {
        let left = self.bytes.saturating_sub(self.sent);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max);
        let piece = match (&mut self.file, &self.data) {
            (Some(file), data) => {
                let mut piece = vec![0; length];
                file.read_exact(&mut piece)
                    .map_err(|error| data.io("read", error))?;
                Bytes::from(piece)
            }
            (None, SnapshotData::Memory(bytes)) => {
                let start = usize::try_from(self.sent).unwrap_or(usize::MAX);
                let piece = Arc::as_ref(bytes).get(start..start.saturating_add(length));
                Bytes::copy_from_slice(piece.unwrap_or_default())
            }
            (None, SnapshotData::File(_)) => Bytes::new(),
        };
        self.sent = self.sent.saturating_add(piece.len() as u64);
        Ok(piece)
    }
}
