//! The data directory: who owns it, and what proves that it is whole.
//!
//! ```text
//! DIR/lock         held by the process that uses it; names that process
//! DIR/identity     format, node id, cluster id: written last at creation, so a folder without it was never used
//! DIR/incarnation  how many processes have served from here
//! DIR/member       this node has voted: from now on an empty log means a lost log
//! DIR/cluster      the cluster that this node agreed to form with others, before its first entry
//! DIR/log/         the Raft log
//! DIR/snapshots/   the snapshots
//! ```
//! Every change is a new file, synced, renamed over the old one, and the folder synced. What this leaves to others:
//! the contents of `log` and `snapshots`.

#[cfg(any(test, feature = "test-util"))]
mod simulated;
#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The layout that this build reads and writes.
const FORMAT: u64 = 1;

const LOCK: &str = "lock";
const IDENTITY: &str = "identity";
const INCARNATION: &str = "incarnation";
const MEMBER: &str = "member";
const CLUSTER: &str = "cluster";
const LOG: &str = "log";
const SNAPSHOTS: &str = "snapshots";

/// Bytes of a small file at the most.
const SMALL_FILE_BYTES_MAX: u64 = 4_096;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// Another process uses it.
    #[error("the data directory {} is in use by {}: stop that process, or give this one another directory",
        dir.display(), owner(*process))]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process that uses it, if it left its number.
        process: Option<u32>,
    },
    /// It holds something else.
    #[error("{} holds {found:?} and is no data directory of a lease store: give an empty or a new directory",
        dir.display())]
    NotOurs {
        /// The directory.
        dir: PathBuf,
        /// One name found in it.
        found: String,
    },
    /// It belongs to another node.
    #[error("the data directory {} belongs to node {stored}, this is node {asked}: ids are never reused", dir.display())]
    OtherNode {
        /// The directory.
        dir: PathBuf,
        /// The node id written in it.
        stored: u64,
        /// The node id asked for.
        asked: u64,
    },
    /// Another version of this software wrote it.
    #[error("the data directory {} has format {found}, this build reads {FORMAT}: start the build that wrote it, or a \
             newer one", dir.display())]
    OtherFormat {
        /// The directory.
        dir: PathBuf,
        /// The format found.
        found: u64,
    },
    /// A small file of ours is damaged.
    #[error("{} is damaged. On a cluster, remove this node and join it again under a new id; a single node is restored \
             from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Part of the directory is gone.
    #[error("{} is missing from a data directory that was in use: this node must not go on, since it may forget what \
             it promised. On a cluster, remove this node and join it again under a new id; a single node is restored \
             from a backup",
        path.display())]
    Missing {
        /// What is gone.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was being done.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// Its error.
        #[source]
        source: io::Error,
    },
}

fn owner(process: Option<u32>) -> String {
    process.map_or_else(
        || "another process".to_owned(),
        |process| format!("process {process}"),
    )
}

/// A data directory that this process alone uses, until [`DataDir::release`] or its last clone is gone.
#[derive(Debug, Clone)]
pub struct DataDir {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    dir: PathBuf,
    node: u64,
    cluster: u64,
    incarnation: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// The folder, held by its lock.
    Folder { lock: File },
    #[cfg(any(test, feature = "test-util"))]
    Simulated(super::simulated::SimulatedDisk),
}

impl DataDir {
    /// Opens the directory for this node, or makes a new one, and counts one more incarnation, durably. It blocks.
    ///
    /// # Errors
    /// It is in use, not ours, another node's, damaged, or the operating system refuses. A directory that is not
    /// ours was not changed.
    pub fn open(dir: &Path, node: u64) -> Result<Self, DataDirError> {
        create_durably(dir)?;
        // Relative paths would follow a later change of the working directory.
        let dir = fs::canonicalize(dir).map_err(|source| io_error("resolve", dir, source))?;
        refuse_foreign(&dir)?;
        let lock = take_lock(&dir)?;
        // Looked at again, since another process may have made it in between.
        let (stored, cluster) = match refuse_foreign(&dir)? {
            Content::Used => read_identity(&dir)?,
            Content::Unused => create(&dir, node)?,
        };
        if stored != node {
            let asked = node;
            return Err(DataDirError::OtherNode { dir, stored, asked });
        }
        for folder in [LOG, SNAPSHOTS] {
            let path = dir.join(folder);
            if !path.is_dir() {
                return Err(DataDirError::Missing { path });
            }
        }
        let incarnation = raise_incarnation(&dir)?;
        let held = Held {
            dir,
            node,
            cluster,
            incarnation,
            place: Place::Folder { lock },
        };
        Ok(Self { held: Arc::new(held) })
    }

    /// Where it is, as an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.held.dir
    }

    /// The node it belongs to.
    #[must_use]
    pub fn node(&self) -> u64 {
        self.held.node
    }

    /// The random number that tells this store from all others. A node that formed a cluster with others has agreed to
    /// the number of one of them: [`DataDir::agreed`].
    #[must_use]
    pub fn cluster(&self) -> u64 {
        self.held.cluster
    }

    /// The cluster that this node agreed to form with others, if it did.
    ///
    /// # Errors
    /// The note is damaged or cannot be read.
    pub fn agreed(&self) -> Result<Option<u64>, DataDirError> {
        let Some(text) = self.held.read(CLUSTER)? else {
            return Ok(None);
        };
        let cluster = field(&text, "cluster").and_then(|value| u64::from_str_radix(value, 16).ok());
        let path = self.held.dir.join(CLUSTER);
        cluster.map(Some).ok_or(DataDirError::Damaged { path })
    }

    /// Remembers the cluster that this node agrees to form with others, durably. It blocks.
    ///
    /// # Errors
    /// It cannot be written; then nothing was agreed.
    pub fn agree(&self, cluster: u64) -> Result<(), DataDirError> {
        self.held.write(CLUSTER, &format!("cluster {cluster:016x}\n"))
    }

    /// How many processes have served from here, this one included.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.held.incarnation
    }

    pub(super) fn log(&self) -> PathBuf {
        self.held.dir.join(LOG)
    }

    pub(super) fn snapshots(&self) -> PathBuf {
        self.held.dir.join(SNAPSHOTS)
    }

    /// Whether this node has ever voted, so that its log cannot be empty.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.held.has(MEMBER)
    }

    /// Remembers that this node has voted.
    pub(super) fn mark_member(&self) -> Result<(), DataDirError> {
        if self.is_member() {
            return Ok(());
        }
        let text = format!("incarnation {}\n", self.held.incarnation);
        self.held.write(MEMBER, &text)
    }

    /// Lets another process have the directory. Nothing of it may be used afterwards.
    pub(super) fn release(&self) {
        let unlocked = match &self.held.place {
            Place::Folder { lock } => lock.unlock(),
            #[cfg(any(test, feature = "test-util"))]
            Place::Simulated(_) => Ok(()),
        };
        if let Err(error) = unlocked {
            tracing::warn!(dir = %self.held.dir.display(), %error, "the lock stays until this process ends");
        }
    }
}

impl Held {
    fn has(&self, name: &'static str) -> bool {
        match &self.place {
            Place::Folder { .. } => self.dir.join(name).exists(),
            #[cfg(any(test, feature = "test-util"))]
            Place::Simulated(disk) => disk.note(name).is_some(),
        }
    }

    fn read(&self, name: &'static str) -> Result<Option<String>, DataDirError> {
        match &self.place {
            Place::Folder { .. } if !self.has(name) => Ok(None),
            Place::Folder { .. } => read_small(&self.dir, name).map(Some),
            #[cfg(any(test, feature = "test-util"))]
            Place::Simulated(disk) => Ok(disk.note(name)),
        }
    }

    fn write(&self, name: &'static str, body: &str) -> Result<(), DataDirError> {
        match &self.place {
            Place::Folder { .. } => write_small(&self.dir, name, body),
            #[cfg(any(test, feature = "test-util"))]
            Place::Simulated(disk) => {
                disk.put_note(name, body.to_owned());
                Ok(())
            }
        }
    }
}

/// What a directory holds before this process touches it.
enum Content {
    /// Nothing, or what a crash left of its creation.
    Unused,
    Used,
}

fn refuse_foreign(dir: &Path) -> Result<Content, DataDirError> {
    if dir.join(IDENTITY).exists() {
        return Ok(Content::Used);
    }
    let listed = |source| io_error("list", dir, source);
    for entry in fs::read_dir(dir).map_err(listed)? {
        let name = entry.map_err(listed)?.file_name().to_string_lossy().into_owned();
        let ours = match name.as_str() {
            LOCK | "identity.new" | "lost+found" => true,
            LOG | SNAPSHOTS => fs::read_dir(dir.join(&name)).map_err(listed)?.next().is_none(),
            INCARNATION | MEMBER | CLUSTER => {
                return Err(DataDirError::Missing {
                    path: dir.join(IDENTITY),
                });
            }
            _ => false,
        };
        if !ours {
            let dir = dir.to_owned();
            return Err(DataDirError::NotOurs { dir, found: name });
        }
    }
    Ok(Content::Unused)
}

fn take_lock(dir: &Path) -> Result<File, DataDirError> {
    let path = dir.join(LOCK);
    let opened = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let mut lock = opened.map_err(|source| io_error("open", &path, source))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = (&lock).take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text);
            let process = text.trim().parse().ok();
            let dir = dir.to_owned();
            return Err(DataDirError::InUse { dir, process });
        }
        Err(TryLockError::Error(source)) => return Err(io_error("lock", &path, source)),
    }
    // For the message that another process shows; the lock itself is the kernel's and ends with this process.
    let noted = lock
        .set_len(0)
        .and_then(|()| writeln!(lock, "{}", std::process::id()));
    noted.map_err(|source| io_error("write", &path, source))?;
    Ok(lock)
}

fn create(dir: &Path, node: u64) -> Result<(u64, u64), DataDirError> {
    for folder in [LOG, SNAPSHOTS] {
        create_durably(&dir.join(folder))?;
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        let source = io::Error::other(error.to_string());
        io_error("draw a random cluster id for", dir, source)
    })?;
    let cluster = u64::from_le_bytes(random);
    // Last, so that a crash before it leaves an unused directory.
    write_small(
        dir,
        IDENTITY,
        &format!("format {FORMAT}\nnode {node}\ncluster {cluster:016x}\n"),
    )?;
    Ok((node, cluster))
}

fn read_identity(dir: &Path) -> Result<(u64, u64), DataDirError> {
    let text = read_small(dir, IDENTITY)?;
    let damaged = || DataDirError::Damaged {
        path: dir.join(IDENTITY),
    };
    let found = field(&text, "format")
        .and_then(|value| value.parse().ok())
        .ok_or_else(damaged)?;
    if found != FORMAT {
        let dir = dir.to_owned();
        return Err(DataDirError::OtherFormat { dir, found });
    }
    let node = field(&text, "node").and_then(|value| value.parse().ok());
    let cluster = field(&text, "cluster").and_then(|value| u64::from_str_radix(value, 16).ok());
    node.zip(cluster).ok_or_else(damaged)
}

fn raise_incarnation(dir: &Path) -> Result<u64, DataDirError> {
    let before = if dir.join(INCARNATION).exists() {
        let text = read_small(dir, INCARNATION)?;
        let count = field(&text, "incarnation").and_then(|value| value.parse::<u64>().ok());
        count.ok_or_else(|| DataDirError::Damaged {
            path: dir.join(INCARNATION),
        })?
    } else if dir.join(MEMBER).exists() {
        return Err(DataDirError::Missing {
            path: dir.join(INCARNATION),
        });
    } else {
        0
    };
    let incarnation = before.saturating_add(1);
    write_small(dir, INCARNATION, &format!("incarnation {incarnation}\n"))?;
    Ok(incarnation)
}

fn field<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// Reads a small file, whose last line is the checksum of the lines before it.
fn read_small(dir: &Path, name: &str) -> Result<String, DataDirError> {
    let path = dir.join(name);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(SMALL_FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|source| io_error("read", &path, source))?;
    let text = String::from_utf8(bytes).ok();
    let checked = text.as_deref().and_then(|text| text.rsplit_once("checksum "));
    match checked {
        Some((body, sum)) if sum == format!("{:08x}\n", crc32fast::hash(body.as_bytes())) => {
            Ok(body.to_owned())
        }
        _ => Err(DataDirError::Damaged { path }),
    }
}

fn write_small(dir: &Path, name: &str, body: &str) -> Result<(), DataDirError> {
    let path = dir.join(format!("{name}.new"));
    let text = format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()));
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| io_error("write", &path, source))?;
    fs::rename(&path, dir.join(name)).map_err(|source| io_error("rename", &path, source))?;
    sync_folder(dir)
}

/// Makes a folder and those above it, each synced into the one that holds it.
fn create_durably(dir: &Path) -> Result<(), DataDirError> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => {
            let source = io::Error::new(io::ErrorKind::NotADirectory, "it is a file");
            return Err(io_error("use as a directory", dir, source));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(io_error("look at", dir, source)),
    }
    let parent = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    create_durably(parent)?;
    match fs::create_dir(dir) {
        Ok(()) => {}
        // Another process was faster; the lock decides between us.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(io_error("create", dir, source)),
    }
    sync_folder(parent)
}

fn sync_folder(dir: &Path) -> Result<(), DataDirError> {
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    synced.map_err(|source| io_error("sync", dir, source))
}

fn io_error(operation: &'static str, path: &Path, source: io::Error) -> DataDirError {
    DataDirError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}
