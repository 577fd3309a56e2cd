//! A library that is loaded before libc (`LD_PRELOAD`) and fails the disk of one process on demand.
//!
//! `FAULTS_UNDER` names a directory: files elsewhere are left alone. `FAULTS_ORDER` names a file with the faults that
//! are in force, one a line (`sync EIO`, `sync hangs`); it is read at every call, so a test turns a fault on by writing the file and
//! off by removing it. Without both variables nothing is changed. With `FAULTS_UNSYNCED` set as well, what is written and not
//! synced is noted, and `power cut` takes it and ends the process.
//!
//! [`orders`] says what shall fail, [`calls`] stands in front of libc, [`unsynced`] can take back. Linux only; elsewhere the library is empty.
#![expect(
    unsafe_code,
    reason = "a library that stands in front of libc is C: the one place of this repository that needs it"
)]

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod orders;
#[cfg(target_os = "linux")]
mod unsynced;
