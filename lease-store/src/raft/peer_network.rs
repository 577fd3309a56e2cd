//! Raft's way to the other nodes, over any transport.
//!
//! What it leaves to others: connections and their deadlines ([`crate::peers`]), and the serving side
//! ([`super::peer_service`]).

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RPCTypes, RaftNetworkFactory, RaftNetworkV2, Snapshot};
use openraft_rt::Select2;

use super::codec::CodecError;
use super::peer_rpc::{
    SnapshotAnswer, SnapshotBegin, SnapshotChunk, SnapshotEnd, decode, decode_append_answer,
    decode_transfer_answer, decode_vote_answer, encode, encode_append, encode_transfer, encode_vote,
};
use super::records::SnapshotRecord;
use super::snapshot::{SnapshotData, SnapshotError};
use super::types::{LeaderId, Member, Types, Vote};
use crate::peers::{Kind, Lane, NotSent, PeerError, PeerTransport};
use crate::runtime::Rt;

/// How long entries may take to arrive and be written there. openraft hands out the time of a heartbeat, which a
/// follower with a slow disk would miss, and be sent all again. The connection is given up after as long a silence.
const APPEND_WITHIN: Duration = Duration::from_millis(500);
/// What long entries, and the installation of a snapshot, may take beside that: bytes in a second, at the least.
const BYTES_PER_SECOND_MIN: u64 = 8 * 1_024 * 1_024;
/// Bytes of one piece of a snapshot: some milliseconds of a network's time, so that nothing else waits for long.
const CHUNK_BYTES: usize = 256 * 1_024;
/// How long one piece may take.
const CHUNK_WITHIN: Duration = Duration::from_secs(5);
/// Pauses after a peer was out of reach, in milliseconds; the last one repeats. Below an election timeout, so that a
/// peer that is back is not kept waiting until it stands for election.
const PAUSES_MS: [u64; 4] = [50, 100, 200, 400];

/// Makes clients that reach their nodes over `T`.
#[derive(Debug, Clone)]
pub(super) struct PeerNetwork<T> {
    node: u64,
    transport: T,
}

impl<T> PeerNetwork<T> {
    pub(super) const fn new(node: u64, transport: T) -> Self {
        Self { node, transport }
    }
}

/// A way to one node.
pub(super) struct PeerClient<R, O, T> {
    node: u64,
    target: u64,
    lane: Lane,
    transport: T,
    types: PhantomData<Types<R, O>>,
}

impl<T: PeerTransport> PeerNetwork<T> {
    fn client<R, O>(&self, target: u64, member: &Member, lane: Lane) -> PeerClient<R, O, T> {
        self.transport.introduce(target, &member.address);
        PeerClient {
            node: self.node,
            target,
            lane,
            transport: self.transport.clone(),
            types: PhantomData,
        }
    }
}

impl<R: Rt, O: Send + Sync + 'static, T: PeerTransport> RaftNetworkFactory<Types<R, O>> for PeerNetwork<T> {
    type Network = PeerClient<R, O, T>;

    async fn new_client(&mut self, target: u64, member: &Member) -> PeerClient<R, O, T> {
        self.client(target, member, Lane::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, member: &Member) -> PeerClient<R, O, T> {
        self.client(target, member, Lane::Heartbeat)
    }

    async fn new_snapshot_client(&mut self, target: u64, member: &Member) -> PeerClient<R, O, T> {
        self.client(target, member, Lane::Snapshot)
    }
}

impl<R: Rt, O: Send + Sync + 'static, T: PeerTransport> PeerClient<R, O, T> {
    async fn call(
        &self,
        (lane, kind): (Lane, Kind),
        action: RPCTypes,
        body: Result<Bytes, CodecError>,
        within: Duration,
    ) -> Result<Bytes, RPCError<Types<R, O>>> {
        let body = body.map_err(|error| unreachable(&error))?;
        let answer = self.transport.call(self.target, lane, kind, body, within).await;
        answer.map_err(|error| self.error(&error, action, within))
    }

    /// Raft pauses after `Unreachable` and tries again at once after the others: so those are for what may well
    /// succeed then.
    fn error(&self, error: &PeerError, action: RPCTypes, timeout: Duration) -> RPCError<Types<R, O>> {
        match error {
            PeerError::NoAnswer { .. }
            | PeerError::NotSent {
                reason: NotSent::NoTime,
                ..
            } => RPCError::Timeout(Timeout {
                action,
                id: self.node,
                target: self.target,
                timeout,
            }),
            PeerError::Broken { .. } => RPCError::Network(NetworkError::from_string(error)),
            PeerError::NotSent { .. } | PeerError::Refused { .. } => unreachable(error),
        }
    }

    async fn send_snapshot(
        &self,
        vote: &Vote,
        snapshot: Snapshot<LeaderId, u64, Member, SnapshotData>,
    ) -> Result<Vote, StreamingError<Types<R, O>>> {
        let Snapshot { meta, snapshot } = snapshot;
        let opened = R::run_blocking(move || snapshot.outgoing()).await;
        let mut outgoing = read(opened)?;
        let begin = SnapshotBegin {
            session: R::random_u64(),
            vote: vote.into(),
            covers: SnapshotRecord::new(&meta, None),
            bytes: outgoing.bytes(),
        };
        let session = begin.session;
        if let Some(over) = self
            .offer(Kind::SnapshotBegin, encode(&begin), CHUNK_WITHIN)
            .await?
        {
            return Ok(over);
        }
        let mut sum = crc32fast::Hasher::new();
        let mut offset = 0_u64;
        loop {
            let reading = R::run_blocking(move || {
                let piece = outgoing.next(CHUNK_BYTES);
                piece.map(|piece| (outgoing, piece))
            });
            let (back, bytes) = read(reading.await)?;
            outgoing = back;
            if bytes.is_empty() {
                break;
            }
            sum.update(&bytes);
            let length = bytes.len() as u64;
            let chunk = encode(&SnapshotChunk {
                session,
                offset,
                bytes,
            });
            if let Some(over) = self.offer(Kind::SnapshotChunk, chunk, CHUNK_WITHIN).await? {
                return Ok(over);
            }
            offset = offset.saturating_add(length);
        }
        let end = encode(&SnapshotEnd {
            session,
            checksum: sum.finalize(),
        });
        // It is decoded and installed there before the answer. One that gets lost must not keep the peer behind for as
        // long as Raft would wait.
        let within = CHUNK_WITHIN + time_for(offset);
        match self.offer(Kind::SnapshotEnd, end, within).await? {
            Some(over) => Ok(over),
            None => Err(unreachable(&"the peer does not say whether the snapshot is installed").into()),
        }
    }

    /// One step of sending a snapshot; a vote if the sending is over.
    async fn offer(
        &self,
        kind: Kind,
        body: Result<Bytes, CodecError>,
        within: Duration,
    ) -> Result<Option<Vote>, StreamingError<Types<R, O>>> {
        let action = RPCTypes::InstallSnapshot;
        let answer = self.call((Lane::Snapshot, kind), action, body, within).await?;
        match decode(&answer).map_err(|error| unreachable(&error))? {
            SnapshotAnswer::GoOn => Ok(None),
            SnapshotAnswer::Over { vote } => Ok(Some(vote.into())),
            SnapshotAnswer::Failed { reason } => {
                tracing::error!(peer = self.target, reason, "the peer cannot take over a snapshot");
                Err(unreachable(&reason).into())
            }
        }
    }
}

impl<R: Rt, O: Send + Sync + 'static, T: PeerTransport> RaftNetworkV2<Types<R, O>> for PeerClient<R, O, T> {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types<R, O>>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        let (body, count) = encode_append(&request).map_err(|error| unreachable(&error))?;
        let within = if self.lane == Lane::Heartbeat {
            option.soft_ttl()
        } else {
            append_within(body.len()).max(option.soft_ttl())
        };
        let path = (self.lane, Kind::Append);
        let answer = self.call(path, RPCTypes::AppendEntries, Ok(body), within).await?;
        let answer = decode_append_answer(&answer).map_err(|error| unreachable(&error))?;
        let sent = request.entries.get(..count).and_then(<[_]>::last);
        Ok(match (answer, sent) {
            // The rest follows in the next call.
            (AppendEntriesResponse::Success, Some(last)) if count < request.entries.len() => {
                AppendEntriesResponse::PartialSuccess(Some(last.log_id))
            }
            (answer, _) => answer,
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types<R, O>>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        let (path, body) = ((Lane::Heartbeat, Kind::Vote), encode_vote(&request));
        let answer = self.call(path, RPCTypes::Vote, body, option.soft_ttl()).await?;
        decode_vote_answer(&answer).map_err(|error| unreachable(&error))
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types<R, O>>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        let (path, body) = ((Lane::Heartbeat, Kind::PreVote), encode_vote(&request));
        let answer = self.call(path, RPCTypes::Vote, body, option.soft_ttl()).await?;
        decode_vote_answer(&answer).map_err(|error| unreachable(&error))
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<LeaderId, u64, Member, SnapshotData>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types<R, O>>, StreamingError<Types<R, O>>> {
        let cancel = pin!(cancel);
        let sending = pin!(self.send_snapshot(&vote, snapshot));
        match R::select2(cancel, sending).await {
            Select2::First(closed) => Err(StreamingError::Closed(closed)),
            Select2::Second(sent) => sent.map(SnapshotResponse::new),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types<R, O>>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types<R, O>>, RPCError<Types<R, O>>> {
        let (path, body) = ((Lane::Heartbeat, Kind::TransferLeader), encode_transfer(&request));
        let answer = self
            .call(path, RPCTypes::TransferLeader, body, option.soft_ttl())
            .await?;
        decode_transfer_answer(&answer).map_err(|error| unreachable(&error))
    }

    fn backoff(&self) -> Option<Backoff> {
        let last = PAUSES_MS.last().copied();
        let pauses = PAUSES_MS
            .into_iter()
            .chain(std::iter::repeat_with(move || last.unwrap_or(1)));
        Some(Backoff::new(pauses.map(Duration::from_millis)))
    }
}

fn append_within(bytes: usize) -> Duration {
    APPEND_WITHIN + time_for(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// What so many bytes may take, to be sent or to be installed.
const fn time_for(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1_000) / BYTES_PER_SECOND_MIN)
}

fn unreachable<C: openraft::RaftTypeConfig>(error: &impl ToString) -> RPCError<C> {
    RPCError::Unreachable(Unreachable::from_string(error.to_string()))
}

/// What a read off the runtime brought. A file that cannot be read was most likely superseded and cleared: the newer one
/// is sent then. If it is the disk, the others still have theirs.
fn read<C: openraft::RaftTypeConfig, V>(
    done: io::Result<Result<V, SnapshotError>>,
) -> Result<V, StreamingError<C>> {
    let failed = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a snapshot cannot be read to be sent"
            );
            error.to_string()
        }
        Err(error) => error.to_string(),
    };
    Err(StreamingError::Network(NetworkError::from_string(failed)))
}
