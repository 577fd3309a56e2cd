//! The rules of this repository that no compiler checks, as tests: who may import what, which package may depend on
//! which, what a file may hold, and what the documents promise.
//!
//! One file a group of rules, one `#[test]` a rule, and each rule is shown a bad sample too, so that it is seen to
//! fail. Reads the working tree; starts nothing but `cargo metadata`, which asks no network.

// How the tree is read.
mod code;
mod finding;
mod workspace;

// The rules.
mod arrows;
mod commands;
mod files;
mod habits;
mod imports;
mod manifests;
mod mutants;
mod named_tests;
mod purity;
mod sleeping;
mod walls;
