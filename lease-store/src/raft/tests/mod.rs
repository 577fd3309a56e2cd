//! Tests of the folder as a whole, on a small counting machine.

mod cluster;
pub(super) mod counter;
mod durability;
mod golden;
mod peer_messages;
mod peer_snapshots;
mod proposals;
mod snapshots;
pub(super) mod storage_suite;
mod trio;
