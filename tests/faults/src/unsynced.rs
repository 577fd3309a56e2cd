//! What was written and not synced, so that a power cut can take it.
//!
//! Before each write to a file, what it will write over is noted; a sync that succeeds forgets the notes of before it. A cut
//! puts the notes back, the last one first, and ends the process. One lock is held over each write and its note, and over
//! the cut, so no write is under way when it comes. The calls of a process that has forked or mapped files are not seen.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calls::{shorten, write_at};
use crate::orders;

/// The exit status of a process that the power was cut of.
const STATUS: c_int = 86;

/// Device and number of a file.
type Id = (libc::dev_t, libc::ino_t);

struct Note {
    number: u64,
    offset: i64,
    /// What was there, as far as the file reached.
    bytes: Vec<u8>,
    len: i64,
}

struct Noted {
    /// A descriptor of the library's own.
    file: c_int,
    notes: Vec<Note>,
}

#[derive(Default)]
pub(crate) struct Unsynced {
    files: BTreeMap<Id, Noted>,
    notes: u64,
}

static UNSYNCED: Mutex<Unsynced> = Mutex::new(Unsynced {
    files: BTreeMap::new(),
    notes: 0,
});

fn lock() -> MutexGuard<'static, Unsynced> {
    UNSYNCED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a call that changes what the file holds from `offset` on, `len` bytes or, if `None`, to its end.
pub(crate) fn changing<T>(
    descriptor: c_int,
    offset: Option<i64>,
    len: Option<usize>,
    call: impl FnOnce() -> T,
) -> T {
    if !orders::takes_unsynced(descriptor) {
        return call();
    }
    let mut unsynced = lock();
    unsynced.cut_if_ordered();
    unsynced.note(descriptor, offset, len);
    call()
}

/// Makes a call that syncs the file; 0 is success.
pub(crate) fn syncing(descriptor: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if !orders::takes_unsynced(descriptor) {
        return call();
    }
    let before = {
        let mut unsynced = lock();
        unsynced.cut_if_ordered();
        unsynced.notes
    };
    let result = call();
    if result == 0
        && let Some(id) = status(descriptor).map(|status| id(&status))
        && let Some(noted) = lock().files.get_mut(&id)
    {
        noted.notes.retain(|note| note.number >= before);
    }
    result
}

impl Unsynced {
    fn note(&mut self, descriptor: c_int, offset: Option<i64>, len: Option<usize>) {
        let Some(status) = status(descriptor) else {
            return;
        };
        let noted = self.files.entry(id(&status)).or_insert_with(|| Noted {
            file: open_again(descriptor),
            notes: Vec::new(),
        });
        // SAFETY: asks for a number.
        let offset = offset.unwrap_or_else(|| unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) });
        let there = usize::try_from(status.st_size - offset).unwrap_or(0);
        let bytes = read(noted.file, offset, there.min(len.unwrap_or(usize::MAX)));
        noted.notes.push(Note {
            number: self.notes,
            offset,
            bytes,
            len: status.st_size,
        });
        self.notes += 1;
    }

    /// Takes everything that is not synced, and the process.
    fn cut_if_ordered(&mut self) {
        if !orders::cut_ordered() {
            return;
        }
        for noted in self.files.values() {
            for note in noted.notes.iter().rev() {
                write_at(noted.file, &note.bytes, note.offset);
                shorten(noted.file, note.len);
            }
        }
        // SAFETY: ends the process; nothing of it is used again.
        unsafe { libc::_exit(STATUS) }
    }
}

fn status(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: all zeros are a valid `stat`, which the call fills.
    let mut status = unsafe { std::mem::zeroed() };
    // SAFETY: it is told where a `stat` is.
    (unsafe { libc::fstat(descriptor, &raw mut status) } == 0).then_some(status)
}

fn id(status: &libc::stat) -> Id {
    (status.st_dev, status.st_ino)
}

/// What is not noted cannot be taken, and the test would prove less than it says.
fn open_again(descriptor: c_int) -> c_int {
    let Ok(path) = CString::new(format!("/proc/self/fd/{descriptor}")) else {
        std::process::abort();
    };
    // SAFETY: the path ends with a zero byte.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        std::process::abort();
    }
    file
}

fn read(file: c_int, offset: i64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the buffer has room for `len` bytes.
    let read = unsafe { libc::pread(file, bytes.as_mut_ptr().cast::<c_void>(), len, offset) };
    if usize::try_from(read) != Ok(len) {
        std::process::abort();
    }
    bytes
}
