//! What is recorded in `tests/data`: scripts that tell how the machine answers, and the bytes of its formats.
//!
//! `UPDATE=1 cargo test -p lease-core --test recorded` writes the files anew; the change is then reviewed as a diff.
#![expect(clippy::unwrap_used, reason = "a test that misses something shall panic")]

mod formats;
mod parse;
mod record;
mod say;
mod scripts;
