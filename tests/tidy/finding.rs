//! What a rule found, and how the test says it.

use std::fmt;

use crate::code::CodePath;
use crate::workspace::RustFile;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the root of the repository.
    pub(crate) file: String,
    /// Counted from 1; 0 is the file as a whole.
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// Every path in `files` that `is_bad` there.
pub(crate) fn find_paths<'a>(
    files: impl IntoIterator<Item = &'a RustFile>,
    is_bad: impl Fn(&RustFile, &CodePath) -> bool,
) -> Vec<Finding> {
    let files = files.into_iter();
    files
        .flat_map(|file| {
            let bad = file.code.paths.iter().filter(|path| is_bad(file, path));
            bad.map(|path| Finding::new(&file.path, path.line, path.text()))
        })
        .collect()
}

/// Fails with every finding in order of place, and with what to do about it.
#[track_caller]
pub(crate) fn expect_none(mut findings: Vec<Finding>, what_to_do: &str) {
    findings.sort();
    findings.dedup();
    let list: String = findings.iter().map(|finding| format!("\n  {finding}")).collect();
    assert!(findings.is_empty(), "{what_to_do}{list}");
}

#[test]
#[should_panic(expected = "Mend it.\n  a.rs: whole\n  a.rs:2: twice")]
fn the_message_says_what_to_do_and_lists_each_place_once() {
    let twice = Finding::new("a.rs", 2, "twice");
    expect_none(
        vec![twice.clone(), Finding::new("a.rs", 0, "whole"), twice],
        "Mend it.",
    );
}
