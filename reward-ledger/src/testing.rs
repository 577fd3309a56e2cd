//! For tests only: protections switched off one at a time, and the suite that every store passes.
//!
//! A test that holds with all protections on proves little until the same test is seen to fail with one of them off.

pub use crate::core::{Protection, Protections};
#[cfg(feature = "sled")]
pub use crate::store::Stage;
pub use crate::store::conformance;
#[cfg(feature = "postgres")]
pub use crate::store::{PostgresStage, server};
