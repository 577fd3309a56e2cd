//! The server as its users meet it: the binary in processes of its own, over real sockets and real files.
//!
//! One file a subject; each test starts the nodes that it needs. What a test waits for has a deadline, and a node dies
//! with the test that started it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "in a test, a panic is the failure of the test, and any other reply is one"
)]

mod access;
mod admin;
mod damage;
mod decoder;
mod differential;
mod hostile;
mod keys;
mod keyspace;
mod kills;
mod leases;
mod overload;
mod pipelines;
mod pubsub;
mod refusals;
mod scripts;
mod sessions;
mod settings;
mod start;
mod stop;
mod storage;
mod transactions;
mod waits;
