//! What must not be left in a file: unfinished work, tests that do not run, queues without a bound, paths of one
//! machine.

use crate::code::{CodePath, Role};
use crate::finding::{Finding, expect_none, find_paths};
use crate::workspace::{RUST_FILES, RustFile, TEXT_FILES, TextFile};

/// The rules spell out what they forbid.
const THE_RULES: &str = "tests/tidy/";

/// Marks of unfinished work.
const UNFINISHED_WORDS: [&str; 2] = ["FIXME", "XXX"];
const UNFINISHED_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Where one machine keeps its files.
const MACHINE_PATHS: [&str; 4] = ["/home/", "/root/", "/Users/", "C:\\"];

/// Channels that grow with what their sender does.
const UNBOUNDED: [&str; 4] = [
    "unbounded_channel",
    "UnboundedSender",
    "UnboundedReceiver",
    "MpscUnbounded",
];

fn words_in(files: &[TextFile], words: &[&str]) -> Vec<Finding> {
    let ours = files.iter().filter(|file| !file.path.starts_with(THE_RULES));
    ours.flat_map(|file| {
        file.text.lines().enumerate().filter_map(|(at, line)| {
            let word = words.iter().find(|word| stands_alone(line, word))?;
            Some(Finding::new(&file.path, at + 1, *word))
        })
    })
    .collect()
}

/// Whether `word` is in `line` and not the tail of a longer one: `/home/` is not in `a/home/`, nor `XXX` in `xXXX`.
fn stands_alone(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        !before
            .is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '.' | '}' | '*' | '-'))
    })
}

fn unfinished(_: &RustFile, path: &CodePath) -> bool {
    path.role == Role::Macro && UNFINISHED_MACROS.iter().any(|name| path.ends_with(&[name]))
}

/// tokio's unbounded channels by name, the standard library's by the missing argument.
fn unbounded(_: &RustFile, path: &CodePath) -> bool {
    let last = path.segments.last().map_or("", String::as_str);
    UNBOUNDED.contains(&last)
        || (path.role == Role::CallWithoutArguments && path.ends_with(&["mpsc", "channel"]))
}

fn ignored_tests(files: &[RustFile]) -> Vec<Finding> {
    let of_file = |file: &RustFile| -> Vec<Finding> {
        let marks = file
            .code
            .attributes
            .iter()
            .filter(|attribute| attribute.text == "ignore" || attribute.text.starts_with("ignore="));
        marks
            .map(|mark| Finding::new(&file.path, mark.line, "#[ignore]"))
            .collect()
    };
    files.iter().flat_map(of_file).collect()
}

#[test]
fn nothing_unfinished_is_left() {
    let mut findings = words_in(&TEXT_FILES, &UNFINISHED_WORDS);
    findings.extend(find_paths(RUST_FILES.iter(), unfinished));
    expect_none(
        findings,
        "Finish it, or take it out; what is to come later is no part of the code.",
    );
}

#[test]
fn every_test_runs() {
    expect_none(
        ignored_tests(&RUST_FILES),
        "A test that does not run holds nothing: make it fast or reliable enough, or take it out.",
    );
}

#[test]
fn every_queue_has_a_bound() {
    expect_none(
        find_paths(RUST_FILES.iter(), unbounded),
        "Give it a depth: a named constant with its reason (`mpsc::channel(DEPTH)`, `mpsc::sync_channel(DEPTH)`).",
    );
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    expect_none(
        words_in(&TEXT_FILES, &MACHINE_PATHS),
        "Nobody else has this path: make it relative, or an argument.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    fn text(text: &str) -> [TextFile; 1] {
        [TextFile {
            path: "docs/a.md".to_owned(),
            text: text.to_owned(),
        }]
    }

    fn code(text: &str) -> [RustFile; 1] {
        [RustFile::new("a/src/b.rs", text)]
    }

    #[test]
    fn unfinished_work_is_caught() {
        assert!(!words_in(&text("fine\n// FIXME: later"), &UNFINISHED_WORDS).is_empty());
        assert!(words_in(&text("a fix for MXXX"), &UNFINISHED_WORDS).is_empty());
        assert!(!find_paths(&code("fn f() { todo!() }"), unfinished).is_empty());
        assert!(!find_paths(&code("fn f() { std::dbg!(1); }"), unfinished).is_empty());
        assert!(find_paths(&code("fn f() { let s = \"todo!()\"; }"), unfinished).is_empty());
    }

    #[test]
    fn a_test_that_does_not_run_is_caught() {
        assert!(!ignored_tests(&code("#[test] #[ignore = \"slow\"] fn a() {}")).is_empty());
        assert!(!ignored_tests(&code("#[ignore] #[test] fn a() {}")).is_empty());
        assert!(ignored_tests(&code("#[test] fn ignore() {}")).is_empty());
    }

    #[test]
    fn a_queue_without_a_bound_is_caught() {
        let caught = |text| !find_paths(&code(text), unbounded).is_empty();
        assert!(caught("use tokio::sync::mpsc::{self, unbounded_channel};"));
        assert!(caught("fn f() { let (a, b) = mpsc::channel::<u8>(); }"));
        assert!(caught("fn f(a: mpsc::UnboundedSender<u8>) {}"));
        assert!(!caught(
            "fn f() { let (a, b) = mpsc::channel(DEPTH); let (c, d) = oneshot::channel(); }"
        ));
    }

    #[test]
    fn a_path_of_one_machine_is_caught_and_a_relative_one_is_not() {
        let caught = |line: &str| !words_in(&text(line), &MACHINE_PATHS).is_empty();
        assert!(caught("cd /home/ada/store") && caught("see `/root/store/README.md`"));
        assert!(!caught("cd ./home/a") && !caught("target/home/x") && !caught("$HOME/x"));
    }
}
