//! Telling the outside: rows of the outbox, at least once, in order per player, one effect each by their keys.
//!
//! ```text
//! Publisher (a task) ──lease, settle──▶ store        deliveries: one task a player, in order ──▶ Target
//!        ▲ verdicts                                          │
//!        └────────────────────────────────────────────────────┘
//! ```
//! What to do with a row is [`decide`]'s, pure; who may say what became of it is the store's, by the row's epoch.

#[cfg(test)]
#[cfg(all(feature = "sled", feature = "postgres"))]
mod crash_tests;
mod decide;
#[cfg(test)]
mod decide_tests;
#[cfg(feature = "lease-guard")]
mod guard;
#[cfg(feature = "http-target")]
mod http_target;
mod memory_target;
mod policy;
mod publisher;
mod run;
mod target;
#[cfg(test)]
mod tests;

pub use decide::{Answer, Status};
#[cfg(feature = "lease-guard")]
pub use guard::LeaseGuard;
#[cfg(feature = "http-target")]
pub use http_target::{HttpTarget, HttpTargetBuilder};
pub use memory_target::{MemoryTarget, Mood};
pub use policy::{PublishPolicy, PublishPolicyBuilder};
#[cfg(all(test, feature = "server"))]
pub(crate) use publisher::spawn;
pub use publisher::{Published, Publisher, Territory};
pub use target::{Target, TargetFuture};
