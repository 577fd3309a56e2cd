//! Which role this node plays, as far as it knows.
//!
//! A leadership begins for us only when its own first entry is applied *here*: before that, entries of earlier
//! leaderships may still be on their way. Its end is seen late at best (an isolated leader learns it from nobody), so
//! the end is no fence: what fences is that each proposal names its leadership, and the quorum decides.

use lease_core::Timestamp;
use openraft::async_runtime::watch::WatchReceiver as _;
use openraft::metrics::RaftServerMetrics;
use openraft::type_config::TypeConfigExt as _;
use openraft::type_config::alias::WatchReceiverOf;
use openraft_rt::Select2;

use super::types::{LeaderId, LeadershipId, Types};
use crate::runtime::Rt;

/// The last stamped entry applied here before a leadership, and when: cluster time goes on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor<I> {
    /// Its stamp.
    pub stamp: Timestamp,
    /// When it was applied here, or a snapshot that holds it was loaded, on this node's monotonic clock.
    pub applied_at: I,
}

/// A leadership of this node whose first entry is applied here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leading<I> {
    /// Which one it is: each proposal names it.
    pub id: LeadershipId,
    /// From where cluster time goes on; `None` if no entry was ever stamped.
    pub anchor: Option<Anchor<I>>,
}

/// What this node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role<I> {
    /// It leads, as far as it knows.
    Leading(Leading<I>),
    /// It does not lead, or not yet.
    Following {
        /// The node that leads, if this one knows: requests go there.
        leader: Option<u64>,
    },
}

/// Follows the role of this node. Values may be skipped, the latest never is.
pub struct LeadershipWatch<R: Rt, O: Send + Sync + 'static> {
    node: u64,
    started: Started<R, O>,
    server: WatchReceiverOf<Types<R, O>, RaftServerMetrics<Types<R, O>>>,
    shown: Option<Role<R::Instant>>,
}

/// The newest leadership of this node whose first entry was applied here.
pub(super) type Started<R, O> =
    WatchReceiverOf<Types<R, O>, Option<Leading<<R as openraft::AsyncRuntime>::Instant>>>;

impl<R: Rt, O: Send + Sync + 'static> LeadershipWatch<R, O> {
    pub(super) fn new(
        node: u64,
        started: Started<R, O>,
        server: WatchReceiverOf<Types<R, O>, RaftServerMetrics<Types<R, O>>>,
    ) -> Self {
        Self {
            node,
            started,
            server,
            shown: None,
        }
    }

    /// The role at this moment.
    #[must_use]
    pub fn role(&self) -> Role<R::Instant> {
        let (leader, current_leader): (Option<LeaderId>, Option<u64>) = {
            let server = self.server.borrow_watched();
            let leads = server.vote.is_committed() && server.vote.leader_id.node_id == self.node;
            (leads.then_some(server.vote.leader_id), server.current_leader)
        };
        let started = *self.started.borrow_watched();
        match (leader, started) {
            (Some(leader), Some(leading)) if leading.id == LeadershipId::from(leader) => {
                Role::Leading(leading)
            }
            // Its first entry is on the way: nobody can serve a request yet.
            (Some(_), _) => Role::Following { leader: None },
            (None, _) => Role::Following {
                leader: current_leader.filter(|leader| *leader != self.node),
            },
        }
    }

    /// Waits until the role is another than the last one returned; the first call returns at once. `None` once Raft
    /// has stopped.
    ///
    /// # Cancel safety
    /// Cancel safe: a change that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> Option<Role<R::Instant>> {
        loop {
            let role = self.role();
            if self.shown != Some(role) {
                self.shown = Some(role);
                return Some(role);
            }
            let woken = Types::<R, O>::select2(self.started.changed(), self.server.changed()).await;
            match woken {
                Select2::First(Ok(())) | Select2::Second(Ok(())) => {}
                Select2::First(Err(_)) | Select2::Second(Err(_)) => return None,
            }
        }
    }
}

impl<R: Rt, O: Send + Sync + 'static> std::fmt::Debug for LeadershipWatch<R, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeadershipWatch")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}
