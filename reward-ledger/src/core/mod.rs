//! The decision on a claim: a pure function of what one transaction read.
//!
//! Nothing here waits, reads a clock or touches a store. A store reads a [`View`], asks [`decide`], and writes the
//! [`Effects`], all in one transaction; it may do so more than once.

mod decide;
#[cfg(test)]
mod model_tests;
mod outcome;
mod rules;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use decide::decide;
pub use outcome::{ClaimOutcome, ConflictSubject};
pub use rules::{Protection, Protections};
pub(crate) use view::{Attempt, Decision, Effects, NextClaim, View};
