//! Where no clock, file, socket, thread or random may appear, and where they may come only from the seam.

use crate::finding::{Finding, expect_none, find_paths};
use crate::workspace::{RUST_FILES, RustFile};

/// Code that takes data and returns data: the places where no clock, file, socket, thread or random may appear.
const PURE: [&str; 5] = [
    "lease-core/src/",
    "reward-ledger/src/core/",
    "reward-ledger/src/event_id/",
    "fence-client/src/watchdog/decide.rs",
    "fence-client/src/backoff.rs",
];

/// What no pure code may touch. `std::io` is not among them: its traits also read and write memory.
const IMPURE: [&[&str]; 18] = [
    &["std", "env"],
    &["std", "fs"],
    &["std", "net"],
    &["std", "os"],
    &["std", "process"],
    &["std", "sync", "Mutex"],
    &["std", "sync", "RwLock"],
    &["std", "sync", "Condvar"],
    &["std", "sync", "mpsc"],
    &["std", "sync", "atomic"],
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["std", "collections", "hash_map", "RandomState"],
    &["tokio"],
    &["rand"],
    &["getrandom"],
    &["rustix"],
];

/// The files that time and tasks enter lease-store through.
const THE_SEAM: [&str; 3] = [
    "lease-store/src/runtime.rs",
    "lease-store/src/main.rs",
    "lease-store/src/simulation/",
];

/// What tokio gives only to the seam.
const SEAM_ONLY: [&[&str]; 3] = [&["tokio", "time"], &["tokio", "spawn"], &["tokio", "task"]];

/// These start nothing and wait for nobody: any executor carries them out.
const NOT_OF_THE_SEAM: [&str; 2] = ["yield_now", "unconstrained"];

fn impurities(files: &[RustFile]) -> Vec<Finding> {
    let pure = files
        .iter()
        .filter(|file| file.is_in(&PURE) && !file.is_test_file());
    find_paths(pure, |_, path| {
        let word = path.segments.first().map_or("", String::as_str);
        let touches = |bad: &[&str]| path.starts_with(bad) && (path.segments.len() > 1 || bad.len() > 1);
        !path.in_test && (IMPURE.iter().any(|bad| touches(bad)) || matches!(word, "async" | "await"))
    })
}

/// Tasks and timers that an actor of lease-store takes from tokio itself.
fn around_the_seam(files: &[RustFile]) -> Vec<Finding> {
    let actors = files.iter().filter(|file| {
        file.path.starts_with("lease-store/src/") && !file.is_in(&THE_SEAM) && !file.is_test_file()
    });
    find_paths(actors, |_, path| {
        let starts_or_waits =
            SEAM_ONLY.iter().any(|name| path.starts_with(name)) || path.ends_with(&["JoinSet"]);
        let is_harmless = NOT_OF_THE_SEAM.iter().any(|name| path.ends_with(&[name]));
        !path.in_test && starts_or_waits && !is_harmless
    })
}

#[test]
fn pure_code_touches_no_clock_file_socket_thread_or_random() {
    expect_none(
        impurities(&RUST_FILES),
        "Take it as an argument: the shell around this code knows the world.",
    );
}

#[test]
fn actors_take_tasks_and_timers_from_the_seam() {
    expect_none(
        around_the_seam(&RUST_FILES),
        "Take spawn, sleep, now and random from lease-store/src/runtime.rs: shutdown joins it there, the simulation drives it.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    #[test]
    fn impure_code_is_caught_in_a_pure_place_and_not_in_its_tests() {
        let caught = |text| !impurities(&[RustFile::new("lease-core/src/machine/lease.rs", text)]).is_empty();
        assert!(caught("use std::{fmt, time::{Duration, Instant}};"));
        assert!(caught("fn f() { std::env::var(\"X\") }"));
        assert!(caught("async fn f() {}"));
        assert!(caught("use tokio::sync::mpsc;"));
        assert!(!caught("use std::time::Duration; use std::io::Read;"));
        assert!(!caught("#[cfg(test)] mod tests { use std::fs; }"));
    }

    #[test]
    fn a_task_or_a_timer_around_the_seam_is_caught() {
        let caught = |path, text| !around_the_seam(&[RustFile::new(path, text)]).is_empty();
        let actor = "lease-store/src/timers.rs";
        assert!(caught(actor, "fn f() { tokio::spawn(g()); }"));
        assert!(caught(actor, "use tokio::{sync::mpsc, time::sleep};"));
        assert!(caught(actor, "use tokio::task::JoinSet;"));
        assert!(!caught(actor, "async fn f() { tokio::task::yield_now().await }"));
        assert!(!caught(
            "lease-store/src/runtime.rs",
            "fn f() { tokio::spawn(g()); }"
        ));
    }
}
