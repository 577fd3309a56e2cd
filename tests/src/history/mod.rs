//! What clients saw, and what must be true of it.
//!
//! A run is recorded as one [`Record`] for each attempt, on one clock, and [`check`] looks at the whole of it
//! afterwards. It does not ask how the store works: only what was asked, what was answered, and when. An attempt
//! without an answer may have been applied or not, and stays open for ever.
//!
//! The letters of [`Rule`] are those of the lease checks in ARCHITECTURE.md's sense: what a lock service promises.

mod check;
mod grants;
mod record;
#[cfg(test)]
mod tests;

pub use check::{Rule, Violation, check};
pub use record::{History, Micros, Op, Outcome, Record};
