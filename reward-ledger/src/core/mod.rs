//! The decisions: pure functions of what one transaction read.
//!
//! Nothing here waits, reads a clock or touches a store. A store reads a [`View`], asks [`decide`], and writes the
//! [`Effects`], all in one transaction; it may do so more than once.

mod decide;
pub(crate) mod delivery;
#[cfg(test)]
mod delivery_tests;
#[cfg(test)]
mod model_tests;
mod outcome;
pub(crate) mod payment;
#[cfg(test)]
mod payment_tests;
pub(crate) mod reversal;
mod rules;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use decide::decide;
pub use outcome::{BatchOutcome, ClaimOutcome, ConflictSubject, RefusedClaim};
pub use payment::{Judgement, PaymentField, PaymentOutcome, PaymentReport, PaymentWitness, ReportOutcome};
pub use reversal::ReversalOutcome;
pub use rules::{Protection, Protections};
pub(crate) use view::{Attempt, Decision, Effects, NextClaim, View};
