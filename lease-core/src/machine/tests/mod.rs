//! Tests of the machine: its rules by name, and everything else against the naive [`model`].
#![expect(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "a test that overflows or misses shall panic; saturating would hide it"
)]

mod bodies;
mod cases;
mod counting;
mod departures;
mod forwarding;
mod holding;
mod model;
mod passing_time;
mod properties;
mod queueing;
mod redis;
mod requesting;
mod script_commands;
mod scripts;
mod snapshots;
mod steps;
mod words;
