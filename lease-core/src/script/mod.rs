//! Scripts: a subset of Lua 5.1, read into a checked program and run over the lease machine.
//!
//! The text is read where a request arrives ([`Program::parse`]); the log and the snapshots hold the program alone, so
//! no change of the parser can make replicas differ. [`run`] is pure and total: it is bounded in steps, in memory, in
//! depth and in the size of its reply, and counts them alike everywhere. It leaves to its [`Host`] what commands do, and
//! to the machine what becomes of a script's changes.
//!
//! The rules of [`run`] are a part of the machine's version: a change of what a program means is a new version.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most arms take one kind of word or value, and refuse all others alike"
)]

mod codec;
mod digest;
mod number;
mod parse;
mod program;
mod reply;
mod run;
#[cfg(test)]
mod tests;
mod verb;

pub use codec::{NotAProgram, PROGRAM_FORMAT};
pub use digest::ScriptDigest;
pub use parse::LoadError;
pub use program::Program;
pub use reply::ScriptReply;
pub use run::{Ended, Host, Invocation, ScriptBound, StepsLeft, run};
pub use verb::Verb;
