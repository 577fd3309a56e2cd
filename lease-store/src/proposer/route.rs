//! Where commands go now, and what the proposer remembers between batches.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::batch::Ask;
use super::numbers::{Life, Numbers};
use super::{Proposer, Route};
use crate::raft::types::LeadershipId;
use crate::role::{Leading, Role};
use crate::runtime::{Instant, Rt};

/// What the proposer remembers between batches.
pub(super) struct State<I> {
    /// Callers that wait for a leader, oldest first.
    pub(super) waiting: VecDeque<Ask<I>>,
    /// A leadership of this node that Raft did not serve, and until when it is left alone: its end is seen late.
    pub(super) refused: Option<(LeadershipId, I)>,
    /// Where the batches under way went. Another way is taken only once they are back: what they bring back comes first.
    pub(super) target: Option<Target>,
    /// No forwarding before: the leader that is known was not there.
    pub(super) not_before: Option<I>,
    /// Calls back the batch that was forwarded, when it is dropped.
    pub(super) recall: Option<oneshot::Sender<()>>,
    pub(super) numbers: Numbers,
}

/// Where a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Here(LeadershipId),
    To(u64),
}

impl<I: Instant> State<I> {
    pub(super) const fn new(life: Life) -> Self {
        Self {
            waiting: VecDeque::new(),
            refused: None,
            target: None,
            not_before: None,
            recall: None,
            numbers: Numbers::new(life),
        }
    }

    /// When something is to be done although nothing happens.
    pub(super) fn wakes_at(&self) -> Option<I> {
        let overdue = self.waiting.iter().map(Ask::waits_until).min();
        let again = self.refused.map(|(_, until)| until);
        overdue.into_iter().chain(self.not_before).chain(again).min()
    }
}

impl<I> Route<I> {
    pub(super) const fn target(&self) -> Option<Target> {
        match self {
            Self::Here(leading) => Some(Target::Here(leading.id)),
            Self::To(leader) => Some(Target::To(*leader)),
            Self::Nowhere => None,
        }
    }
}

impl<R: Rt> Proposer<R> {
    /// To the current leadership of this node, unless it failed, or Raft has just refused it; else to the leader that is
    /// known. A batch that was forwarded to another leader is called back: its commands can be sent again, and their
    /// callers shall not wait for one that may be gone.
    pub(super) fn route(&mut self, state: &mut State<R::Instant>) -> Route<R::Instant> {
        let role = *self.role.borrow_and_update();
        if state.not_before.is_some_and(|at| R::now() >= at) {
            state.not_before = None;
        }
        if state.refused.is_some_and(|(_, until)| R::now() >= until) {
            state.refused = None;
        }
        if let Some(Target::To(asked)) = state.target
            && role.leader() != Some(asked)
        {
            state.recall = None;
        }
        match role {
            _ if self.node.failure().is_some() => Route::Nowhere,
            Role::Leading(leading) if is_refused(state, &leading) => Route::Nowhere,
            Role::Following { .. } if state.not_before.is_some() => Route::Nowhere,
            Role::Leading(leading) => Route::Here(leading),
            Role::Following { leader: Some(leader) } => Route::To(leader),
            Role::Following { leader: None } => Route::Nowhere,
        }
    }
}

fn is_refused<I>(state: &State<I>, leading: &Leading<I>) -> bool {
    state.refused.as_ref().is_some_and(|(id, _)| *id == leading.id)
}
