//! The calls that stand in front of libc's: each fails if it is ordered to, else the real one is made, and what it changes or
//! syncs is noted.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::orders::{Operation, fault};
use crate::unsynced;

type OfDescriptor = unsafe extern "C" fn(c_int) -> c_int;
type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type WriteAt = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
type Shorten = unsafe extern "C" fn(c_int, i64) -> c_int;
type SyncFileRange = unsafe extern "C" fn(c_int, i64, i64, c_uint) -> c_int;

/// The address of the next definition of `name` after this library's: libc's.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero byte, and RTLD_NEXT is a valid handle.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    // Without the real call nothing that this process writes can be trusted. Unwinding through C is not defined.
    if found.is_null() {
        std::process::abort();
    }
    found
}

fn fail(error: c_int) -> c_int {
    // SAFETY: libc's errno of this thread, which is always there.
    unsafe { *libc::__errno_location() = error };
    -1
}

fn sync(descriptor: c_int, real: &OnceLock<OfDescriptor>, name: &CStr) -> c_int {
    if let Some(error) = fault(Operation::Sync, descriptor) {
        return fail(error);
    }
    // SAFETY: libc defines both names that this is called with as `int (int)`.
    let real = real.get_or_init(|| unsafe { std::mem::transmute::<*mut c_void, OfDescriptor>(next(name)) });
    // SAFETY: as the caller called it.
    unsynced::syncing(descriptor, || unsafe { real(descriptor) })
}

/// `fsync(2)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fsync(descriptor: c_int) -> c_int {
    static REAL: OnceLock<OfDescriptor> = OnceLock::new();
    sync(descriptor, &REAL, c"fsync")
}

/// `fdatasync(2)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    static REAL: OnceLock<OfDescriptor> = OnceLock::new();
    sync(descriptor, &REAL, c"fdatasync")
}

/// `write(2)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn write(descriptor: c_int, bytes: *const c_void, len: usize) -> isize {
    static REAL: OnceLock<Write> = OnceLock::new();
    // SAFETY: libc defines it so.
    let real = REAL.get_or_init(|| unsafe { std::mem::transmute::<*mut c_void, Write>(next(c"write")) });
    // SAFETY: as the caller called it.
    unsynced::changing(descriptor, None, Some(len), || unsafe {
        real(descriptor, bytes, len)
    })
}

fn real_write_at() -> WriteAt {
    static REAL: OnceLock<WriteAt> = OnceLock::new();
    // SAFETY: libc defines it so on 64-bit Linux.
    *REAL.get_or_init(|| unsafe { std::mem::transmute::<*mut c_void, WriteAt>(next(c"pwrite64")) })
}

/// `pwrite64(2)`, which is what Rust's library calls.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pwrite64(descriptor: c_int, bytes: *const c_void, len: usize, offset: i64) -> isize {
    // SAFETY: as the caller called it.
    unsynced::changing(descriptor, Some(offset), Some(len), || unsafe {
        real_write_at()(descriptor, bytes, len, offset)
    })
}

fn real_shorten() -> Shorten {
    static REAL: OnceLock<Shorten> = OnceLock::new();
    // SAFETY: libc defines it so on 64-bit Linux.
    *REAL.get_or_init(|| unsafe { std::mem::transmute::<*mut c_void, Shorten>(next(c"ftruncate64")) })
}

/// `ftruncate64(2)`, which is what Rust's library calls.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ftruncate64(descriptor: c_int, len: i64) -> c_int {
    // SAFETY: as the caller called it.
    unsynced::changing(descriptor, Some(len), None, || unsafe {
        real_shorten()(descriptor, len)
    })
}

/// Writes without being noted.
pub(crate) fn write_at(descriptor: c_int, bytes: &[u8], offset: i64) {
    // SAFETY: the slice is as long as is said.
    let written =
        unsafe { real_write_at()(descriptor, bytes.as_ptr().cast::<c_void>(), bytes.len(), offset) };
    if usize::try_from(written) != Ok(bytes.len()) {
        std::process::abort();
    }
}

/// Sets the length without being noted.
pub(crate) fn shorten(descriptor: c_int, len: i64) {
    // SAFETY: it takes numbers.
    if unsafe { real_shorten()(descriptor, len) } != 0 {
        std::process::abort();
    }
}

/// `sync_file_range(2)`. It makes nothing durable: the disk's own cache and the file's length may be lost all the same.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sync_file_range(descriptor: c_int, offset: i64, len: i64, flags: c_uint) -> c_int {
    static REAL: OnceLock<SyncFileRange> = OnceLock::new();
    if let Some(error) = fault(Operation::Sync, descriptor) {
        return fail(error);
    }
    let real = REAL.get_or_init(|| {
        // SAFETY: libc defines it so on 64-bit Linux, where `off64_t` is `i64`.
        unsafe { std::mem::transmute::<*mut c_void, SyncFileRange>(next(c"sync_file_range")) }
    });
    // SAFETY: as the caller called it.
    unsafe { real(descriptor, offset, len, flags) }
}
