//! Three nodes as a team runs them: processes of their own on loopback, real sockets and files, killed and stopped.
//!
//! One file a subject; each test forms a cluster of its own. What clients saw under load is checked as a whole history.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "in a test, a panic is the failure of the test, and any other reply is one"
)]
#![expect(
    clippy::print_stdout,
    reason = "the times that were measured, with --nocapture"
)]

mod callers;
mod channels;
mod client;
mod cuts;
mod disks;
mod elections;
mod failover;
mod formation;
mod forwarding;
mod handover;
mod kills;
mod latency;
mod libraries;
mod load;
mod pause;
mod quorum;
mod recovery;
mod scale;
mod scripts;
mod stale;
mod trio;
mod waits;
mod wires;
