//! Raft: the only folder that knows openraft, raft-log and bincode.
//!
//! Nothing of openraft leaves it: what is public here is in our own words. It knows no lease either, but drives
//! whatever implements [`applier::Applier`]. Reading order: [`node`], `state_machine`, `log_store`, `snapshot`.

mod applied;
pub mod applier;
mod codec;
pub mod data_dir;
pub mod error;
pub mod failure;
pub mod leadership;
mod log_store;
mod network;
pub mod node;
mod peer_network;
mod peer_rpc;
pub mod peer_service;
mod peer_snapshots;
mod records;
mod retention;
#[cfg(any(test, feature = "test-util"))]
pub mod simulated;
mod snapshot;
mod state_machine;
#[cfg(test)]
mod tests;
pub mod types;
mod work_gate;
