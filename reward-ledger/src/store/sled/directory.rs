//! Opening a ledger's directory: one process, whole files, the right format, nothing lost.

use std::any::Any;
use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::barrier::Barrier;
use super::config::SledConfig;
use super::rows::SledRows;
use super::witness::Witness;
use crate::error::{Cause, OpenError};
use crate::store::keys;
use crate::store::rows::Rows;
use crate::store::transaction::read_head;

/// The format of the rows: their keys and which there are. Each record has a version of its own besides.
const FORMAT: u32 = 2;
/// sled's own threads may hold its file for a moment after the ledger that used it is closed.
const SLED_LOCK_TRIES: u32 = 200;
const SLED_LOCK_PAUSE: Duration = Duration::from_millis(10);

/// An open directory, held until the lock is dropped.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) rows: SledRows,
    pub(super) barrier: Barrier,
    pub(super) witness: Witness,
    pub(super) lock: File,
}

pub(super) fn open(config: &SledConfig) -> Result<Opened, OpenError> {
    let dir = config.dir();
    let database = dir.join("sled");
    fs::create_dir_all(&database).map_err(files(dir, "make the directory"))?;
    let lock = lock(dir)?;
    Barrier::settle(&database).map_err(files(dir, "sync the database"))?;
    let db = open_sled(config, &database)?;
    let mut barrier = Barrier::open(&database).map_err(files(dir, "open the database file"))?;
    let rows = SledRows::new(db);
    check_format(dir, &rows)?;
    let (witness, acknowledged) =
        Witness::open(&dir.join("witness")).map_err(files(dir, "open the witness"))?;
    let found = read_head(&rows).map_err(corrupt(dir))?.commits;
    if found < acknowledged {
        return Err(OpenError::LostCommits {
            dir: dir.to_owned(),
            found,
            acknowledged,
        });
    }
    barrier
        .sync_names(&database)
        .map_err(files(dir, "sync the database"))?;
    // What recovery found and made may not be on the disk, and is about to be answered with.
    barrier.wait(rows.db(), |_| Ok(())).map_err(corrupt(dir))?;
    Ok(Opened {
        rows,
        barrier,
        witness,
        lock,
    })
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(dir.join("lock"))
        .map_err(files(dir, "open the lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { dir: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(files(dir, "lock the directory")(source)),
    }
}

fn open_sled(config: &SledConfig, database: &Path) -> Result<::sled::Db, OpenError> {
    let dir = config.dir();
    for _ in 1..SLED_LOCK_TRIES {
        match try_open_sled(config, database) {
            Ok(Err(error)) if is_locked(&error) => thread::park_timeout(SLED_LOCK_PAUSE),
            opened => return judge(dir, opened),
        }
    }
    judge(dir, try_open_sled(config, database))
}

/// Opens sled; a panic over damaged files is caught.
fn try_open_sled(config: &SledConfig, database: &Path) -> thread::Result<::sled::Result<::sled::Db>> {
    let sled = ::sled::Config::new()
        .path(database)
        .segment_size(config.segment_bytes())
        .cache_capacity(config.cache_bytes())
        // The writer flushes. A flusher of sled's own would log failed syncs and carry on.
        .flush_every_ms(None)
        .use_compression(false)
        .print_profile_on_drop(false);
    catch_unwind(AssertUnwindSafe(|| sled.open()))
}

fn judge(dir: &Path, opened: thread::Result<::sled::Result<::sled::Db>>) -> Result<::sled::Db, OpenError> {
    match opened {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(error)) if is_locked(&error) => Err(OpenError::InUse { dir: dir.to_owned() }),
        Ok(Err(::sled::Error::Io(source))) if source.kind() != io::ErrorKind::UnexpectedEof => {
            Err(files(dir, "open the database")(source))
        }
        Ok(Err(error)) => Err(corrupt(dir)(error)),
        Err(panic) => Err(corrupt(dir)(panic_text(&*panic))),
    }
}

fn is_locked(error: &::sled::Error) -> bool {
    matches!(error, ::sled::Error::Io(error) if error.to_string().starts_with("could not acquire lock"))
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Marks an empty database with the format, and refuses any other than this one.
fn check_format(dir: &Path, rows: &SledRows) -> Result<(), OpenError> {
    match rows.get(keys::FORMAT).map_err(corrupt(dir))? {
        Some(bytes) => {
            let bytes = bytes
                .try_into()
                .map_err(|_| corrupt(dir)("the format row is not a number"))?;
            match u32::from_be_bytes(bytes) {
                FORMAT => Ok(()),
                found => Err(OpenError::Format {
                    dir: dir.to_owned(),
                    found,
                    known: FORMAT,
                }),
            }
        }
        None if rows.scan(&[], None, 1).map_err(corrupt(dir))?.is_empty() => rows
            .apply([(keys::FORMAT.to_vec(), Some(FORMAT.to_be_bytes().to_vec()))].into())
            .map_err(corrupt(dir)),
        None => Err(corrupt(dir)("there are rows, and no format row")),
    }
}

fn files<E: Into<Cause>>(dir: &Path, action: &'static str) -> impl FnOnce(E) -> OpenError {
    move |source| OpenError::Files {
        dir: dir.to_owned(),
        action,
        source: source.into(),
    }
}

fn corrupt<E: Into<Cause>>(dir: &Path) -> impl FnOnce(E) -> OpenError {
    move |source| OpenError::Corrupt {
        dir: dir.to_owned(),
        source: source.into(),
    }
}
