//! The lease store beside Redis and etcd: the same work on each, in turns within one run.
//!
//! One generator drives all of them, on one thread of this process, and checks every reply: a refusal ends the run. What
//! each system guarantees while it is measured stands beside its figures ([`systems`]). It leaves to others what the
//! figures mean: `docs/benchmarks.md`.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever is not the answer that the work needs ends the run"
)]

pub mod chart;
pub mod embedded;
pub mod etcd;
pub mod grpc;
pub mod lease;
pub mod options;
pub mod process;
pub mod promises;
pub mod protobuf;
pub mod redis;
pub mod report;
pub mod resp;
pub mod results;
pub mod run;
pub mod servers;
pub mod systems;
pub mod work;
