//! Requests that go to the leader, since it alone stamps entries and proves reads.
//!
//! What travels is the request, never a stamped entry: the leader stamps it with its own clock, in its own leadership.
//! It leaves to `peers` how bytes reach another node.

mod handler;
mod peer;
mod wire;

use std::future::Future;
use std::pin::Pin;

use lease_core::Timestamp;
use lease_core::machine::Outcome;
use lease_core::machine::codec::EncodedCommand;

use crate::error::StoreError;

pub(crate) use handler::RequestHandler;
pub(crate) use peer::OverPeers;

/// One answer for each command, in order.
pub(crate) type Outcomes = Vec<Result<Outcome, StoreError>>;

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way to the leader.
pub(crate) trait Forward: Send + Sync + 'static {
    /// Has the leader propose commands; one answer for each.
    fn submit(&self, leader: u64, commands: Vec<EncodedCommand>) -> Answer<'_, Outcomes>;

    /// Has the leader prove that it leads.
    fn barrier(&self, leader: u64) -> Answer<'_, Result<Barrier, StoreError>>;
}

/// What a leader has proven: everything acknowledged before it was asked lies at or below this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Barrier {
    /// The entry up to which a reader must have applied.
    pub(crate) index: u64,
    /// The cluster's time at the leader after the proof.
    pub(crate) time: Timestamp,
}

/// For a node that is alone: there is nobody to ask.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NobodyElse;

impl Forward for NobodyElse {
    fn submit(&self, _leader: u64, commands: Vec<EncodedCommand>) -> Answer<'_, Outcomes> {
        let refused = commands
            .iter()
            .map(|_| Err(StoreError::Unavailable { leader: None }))
            .collect();
        Box::pin(std::future::ready(refused))
    }

    fn barrier(&self, _leader: u64) -> Answer<'_, Result<Barrier, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError::Unavailable { leader: None })))
    }
}
