//! The way to the leader over the network between the nodes.

use std::time::Duration;

use bytes::Bytes;
use lease_core::machine::codec::EncodedCommand;

use super::wire::{Request, decode_barrier, decode_outcomes};
use super::{Answer, Barrier, Forward, Outcomes};
use crate::error::StoreError;
use crate::peers::{Kind, Lane, PeerError, PeerTransport};

/// How long a leader may take. Shorter than its callers wait here, so that they are told what is known.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_800);

/// Forwards over a transport.
#[derive(Debug, Clone)]
pub(crate) struct OverPeers<T> {
    peers: T,
}

impl<T: PeerTransport> OverPeers<T> {
    pub(crate) const fn new(peers: T) -> Self {
        Self { peers }
    }

    async fn call(&self, leader: u64, request: Request) -> Result<Bytes, StoreError> {
        let called = self.peers.call(
            leader,
            Lane::Request,
            Kind::Request,
            request.encode(),
            ANSWER_WITHIN,
        );
        called.await.map_err(|error| told(&error))
    }
}

impl<T: PeerTransport> Forward for OverPeers<T> {
    fn submit(&self, leader: u64, commands: Vec<EncodedCommand>) -> Answer<'_, Outcomes> {
        Box::pin(async move {
            let asked = commands.len();
            let answer = match self.call(leader, Request::Submit(commands)).await {
                Ok(answer) => answer,
                Err(error) => return std::iter::repeat_n(Err(error), asked).collect(),
            };
            decode_outcomes(answer, asked).unwrap_or_else(|error| {
                tracing::error!(leader, %error, "the leader's answer cannot be read");
                // They may have been applied.
                std::iter::repeat_n(Err(StoreError::Unknown), asked).collect()
            })
        })
    }

    fn barrier(&self, leader: u64) -> Answer<'_, Result<Barrier, StoreError>> {
        Box::pin(async move {
            let answer = self.call(leader, Request::Barrier).await?;
            decode_barrier(answer).unwrap_or_else(|error| {
                tracing::error!(leader, %error, "the leader's answer cannot be read");
                Err(StoreError::Unavailable { leader: None })
            })
        })
    }
}

fn told(error: &PeerError) -> StoreError {
    tracing::debug!(%error, "a request was not forwarded, or its answer did not come");
    if error.may_have_applied() {
        StoreError::Unknown
    } else {
        StoreError::Unavailable { leader: None }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::peers::{NotSent, Refusal};

    #[test]
    fn what_was_sent_and_not_answered_may_have_been_applied() {
        let within = Duration::from_secs(1);
        for sent in [
            PeerError::Broken { to: 2 },
            PeerError::NoAnswer { to: 2, within },
            PeerError::Refused {
                to: 2,
                refusal: Refusal::Stopped,
            },
        ] {
            assert!(matches!(told(&sent), StoreError::Unknown), "{sent}");
        }
        let never_sent = PeerError::NotSent {
            to: 2,
            reason: NotSent::NoCluster,
        };
        assert!(matches!(told(&never_sent), StoreError::Unavailable { .. }));
    }
}
