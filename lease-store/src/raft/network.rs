//! The network of a node that has no peers.
//!
//! A single voter never calls anybody; if its membership names others all the same, they are out of reach.

use std::future::Future;
use std::marker::PhantomData;

use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RaftNetworkFactory, RaftNetworkV2, Snapshot};

use super::snapshot::SnapshotData;
use super::types::{LeaderId, Member, Types, Vote};
use crate::runtime::Rt;

/// Makes clients that reach nobody.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NoPeers;

/// A client for a node that cannot be reached.
pub(super) struct OutOfReach<R, O> {
    target: u64,
    types: PhantomData<Types<R, O>>,
}

impl<R: Rt, O: Send + Sync + 'static> OutOfReach<R, O> {
    fn error(&self) -> Unreachable<Types<R, O>> {
        Unreachable::from_string(format!("node {}: this node has no peers", self.target))
    }
}

impl<R: Rt, O: Send + Sync + 'static> RaftNetworkFactory<Types<R, O>> for NoPeers {
    type Network = OutOfReach<R, O>;

    async fn new_client(&mut self, target: u64, _member: &Member) -> OutOfReach<R, O> {
        let types = PhantomData;
        OutOfReach { target, types }
    }
}

impl<R: Rt, O: Send + Sync + 'static> RaftNetworkV2<Types<R, O>> for OutOfReach<R, O> {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<Types<R, O>>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        Err(self.error().into())
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<Types<R, O>>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        Err(self.error().into())
    }

    /// openraft's own default grants every pre-vote.
    async fn pre_vote(
        &mut self,
        _request: VoteRequest<Types<R, O>>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        Err(self.error().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote,
        _snapshot: Snapshot<LeaderId, u64, Member, SnapshotData>,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types<R, O>>, StreamingError<Types<R, O>>> {
        Err(self.error().into())
    }
}
