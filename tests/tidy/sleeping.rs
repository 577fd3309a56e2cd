//! No test waits for time to pass: it pauses the clock, or waits for a condition with a helper that says so.

use crate::code::{CodePath, Function};
use crate::finding::{Finding, expect_none, find_paths};
use crate::workspace::{RUST_FILES, RustFile};

/// Calls that let time pass.
const SLEEPS: [&str; 3] = ["sleep", "sleep_until", "park_timeout"];

/// A helper so called asks again and again until something holds; the pause between two looks is its business.
const WAITS_FOR_A_CONDITION: [&str; 3] = ["wait_until", "wait_for", "eventually"];

/// Fakes that have a time of their own to pass: a latency, a tick. The tests that use them are on the paused clock.
const FAKES: [&str; 1] = ["fence-client/src/tests/machine_store.rs"];

/// Its time is virtual: a sleep there costs nothing and is the same in every run.
const SIMULATED: &[&str] = &["NodeRt"];

fn sleeps(path: &CodePath) -> bool {
    path.is_call() && !path.starts_with(SIMULATED) && SLEEPS.iter().any(|name| path.ends_with(&[name]))
}

fn blocking_sleeps(files: &[RustFile]) -> Vec<Finding> {
    // An example shows what a stopped worker does, and stops one.
    let ours = files.iter().filter(|file| !file.is_in(&["examples/"]));
    find_paths(ours, |_, path| path.ends_with(&["thread", "sleep"]))
}

fn sleeping_tests(files: &[RustFile]) -> Vec<Finding> {
    find_paths(files, |file, path| {
        let in_test = file.is_test_file() || path.in_test;
        in_test && sleeps(path) && !file.is_in(&FAKES) && !may_sleep(file, path)
    })
}

/// A test on the paused clock, a helper of a file that has no other tests, or a wait for a condition.
fn may_sleep(file: &RustFile, path: &CodePath) -> bool {
    let around = path.function.and_then(|index| file.code.functions.get(index));
    around.is_some_and(|function| {
        is_paused(function)
            || WAITS_FOR_A_CONDITION
                .iter()
                .any(|start| function.name.starts_with(start))
            || (!function.is_test() && has_paused_tests_only(file))
    })
}

fn is_paused(function: &Function) -> bool {
    function
        .attributes
        .iter()
        .any(|attribute| attribute.contains("start_paused=true"))
}

fn has_paused_tests_only(file: &RustFile) -> bool {
    let mut tests = file
        .code
        .functions
        .iter()
        .filter(|function| function.is_test())
        .peekable();
    tests.peek().is_some() && tests.all(is_paused)
}

#[test]
fn nothing_blocks_a_thread_to_let_time_pass() {
    expect_none(
        blocking_sleeps(&RUST_FILES),
        "Wait on what is awaited: a channel, a condition variable with a deadline, a timer of the seam.",
    );
}

#[test]
fn no_test_sleeps() {
    expect_none(
        sleeping_tests(&RUST_FILES),
        "Pause the clock (`#[tokio::test(start_paused = true)]`), or wait for the condition in a function called wait_until.., wait_for.. or eventually..",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    fn caught(text: &str) -> bool {
        !sleeping_tests(&[RustFile::new("tests/cluster/main.rs", text)]).is_empty()
    }

    #[test]
    fn a_sleeping_test_is_caught() {
        assert!(caught(
            "#[tokio::test] async fn a() { tokio::time::sleep(D).await; }"
        ));
        assert!(caught(
            "use tokio::time::sleep; #[tokio::test] async fn a() { sleep(D).await; }"
        ));
        assert!(caught("async fn pause() { sleep(D).await; }"));
        assert!(!sleeping_tests(&[RustFile::new("a/src/b.rs", "#[test] fn a() { sleep(D); }")]).is_empty());
    }

    #[test]
    fn a_paused_clock_and_a_wait_for_a_condition_are_let_be() {
        assert!(!caught(
            "#[tokio::test(start_paused = true)] async fn a() { sleep(D).await; }"
        ));
        assert!(!caught(
            "async fn wait_until_ready() { while !ready() { sleep(D).await; } }"
        ));
        assert!(!caught(
            "#[tokio::test(start_paused = true)] async fn a() { later().await } async fn later() { sleep(D).await; }"
        ));
        assert!(!caught("async fn a() { NodeRt::sleep(D).await; }"));
        assert!(
            sleeping_tests(&[RustFile::new("a/src/b.rs", "async fn a() { sleep(D).await; }")]).is_empty()
        );
    }

    #[test]
    fn a_blocking_sleep_is_caught_but_in_an_example() {
        let at = |path| [RustFile::new(path, "fn a() { std::thread::sleep(D); }")];
        assert!(!blocking_sleeps(&at("a/src/b.rs")).is_empty());
        assert!(!blocking_sleeps(&at("tests/sim/main.rs")).is_empty());
        assert!(blocking_sleeps(&at("examples/race/pause.rs")).is_empty());
    }
}
