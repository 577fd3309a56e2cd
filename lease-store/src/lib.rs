//! Leases with linearizable fencing tokens, replicated by Raft: embedded library and Redis-protocol server.
mod absences;
mod admin;
mod clock;
mod config;
mod error;
mod events;
mod formation;
mod forward;
mod keeper;
mod leadership;
mod metrics;
mod orphans;
pub mod peers;
mod proposer;
pub mod raft;
mod reader;
mod replica;
mod resp;
mod role;
pub mod runtime;
mod server;
mod service;
mod start;
mod store;
mod timers;
mod token_floor;
mod waiters;

pub use config::{ClusterConfig, ClusterConfigError, DEFAULT_NODE, StorageConfig, StoreConfig};
pub use error::StoreError;
pub use events::{LeaseEvent, LeaseEventKind};
pub use formation::FormationError;
pub use metrics::{Gauges, Metrics};
pub use resp::PasswordError;
pub use server::{Exposure, Ready, Server, ServerConfig, ServerError};
pub use service::{CallError, Stored, TtlAnswer};
pub use start::StartError;
pub use store::{LeaseStore, MemberStatus, NodeStatus, Standing, Store};
pub use token_floor::{FloorError, TokenFloor};

#[cfg(test)]
mod tests;
