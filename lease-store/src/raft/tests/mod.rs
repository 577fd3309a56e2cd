//! Tests of the folder as a whole, on a small counting machine.

mod counter;
mod durability;
mod proposals;
mod snapshots;
mod storage_suite;
