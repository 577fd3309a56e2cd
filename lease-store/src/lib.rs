//! Leases with linearizable fencing tokens, replicated by Raft: embedded library and Redis-protocol server.
//!
//! ```
//! use lease_core::wire::{AcquireCommand, AcquireReply};
//! use lease_core::{Database, LeaseName, OwnerId, Ttl};
//! use lease_store::{LeaseStore, StoreConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In memory for a test; `StoreConfig::in_directory` keeps everything.
//! let store = LeaseStore::start(StoreConfig::in_memory()).await?;
//! let ask = |owner| -> Result<AcquireCommand, lease_core::InvalidValue> {
//!     Ok(AcquireCommand {
//!         name: LeaseName::new("lock:reward:player-42")?,
//!         owner: OwnerId::new(owner)?,
//!         ttl: Ttl::from_millis(5_000)?,
//!         wait_ms: 0,
//!         request: None,
//!         metadata: None,
//!     })
//! };
//! let granted = store.acquire(Database::ZERO, ask("worker-a")?).await?;
//! assert!(matches!(granted, AcquireReply::Granted { .. }));
//! let refused = store.acquire(Database::ZERO, ask("worker-b")?).await?;
//! assert!(matches!(refused, AcquireReply::Held { .. }), "and it says by whom, and for how long still");
//! store.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! For work under a lease use fence-client, which renews it and learns of its loss; it takes a [`LeaseStore`] as it takes
//! a server's address. What is promised: `docs/guarantees.md`.
//!
//! [`LeaseStore`] is the store, [`StoreConfig`] sets it up, [`Server`] puts listeners in front of it. The feature
//! `test-util` opens more, for this repository's simulation and fault tests; nothing is promised about that.

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
#[cfg(not(feature = "test-util"))]
#[expect(unreachable_pub, reason = "what the simulation and the fault tests reach")]
#[expect(unused_imports, reason = "what only they need")]
#[cfg_attr(not(test), expect(dead_code, reason = "what only they need"))]
mod peers;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub mod peers;
mod proposer;
#[cfg(not(feature = "test-util"))]
#[expect(unreachable_pub, reason = "what the simulation and the fault tests reach")]
#[expect(unused_imports, dead_code, reason = "what only they need")]
mod raft;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub mod raft;
mod reader;
mod replica;
mod resp;
mod role;
#[cfg(not(feature = "test-util"))]
#[expect(unreachable_pub, reason = "what the simulation and the fault tests reach")]
#[expect(unused_imports, reason = "what only they need")]
mod runtime;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub mod runtime;
mod server;
mod service;
#[cfg(any(test, feature = "test-util"))]
#[doc(hidden)]
pub mod simulation;
mod start;
mod store;
mod timers;
mod token_floor;
mod waiters;

pub use config::{
    ClusterConfig, ClusterConfigError, DEFAULT_NODE, SnapshotCadence, StorageConfig, StoreConfig,
};
pub use error::StoreError;
pub use events::{LeaseEvent, LeaseEventKind};
pub use formation::FormationError;
pub use metrics::{Gauges, Metrics};
pub use peers::OtherCluster;
pub use raft::data_dir::DataDirError;
pub use raft::error::StartError as RaftStartError;
pub use raft::failure::NodeFailure;
pub use resp::{Flushing, PasswordError};
pub use server::{Exposure, Ready, Server, ServerConfig, ServerError};
pub use service::{CallError, NamedScript, ScriptCall, Stored, TtlAnswer};
pub use start::StartError;
pub use store::{LeaseStore, MemberStatus, NodeStatus, PeerProgress, Standing, Store};
pub use token_floor::{FloorError, TokenFloor};

/// The runtime that a [`Store`] runs on; a [`LeaseStore`] runs on tokio. For generic code and the simulation.
#[doc(hidden)]
pub use runtime::{Rt, Tokio};

#[cfg(test)]
mod tests;
