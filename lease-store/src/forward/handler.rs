//! The leader's side of forwarded requests.

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::watch;

use super::wire::{Request, encode_barrier, encode_outcomes};
use super::{Barrier, Outcomes};
use crate::error::StoreError;
use crate::proposer::ProposerHandle;
use crate::replica::Node;
use crate::role::Role;
use crate::runtime::Rt;

/// Serves what other nodes forward.
#[derive(Debug)]
pub(crate) struct RequestHandler<R: Rt> {
    node: Node<R>,
    role: watch::Receiver<Role<R::Instant>>,
    proposer: ProposerHandle<R::Instant>,
}

impl<R: Rt> RequestHandler<R> {
    pub(crate) const fn new(
        node: Node<R>,
        role: watch::Receiver<Role<R::Instant>>,
        proposer: ProposerHandle<R::Instant>,
    ) -> Self {
        Self { node, role, proposer }
    }

    /// The answer to one request; `None` if it is none that this build knows.
    pub(crate) async fn handle(&self, request: Bytes) -> Option<Bytes> {
        match Request::decode(request) {
            Ok(Request::Submit(commands)) => {
                let proposals = commands
                    .into_iter()
                    .map(|command| self.proposer.propose_for_peer::<R>(command));
                let outcomes: Outcomes = join_all(proposals).await;
                Some(encode_outcomes(&outcomes))
            }
            Ok(Request::Barrier) => Some(encode_barrier(&self.barrier().await)),
            Err(error) => {
                tracing::warn!(%error, "a peer sent what is no request");
                None
            }
        }
    }

    async fn barrier(&self) -> Result<Barrier, StoreError> {
        let proven = self.node.read_barrier().await;
        let role = *self.role.borrow();
        match (proven, role.leading()) {
            (Ok(index), Some(leading)) => Ok(Barrier {
                index,
                time: leading.time(R::now()),
            }),
            _ => Err(StoreError::Unavailable {
                leader: role.leader(),
            }),
        }
    }
}
