//! The Redis protocol on a socket: RESP2 and RESP3, the `LEASE.*` commands and Redis's string keys.
//!
//! `listener` accepts, one `connection` serves each socket, `session` is what a connection remembers, `plan` says what
//! a request asks for, and the rest is one file for each group of commands. Everything goes through
//! [`crate::service`]; nothing here knows Raft.

mod answer;
mod auth;
mod client;
mod connection;
mod hello;
mod info;
mod keys;
mod keyspace;
mod listener;
mod plan;
mod pubsub;
mod questions;
mod scripts;
mod session;
mod transaction;
mod verb;

pub(crate) use auth::Password;
pub use auth::PasswordError;
pub use listener::Flushing;
pub(crate) use listener::{Listener, RespConfig};

/// The version of Redis whose behaviour the string commands have; some clients choose their commands by it.
pub(crate) const REDIS_VERSION: &str = "8.4.0";
