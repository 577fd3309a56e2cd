//! Words for people and JSON for programs.

use std::error::Error;
use std::io::{self, Write as _};

use serde_json::Value;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Words,
    Json,
}

impl Format {
    /// Writes one answer.
    pub(super) fn say(self, words: &str, json: &Value) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match self {
            Self::Words => writeln!(out, "{words}"),
            Self::Json => writeln!(out, "{json}"),
        }
    }
}

/// A line for people who wait: on the error output, so that it is not in anybody's JSON.
pub(super) fn say_progress(line: &str) {
    // Nobody may be there to read it.
    let _gone = writeln!(io::stderr().lock(), "{line}");
}

/// An error with its causes.
pub(super) fn say_error(error: &dyn Error) {
    let mut text = format!("reward-ledger: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    say_progress(&text);
}
