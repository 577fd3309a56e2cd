//! The durability barrier: what sled calls flushed is not yet on the disk.
//!
//! sled 0.34.7 ends a flush in `sync_file_range`, which neither empties the disk's cache nor writes the file's new
//! length. So the barrier flushes, and then syncs the same file through a handle of its own, which it opens before anything
//! is written: a write error that sled or the system drops is reported to every handle that was open by then.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::Stage;
use crate::error::StorageFailure;

#[derive(Debug)]
pub(super) struct Barrier {
    database: File,
    /// Where sled puts pages that are too large for its log. The limits leave none; should there be one, it counts.
    blobs: PathBuf,
    synced_blobs: BTreeSet<OsString>,
}

impl Barrier {
    /// Makes durable what a process that was killed left in `dir`, if there is anything. Recovery reads it from the
    /// system's memory, and clears old segments on the word of it.
    pub(super) fn settle(dir: &Path) -> io::Result<()> {
        match File::options().read(true).write(true).open(dir.join("db")) {
            Ok(database) => database.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        sync_dir(dir)
    }

    /// A barrier for the open database in `dir`.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        Ok(Self {
            database: File::options().read(true).write(true).open(dir.join("db"))?,
            blobs: dir.join("blobs"),
            synced_blobs: BTreeSet::new(),
        })
    }

    /// Makes the files of the database in `dir`, and their names up to the directory above, durable. sled syncs none of
    /// the names, nor its configuration. The snapshot's name goes first: recovery cleared old segments, in what is not
    /// synced yet, on the word of it.
    pub(super) fn sync_names(&mut self, dir: &Path) -> io::Result<()> {
        sync_dir(dir)?;
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                File::open(entry.path())?.sync_all()?;
            }
        }
        self.sync_blobs()?;
        sync_dir(&self.blobs)?;
        for dir in dir.ancestors().take(3) {
            sync_dir(dir)?;
        }
        Ok(())
    }

    /// Waits until all that was written to `db` is on the disk. After an error nothing is known: it is never tried again.
    pub(super) fn wait(
        &mut self,
        db: &::sled::Db,
        mut enter: impl FnMut(Stage) -> Result<(), StorageFailure>,
    ) -> Result<(), StorageFailure> {
        enter(Stage::Flushing)?;
        db.flush().map_err(|source| StorageFailure::Files {
            action: "flush the database",
            source: source.into(),
        })?;
        enter(Stage::Syncing)?;
        self.sync_blobs()
            .and_then(|()| self.database.sync_all())
            .map_err(|source| StorageFailure::Files {
                action: "sync the database",
                source: source.into(),
            })
    }

    fn sync_blobs(&mut self) -> io::Result<()> {
        let mut found = BTreeSet::new();
        let mut names_changed = false;
        for entry in fs::read_dir(&self.blobs)? {
            let entry = entry?;
            let name = entry.file_name();
            if !self.synced_blobs.contains(&name) {
                match File::open(entry.path()) {
                    Ok(blob) => blob.sync_all()?,
                    // Gone again: its page was rewritten, in the log or in another blob.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                }
                names_changed = true;
            }
            found.insert(name);
        }
        self.synced_blobs = found;
        if names_changed {
            sync_dir(&self.blobs)?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn sync_dir(dir: &Path) -> io::Result<()> {
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    File::open(dir)?.sync_all()
}

/// Elsewhere a directory cannot be opened, and needs no sync of its own.
#[cfg(not(unix))]
fn sync_dir(_dir: &Path) -> io::Result<()> {
    Ok(())
}
