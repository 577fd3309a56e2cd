//! The store in a deterministic simulation: the very same actors, Raft and machine, in virtual time, from a seed.
//!
//! What is simulated here: the runtime ([`NodeRt`]) with processes that crash, pause and have clocks of their own
//! ([`begin`], [`crash`], [`pause`]). The disk of a node is [`crate::raft::simulated`], the network
//! [`crate::peers::memory`]. What this leaves to others: clients, faults and the judge, which are in the package of the
//! tests of the whole system.

mod chaos;
mod clock;
mod group;
mod probe;
mod runtime;
#[cfg(test)]
mod tests;

pub use chaos::{Chaos, panics, set_chaos};
pub use clock::{ClockRate, NodeInstant, true_time};
pub use group::{Steps, begin, crash, lives, pause, resume};
pub use probe::Fingerprint;
pub use runtime::{NodeJoinError, NodeJoinHandle, NodeRt};
