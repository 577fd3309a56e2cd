//! Tests of the folder as a whole, on a small counting machine.

pub(super) mod counter;
mod durability;
mod golden;
mod proposals;
mod snapshots;
mod storage_suite;
