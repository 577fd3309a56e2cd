//! A proposal on its way to its outcome.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use openraft::errors::ClientWriteError;
use openraft::raft::ClientWriteResult;
use tokio::sync::oneshot;

use super::super::error::{Loss, ProposeError, Refusal};
use super::super::types::Types;
use crate::runtime::Rt;

/// A proposal on its way. Dropping it gives up the answer, not the proposal.
pub struct Pending<R: Rt, O: Send + Sync + 'static> {
    pub(super) answer: oneshot::Receiver<ClientWriteResult<Types<R, O>>>,
}

/// Where an entry stands, and what applying it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied<O> {
    /// The index of the entry.
    pub index: u64,
    /// What the machine answered.
    pub outcome: O,
}

impl<R: Rt, O: Send + Sync + 'static> Future for Pending<R, O> {
    type Output = Result<Applied<O>, ProposeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unknown = |reason| Err(ProposeError::Unknown { reason });
        Poll::Ready(match ready!(Pin::new(&mut self.answer).poll(cx)) {
            Ok(Ok(written)) => match written.data {
                Some(outcome) => Ok(Applied {
                    index: written.log_id.index,
                    outcome,
                }),
                // Only entries of Raft's own have none.
                None => unknown(Loss::Stopped),
            },
            Ok(Err(ClientWriteError::ForwardToLeader(forward))) => Err(ProposeError::NotApplied {
                reason: Refusal::LeadershipOver {
                    leader: forward.leader_id,
                },
            }),
            Ok(Err(ClientWriteError::LogEntryDiscarded(forward))) => unknown(Loss::LeaderChanged {
                leader: forward.leader_id,
            }),
            // Neither is an answer to a proposal of commands; to know nothing is always true.
            Ok(Err(ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)))
            | Err(_) => unknown(Loss::Stopped),
        })
    }
}

impl<R: Rt, O: Send + Sync + 'static> std::fmt::Debug for Pending<R, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}
