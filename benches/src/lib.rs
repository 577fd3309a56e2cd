//! What the benchmarks share: loads, a bare disk to compare with, and the budgets.
//!
//! Everything here measures real time on a real disk. The criterion benches follow one figure over time; `ratios` runs
//! what is compared side by side and holds it to [`budget::BUDGETS`]. `docs/benchmarks.md` has the figures.

pub mod audits;
pub mod bare_disk;
pub mod budget;
pub mod claims;
pub mod comparison;
pub mod database;
pub mod deliveries;
pub mod embedded;
pub mod hand_written;
pub mod host;
pub mod machine_times;
pub mod options;
pub mod population;
pub mod progress;
pub mod samples;
pub mod scratch;
pub mod stalls;
pub mod stopwatch;

/// Whatever keeps a benchmark from measuring; it ends the run.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
