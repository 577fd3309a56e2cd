//! Everything that other nodes ask of this one, by kind.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::formation::{OwnStanding, Stage};
use crate::forward::RequestHandler;
use crate::peers::{Kind, PeerHandler, Refusal};
use crate::raft::data_dir::DataDir;
use crate::raft::peer_service::RaftService;
use crate::replica::LeaseApplier;
use crate::runtime::Rt;

/// Serves probes from the start, and the rest once the node is in its cluster.
#[derive(Debug)]
pub(super) struct NodeHandler<R: Rt> {
    standing: OwnStanding,
    data_dir: DataDir,
    raft: RaftService<R, LeaseApplier>,
    requests: OnceLock<RequestHandler<R>>,
}

impl<R: Rt> NodeHandler<R> {
    pub(super) fn new(standing: OwnStanding, data_dir: DataDir) -> Self {
        Self {
            standing,
            data_dir,
            raft: RaftService::new(),
            requests: OnceLock::new(),
        }
    }

    pub(super) const fn raft(&self) -> &RaftService<R, LeaseApplier> {
        &self.raft
    }

    /// Serves forwarded requests from now on. Only the first call counts.
    pub(super) fn serve_requests(&self, requests: RequestHandler<R>) {
        self.requests.get_or_init(|| requests);
    }

    /// What this node says of itself. Its first vote makes it a member.
    fn probe(&self) -> Bytes {
        if self.data_dir.is_member() {
            let cluster = self.standing.get().stage.cluster();
            self.standing.advance(Stage::Member { cluster });
        }
        self.standing.answer()
    }
}

impl<R: Rt> PeerHandler for NodeHandler<R> {
    async fn handle(&self, from: u64, kind: Kind, body: Bytes) -> Result<Bytes, Refusal> {
        match kind {
            Kind::FormationProbe => Ok(self.probe()),
            Kind::Request => match self.requests.get() {
                Some(requests) => requests.handle(body).await.ok_or(Refusal::Malformed),
                None => Err(Refusal::NotReady),
            },
            Kind::Append
            | Kind::Vote
            | Kind::PreVote
            | Kind::TransferLeader
            | Kind::SnapshotBegin
            | Kind::SnapshotChunk
            | Kind::SnapshotEnd => self.raft.handle(from, kind, body).await,
        }
    }
}
