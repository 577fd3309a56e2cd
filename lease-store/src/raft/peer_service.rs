//! Serves what the Raft of other nodes asks of this one.
//!
//! It decodes, asks Raft, and encodes the answer; snapshots go through [`super::peer_snapshots`]. What this leaves to
//! others: requests of the application and probes, which it refuses as unserved.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::applier::Applier;
use super::codec::CodecError;
use super::node::RaftNode;
use super::peer_rpc::{
    Nonsense, SnapshotAnswer, decode, decode_append, decode_transfer, decode_vote, encode,
    encode_append_answer, encode_transfer_answer, encode_vote_answer,
};
use super::peer_snapshots::PeerSnapshots;
use crate::peers::{Kind, PeerHandler, Refusal};
use crate::runtime::Rt;

/// The serving side of Raft's network. It may serve before Raft runs: then it says so. Clones share it.
pub struct RaftService<R: Rt, A: Applier> {
    served: Arc<OnceLock<Served<R, A>>>,
}

struct Served<R: Rt, A: Applier> {
    node: RaftNode<R, A>,
    snapshots: PeerSnapshots<R, A>,
}

impl<R: Rt, A: Applier> RaftService<R, A> {
    /// Serves nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            served: Arc::default(),
        }
    }

    /// Serves for `node` from now on. Only the first call counts.
    pub fn serve(&self, node: &RaftNode<R, A>) {
        self.served.get_or_init(|| Served {
            node: node.clone(),
            snapshots: PeerSnapshots::new(node),
        });
    }
}

impl<R: Rt, A: Applier> PeerHandler for RaftService<R, A> {
    async fn handle(&self, from: u64, kind: Kind, body: Bytes) -> Result<Bytes, Refusal> {
        let Some(Served { node, snapshots }) = self.served.get() else {
            return Err(Refusal::NotReady);
        };
        let raft = node.core();
        let sense = |error| nonsense(from, kind, &error);
        match kind {
            Kind::Append => {
                let request = decode_append::<R, A::Outcome>(from, body).map_err(sense)?;
                told(encode_append_answer, raft.append_entries(request).await)
            }
            Kind::Vote => {
                let request = decode_vote::<R, A::Outcome>(from, &body).map_err(sense)?;
                told(|answer| encode_vote_answer(&answer), raft.vote(request).await)
            }
            Kind::PreVote => {
                let request = decode_vote::<R, A::Outcome>(from, &body).map_err(sense)?;
                told(|answer| encode_vote_answer(&answer), raft.pre_vote(request).await)
            }
            Kind::TransferLeader => {
                let request = decode_transfer::<R, A::Outcome>(from, &body).map_err(sense)?;
                told(encode_transfer_answer, raft.handle_transfer_leader(request).await)
            }
            Kind::SnapshotBegin => {
                let begin = decode(&body).map_err(|error| sense(error.into()))?;
                sent(&snapshots.begin(from, begin).await?)
            }
            Kind::SnapshotChunk => {
                let chunk = decode(&body).map_err(|error| sense(error.into()))?;
                sent(&snapshots.chunk(from, chunk).await)
            }
            Kind::SnapshotEnd => {
                let end = decode(&body).map_err(|error| sense(error.into()))?;
                sent(&snapshots.end(from, end).await?)
            }
            Kind::Request | Kind::FormationProbe => Err(Refusal::Unserved),
        }
    }
}

/// Raft answers unless it has stopped.
fn told<V, E>(
    encoded: impl FnOnce(V) -> Result<Bytes, CodecError>,
    answer: Result<V, E>,
) -> Result<Bytes, Refusal> {
    let answer = answer.map_err(|_| Refusal::Stopped)?;
    encoded(answer).map_err(|error| unsendable(&error))
}

fn sent(answer: &SnapshotAnswer) -> Result<Bytes, Refusal> {
    encode(answer).map_err(|error| unsendable(&error))
}

fn unsendable(error: &CodecError) -> Refusal {
    tracing::error!(%error, "an answer to a peer cannot be encoded");
    Refusal::Other
}

pub(super) fn nonsense(from: u64, kind: Kind, error: &Nonsense) -> Refusal {
    tracing::warn!(peer = from, ?kind, %error, "a peer sent what makes no sense");
    Refusal::Malformed
}

impl<R: Rt, A: Applier> Default for RaftService<R, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Rt, A: Applier> Clone for RaftService<R, A> {
    fn clone(&self) -> Self {
        let served = Arc::clone(&self.served);
        Self { served }
    }
}

impl<R: Rt, A: Applier> std::fmt::Debug for RaftService<R, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RaftService").finish_non_exhaustive()
    }
}
