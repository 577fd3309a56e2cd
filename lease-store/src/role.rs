//! What this node may do right now: nothing alone, or lead.

use crate::runtime::Instant;
use lease_core::Timestamp;

use crate::clock::ClusterClock;
use crate::raft::types::LeadershipId;

/// The role of this node, as its leadership actor last saw it.
///
/// It opens the way for proposals and never closes it safely: a leader that was deposed learns of it late. What closes
/// it is Raft, which refuses a proposal that names a leadership that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role<I> {
    /// Another node leads, or nobody.
    Following {
        /// Who leads, as far as is known.
        leader: Option<u64>,
    },
    /// This node leads, and the first entry of its leadership is applied here.
    Leading(Leading<I>),
}

/// One leadership of this node, with its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leading<I> {
    /// Which leadership.
    pub(crate) id: LeadershipId,
    /// The clock that it stamps with.
    pub(crate) clock: ClusterClock<I>,
}

impl<I: Instant> Role<I> {
    /// The leadership, if this node leads.
    pub(crate) const fn leading(&self) -> Option<&Leading<I>> {
        match self {
            Self::Leading(leading) => Some(leading),
            Self::Following { .. } => None,
        }
    }

    /// Who leads, as far as is known.
    pub(crate) const fn leader(&self) -> Option<u64> {
        match self {
            Self::Leading(leading) => Some(leading.id.node),
            Self::Following { leader } => *leader,
        }
    }
}

impl<I: Instant> Leading<I> {
    /// The cluster's time at the local time `now`.
    pub(crate) fn time(&self, now: I) -> Timestamp {
        self.clock.at(now)
    }
}
