//! What clients saw, and what must be true of it.
//!
//! A run is recorded as one [`Record`] for each attempt, on one clock. Afterwards [`check`] looks at the whole of it, and
//! so does [`check_times`], which is also told when the cluster was disturbed. Neither asks how the store works: only
//! what was asked, what was answered, and when. An attempt without an answer may have been applied or not, and stays
//! open for ever.
//!
//! The letters of [`Rule`] are those of the lease checks in ARCHITECTURE.md's sense: what a lock service promises.

mod certain;
mod check;
mod ends;
mod grants;
mod record;
#[cfg(test)]
mod tests;
mod times;

pub use check::{Rule, Violation, check};
pub use ends::{AttemptId, Outage, Promise};
pub use record::{History, Micros, Op, Outcome, Record};
pub use times::{Judged, Times, check_times};
