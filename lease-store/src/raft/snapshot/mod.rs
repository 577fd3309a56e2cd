//! Where snapshots are kept: checksummed files, or memory.
//!
//! A file is written under another name, synced, renamed, and the folder synced, so a crash leaves either all of it
//! or none. Two are kept: the newest, and the one before it in case somebody is still being sent it. All methods that
//! touch a file block, and are called where blocking is allowed.

pub(super) mod format;
mod incoming;
mod outgoing;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lease_core::Timestamp;

use self::format::{SnapshotReader, SnapshotWriter};
pub(super) use self::incoming::{Incoming, IncomingError};
use super::applier::{Applier, SnapshotView};
use super::records::SnapshotRecord;
use super::types::SnapshotMeta;

/// Snapshots kept at the most.
const KEPT_MAX: usize = 2;

/// Bytes of the buffers between a snapshot and its file.
const BUFFER_BYTES: usize = 256 * 1_024;

const SUFFIX: &str = "snapshot";
const UNFINISHED_SUFFIX: &str = "unfinished";

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Its bytes are not what was written.
    #[error(
        "the snapshot {name} is damaged: {reason}. Move it away to let the node recover from the one before it and \
         the log; if they do not reach far enough it refuses to start. On a cluster, remove this node and join it again \
         under a new id then; a single node is restored from a backup"
    )]
    Damaged {
        /// The file.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Its bytes are whole, and this build cannot read the state in them.
    #[error(
        "this build cannot read the state in the snapshot {name}: start the build that wrote it, or a newer one"
    )]
    Unreadable {
        /// The file.
        name: String,
        /// What the machine said.
        #[source]
        source: io::Error,
    },
    /// It does not hold what it is said to hold.
    #[error("the snapshot {name} does not hold what it should")]
    Mismatch {
        /// The file.
        name: String,
    },
    /// The operating system refused.
    #[error("cannot {operation} the snapshot {name}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// The file.
        name: String,
        /// Its error.
        #[source]
        source: io::Error,
    },
}

/// The bytes of one snapshot, wherever they are. Clones are cheap.
#[derive(Debug, Clone)]
pub(super) enum SnapshotData {
    File(Arc<Path>),
    Memory(Arc<Vec<u8>>),
}

impl SnapshotData {
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory(_) => "in memory".to_owned(),
        }
    }

    fn open(&self) -> Result<Box<dyn Read>, SnapshotError> {
        match self {
            Self::File(path) => {
                let file = File::open(path).map_err(|error| self.io("open", error))?;
                Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
            }
            Self::Memory(bytes) => Ok(Box::new(Cursor::new(Shared(Arc::clone(bytes))))),
        }
    }

    fn begin(&self) -> Result<(SnapshotRecord, SnapshotReader<Box<dyn Read>>), SnapshotError> {
        SnapshotReader::begin(self.open()?).map_err(|error| self.broken(error))
    }

    /// Decodes the state, every block checked first, and answers with what it covers.
    ///
    /// # Errors
    /// The snapshot is damaged, or no state of this build.
    pub(super) fn decode<A: Applier>(&self) -> Result<(SnapshotRecord, A::State), SnapshotError> {
        let (head, mut reader) = self.begin()?;
        let state = match A::decode(&mut reader) {
            Ok(state) => state,
            Err(error) => {
                return Err(match reader.into_broken() {
                    Some(broken) => self.broken(broken),
                    None => SnapshotError::Unreadable {
                        name: self.name(),
                        source: error,
                    },
                });
            }
        };
        reader.finish().map_err(|error| self.broken(error))?;
        Ok((head, state))
    }

    fn broken(&self, error: io::Error) -> SnapshotError {
        let read_badly = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
        );
        if read_badly {
            SnapshotError::Damaged {
                name: self.name(),
                reason: error.to_string(),
            }
        } else {
            self.io("read", error)
        }
    }

    fn io(&self, operation: &'static str, source: io::Error) -> SnapshotError {
        SnapshotError::Io {
            operation,
            name: self.name(),
            source,
        }
    }
}

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// A snapshot that is in place.
#[derive(Debug, Clone)]
pub(super) struct StoredSnapshot {
    pub(super) meta: SnapshotMeta,
    pub(super) data: SnapshotData,
    pub(super) bytes: u64,
}

/// The snapshots of one node.
#[derive(Debug)]
pub(super) struct SnapshotStore {
    place: Place,
    current: Mutex<Option<StoredSnapshot>>,
}

#[derive(Debug)]
enum Place {
    Memory,
    Folder(PathBuf),
}

impl SnapshotStore {
    pub(super) fn in_memory() -> Self {
        Self {
            place: Place::Memory,
            current: Mutex::new(None),
        }
    }

    /// Opens a folder of snapshots, which exists, and clears what a crash left unfinished.
    ///
    /// # Errors
    /// The folder cannot be read, or the head of the newest snapshot is damaged.
    pub(super) fn in_folder(folder: PathBuf) -> Result<Self, SnapshotError> {
        let listed = |error| SnapshotError::Io {
            operation: "list",
            name: folder.display().to_string(),
            source: error,
        };
        let mut newest: Option<(u64, PathBuf)> = None;
        for entry in fs::read_dir(&folder).map_err(listed)? {
            let path = entry.map_err(listed)?.path();
            if path.extension().is_some_and(|suffix| suffix == UNFINISHED_SUFFIX) {
                fs::remove_file(&path).map_err(listed)?;
            } else if let Some(index) = index_of(&path)
                && newest.as_ref().is_none_or(|(newest, _)| index > *newest)
            {
                newest = Some((index, path));
            }
        }
        let current = newest.map(|(_, path)| stored_at(&path)).transpose()?;
        Ok(Self {
            place: Place::Folder(folder),
            current: Mutex::new(current),
        })
    }

    pub(super) fn current(&self) -> Option<StoredSnapshot> {
        self.lock().clone()
    }

    /// Writes a view down and puts it in place.
    ///
    /// # Errors
    /// The disk failed; what was in place before still is.
    pub(super) fn write(
        &self,
        meta: &SnapshotMeta,
        last_stamp: Option<Timestamp>,
        view: &impl SnapshotView,
    ) -> Result<StoredSnapshot, SnapshotError> {
        let head = SnapshotRecord::new(meta, last_stamp);
        let (data, bytes) = match &self.place {
            Place::Memory => {
                let (bytes, length) =
                    write_to(Vec::new(), &head, view).map_err(|error| memory_error("write", error))?;
                (SnapshotData::Memory(Arc::new(bytes)), length)
            }
            Place::Folder(folder) => {
                let draft = Draft::create(folder, meta)?;
                let file = BufWriter::with_capacity(BUFFER_BYTES, draft.file()?);
                let (_, length) = write_to(file, &head, view).map_err(|error| draft.error("write", error))?;
                (draft.finish()?, length)
            }
        };
        Ok(self.put(meta, data, bytes))
    }

    /// Takes over a snapshot from elsewhere: decodes it, and puts a copy in place if it is not already.
    ///
    /// # Errors
    /// It is damaged, or the disk failed; what was in place before still is.
    pub(super) fn adopt<A: Applier>(
        &self,
        meta: &SnapshotMeta,
        data: &SnapshotData,
    ) -> Result<(SnapshotRecord, A::State), SnapshotError> {
        let (held, draft) = match (&self.place, data) {
            (Place::Folder(folder), SnapshotData::File(path)) if path.parent() == Some(folder) => {
                // One that a peer has sent lies here under a passing name.
                let received = path.extension().is_some_and(|suffix| suffix == UNFINISHED_SUFFIX);
                let draft = received.then(|| Draft::at(folder, path.to_path_buf(), meta));
                (data.clone(), draft)
            }
            (Place::Memory, _) => (SnapshotData::Memory(Arc::new(read_all(data)?)), None),
            (Place::Folder(folder), _) => {
                let draft = Draft::create(folder, meta)?;
                let mut file = draft.file()?;
                io::copy(&mut data.open()?, &mut file).map_err(|error| draft.error("copy", error))?;
                (SnapshotData::File(draft.path.as_path().into()), Some(draft))
            }
        };
        // Checked where it will stay, before it is put in place.
        let (head, state) = held.decode::<A>()?;
        if head.meta().ok().as_ref() != Some(meta) {
            return Err(SnapshotError::Mismatch { name: held.name() });
        }
        let held = match draft {
            Some(draft) => draft.finish()?,
            None => held,
        };
        let bytes = length_of(&held)?;
        self.put(meta, held, bytes);
        Ok((head, state))
    }

    /// Puts a snapshot in place unless a newer one is there, and clears older files.
    fn put(&self, meta: &SnapshotMeta, data: SnapshotData, bytes: u64) -> StoredSnapshot {
        let meta = meta.clone();
        let snapshot = StoredSnapshot { meta, data, bytes };
        let mut current = self.lock();
        if current
            .as_ref()
            .is_none_or(|current| current.meta.last_log_id <= snapshot.meta.last_log_id)
        {
            *current = Some(snapshot.clone());
        }
        drop(current);
        if let Place::Folder(folder) = &self.place {
            clear_old(folder);
        }
        snapshot
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoredSnapshot>> {
        // No code under this lock can panic half-way through a change.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file under a passing name, removed again unless it is finished.
struct Draft {
    folder: PathBuf,
    path: PathBuf,
    name: String,
    kept: bool,
}

impl Draft {
    fn create(folder: &Path, meta: &SnapshotMeta) -> Result<Self, SnapshotError> {
        let path = folder.join(format!("{}.{UNFINISHED_SUFFIX}", name_of(meta)));
        let draft = Self::at(folder, path, meta);
        File::create(&draft.path).map_err(|error| draft.error("create", error))?;
        Ok(draft)
    }

    /// A file that is there, or is about to be.
    fn at(folder: &Path, path: PathBuf, meta: &SnapshotMeta) -> Self {
        Self {
            folder: folder.to_owned(),
            path,
            name: name_of(meta),
            kept: false,
        }
    }

    fn file(&self) -> Result<File, SnapshotError> {
        File::options()
            .write(true)
            .open(&self.path)
            .map_err(|error| self.error("open", error))
    }

    fn finish(mut self) -> Result<SnapshotData, SnapshotError> {
        let path = self.folder.join(&self.name);
        self.file()?
            .sync_all()
            .map_err(|error| self.error("sync", error))?;
        fs::rename(&self.path, &path).map_err(|error| self.error("rename", error))?;
        self.kept = true;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| self.error("sync the folder of", error))?;
        Ok(SnapshotData::File(path.into()))
    }

    fn error(&self, operation: &'static str, source: io::Error) -> SnapshotError {
        SnapshotError::Io {
            operation,
            name: self.path.display().to_string(),
            source,
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // Best effort: the next start clears it otherwise.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn write_to<W: io::Write>(out: W, head: &SnapshotRecord, view: &impl SnapshotView) -> io::Result<(W, u64)> {
    let mut writer = SnapshotWriter::begin(out, head)?;
    view.encode(&mut writer)?;
    writer.finish()
}

fn read_all(data: &SnapshotData) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = Vec::new();
    data.open()?
        .read_to_end(&mut bytes)
        .map_err(|error| data.io("read", error))?;
    Ok(bytes)
}

fn length_of(data: &SnapshotData) -> Result<u64, SnapshotError> {
    match data {
        SnapshotData::File(path) => match fs::metadata(path) {
            Ok(file) => Ok(file.len()),
            Err(error) => Err(data.io("measure", error)),
        },
        SnapshotData::Memory(bytes) => Ok(bytes.len() as u64),
    }
}

fn stored_at(path: &Path) -> Result<StoredSnapshot, SnapshotError> {
    let data = SnapshotData::File(path.into());
    let (head, _) = data.begin()?;
    let meta = head.meta().map_err(|error| data.broken(error.into()))?;
    let bytes = length_of(&data)?;
    Ok(StoredSnapshot { meta, data, bytes })
}

fn name_of(meta: &SnapshotMeta) -> String {
    let (term, node, index) = match &meta.last_log_id {
        Some(id) => (id.leader_id.term, id.leader_id.node_id, id.index),
        None => (0, 0, 0),
    };
    format!("{index:020}-{term}-{node}.{SUFFIX}")
}

/// The index in the name of a snapshot; `None` for any other file.
fn index_of(path: &Path) -> Option<u64> {
    if path.extension()? != SUFFIX {
        return None;
    }
    path.file_stem()?.to_str()?.split('-').next()?.parse().ok()
}

/// Removes all but the newest files. Best effort: one that stays costs only room.
fn clear_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            index_of(&path).map(|index| (index, path))
        })
        .collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    for (_, path) in files.into_iter().skip(KEPT_MAX) {
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "an old snapshot stays");
        }
    }
}

fn memory_error(operation: &'static str, source: io::Error) -> SnapshotError {
    SnapshotError::Io {
        operation,
        name: "in memory".to_owned(),
        source,
    }
}
