//! What Raft's nodes say to each other, as mirror structs of our own, and their conversions from and to openraft's.
//!
//! Golden files in `tests/data/raft/` guard the bytes of each. Enums are only appended to, fields never moved: a
//! change of either needs a new version in the handshake of peers.
//!
//! Whatever a peer sends is checked here as far as openraft takes it for granted: a vote that is the sender's own, and
//! entries that follow each other.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderError, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use serde::{Deserialize, Serialize};

use super::codec::{self, CodecError, RECORD_BYTES_MAX};
use super::records::{LogIdRecord, PayloadRecord, SnapshotRecord};
use super::types::{Entry, LeaderId, LogId, Types, Vote, next_index};
use crate::runtime::Rt;

/// Bytes of anything but entries and pieces of a snapshot at the most. A membership fits.
const SMALL_BYTES_MAX: usize = 1_024 * 1_024;
/// Entries of one call at the most.
const ENTRIES_MAX: usize = 4_096;
/// Bytes of the entries of one call, unless the first alone is longer.
const ENTRIES_BYTES_TARGET: usize = 8 * 1_024 * 1_024;

/// A vote, given or asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VoteRecord {
    term: u64,
    node: u64,
    committed: bool,
}

/// What comes before the entries of an AppendEntries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AppendRecord {
    vote: VoteRecord,
    previous: Option<LogIdRecord>,
    leader_commit: Option<LogIdRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EntryRecord {
    id: LogIdRecord,
    payload: PayloadRecord,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum AppendAnswer {
    Success,
    Conflict,
    HigherVote(VoteRecord),
    PartialSuccess(Option<LogIdRecord>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct VoteAsk {
    vote: VoteRecord,
    last: Option<LogIdRecord>,
    leadership_transfer: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct VoteAnswer {
    vote: VoteRecord,
    granted: bool,
    last: Option<LogIdRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TransferAsk {
    from_leader: VoteRecord,
    to: u64,
    last: Option<LogIdRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum TransferAnswer {
    Accepted,
    VoteChanged {
        expected: VoteRecord,
        actual: VoteRecord,
    },
    LogNotFlushed {
        expected: Option<LogIdRecord>,
        actual: Option<LogIdRecord>,
    },
}

/// Announces a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotBegin {
    /// Tells this sending from others of the same sender.
    pub(super) session: u64,
    pub(super) vote: VoteRecord,
    /// What it covers; without its stamp, which is in the snapshot itself.
    pub(super) covers: SnapshotRecord,
    pub(super) bytes: u64,
}

/// A piece of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotChunk {
    pub(super) session: u64,
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
}

/// All pieces were sent: install it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotEnd {
    pub(super) session: u64,
    /// Of all pieces together.
    pub(super) checksum: u32,
}

/// The answer to each of the three.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SnapshotAnswer {
    /// Send on.
    GoOn,
    /// It is installed, or not wanted from a leader that is over: the vote tells.
    Over { vote: VoteRecord },
    /// It cannot be taken over.
    Failed { reason: String },
}

/// What a peer sent makes no sense.
#[derive(Debug, thiserror::Error)]
pub(super) enum Nonsense {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("the message is cut off")]
    CutOff,
    #[error("more than {ENTRIES_MAX} entries")]
    ManyEntries,
    #[error("its entries do not follow each other")]
    Gap,
    #[error("the vote is not the sender's")]
    Vote,
}

type Append<R, O> = AppendEntriesRequest<Types<R, O>>;

/// The bytes of as many of the entries as fit one call, and how many those are.
pub(super) fn encode_append<R: Rt, O: Send + Sync + 'static>(
    request: &Append<R, O>,
) -> Result<(Bytes, usize), CodecError> {
    let head = AppendRecord {
        vote: (&request.vote).into(),
        previous: request.prev_log_id.as_ref().map(Into::into),
        leader_commit: request.leader_commit.as_ref().map(Into::into),
    };
    let mut out = BytesMut::new();
    put(&mut out, &codec::encode(&head)?);
    let mut count = 0_usize;
    for entry in request.entries.iter().take(ENTRIES_MAX) {
        let record = codec::encode(&EntryRecord {
            id: (&entry.log_id).into(),
            payload: (&entry.payload).into(),
        })?;
        if count > 0 && out.len().saturating_add(record.len()) > ENTRIES_BYTES_TARGET {
            break;
        }
        put(&mut out, &record);
        count = count.saturating_add(1);
    }
    Ok((out.freeze(), count))
}

pub(super) fn decode_append<R: Rt, O: Send + Sync + 'static>(
    from: u64,
    mut bytes: Bytes,
) -> Result<Append<R, O>, Nonsense> {
    let head: AppendRecord = codec::decode(&take(&mut bytes)?, SMALL_BYTES_MAX)?;
    let previous: Option<LogId> = head.previous.map(Into::into);
    let mut index = next_index(previous.as_ref());
    let mut entries = Vec::new();
    while bytes.has_remaining() {
        if entries.len() >= ENTRIES_MAX {
            return Err(Nonsense::ManyEntries);
        }
        let record: EntryRecord = codec::decode(&take(&mut bytes)?, RECORD_BYTES_MAX)?;
        let log_id: LogId = record.id.into();
        if log_id.index != index {
            return Err(Nonsense::Gap);
        }
        index = index.saturating_add(1);
        entries.push(Entry {
            log_id,
            payload: record.payload.try_into()?,
        });
    }
    Ok(AppendEntriesRequest {
        vote: head.vote.of_leader(from)?,
        prev_log_id: previous,
        entries,
        leader_commit: head.leader_commit.map(Into::into),
    })
}

pub(super) fn encode_append_answer<R: Rt, O: Send + Sync + 'static>(
    answer: AppendEntriesResponse<Types<R, O>>,
) -> Result<Bytes, CodecError> {
    encode(&match answer {
        AppendEntriesResponse::Success => AppendAnswer::Success,
        AppendEntriesResponse::PartialSuccess(last) => {
            AppendAnswer::PartialSuccess(last.as_ref().map(Into::into))
        }
        AppendEntriesResponse::Conflict => AppendAnswer::Conflict,
        AppendEntriesResponse::HigherVote(vote) => AppendAnswer::HigherVote((&vote).into()),
    })
}

pub(super) fn decode_append_answer<R: Rt, O: Send + Sync + 'static>(
    bytes: &[u8],
) -> Result<AppendEntriesResponse<Types<R, O>>, CodecError> {
    Ok(match decode(bytes)? {
        AppendAnswer::Success => AppendEntriesResponse::Success,
        AppendAnswer::PartialSuccess(last) => AppendEntriesResponse::PartialSuccess(last.map(Into::into)),
        AppendAnswer::Conflict => AppendEntriesResponse::Conflict,
        AppendAnswer::HigherVote(vote) => AppendEntriesResponse::HigherVote(vote.into()),
    })
}

pub(super) fn encode_vote<R: Rt, O: Send + Sync + 'static>(
    request: &VoteRequest<Types<R, O>>,
) -> Result<Bytes, CodecError> {
    encode(&VoteAsk {
        vote: (&request.vote).into(),
        last: request.last_log_id.as_ref().map(Into::into),
        leadership_transfer: request.leadership_transfer,
    })
}

pub(super) fn decode_vote<R: Rt, O: Send + Sync + 'static>(
    from: u64,
    bytes: &[u8],
) -> Result<VoteRequest<Types<R, O>>, Nonsense> {
    let ask: VoteAsk = decode(bytes)?;
    let mut request = VoteRequest::new(ask.vote.of_candidate(from)?, ask.last.map(Into::into));
    request.leadership_transfer = ask.leadership_transfer;
    Ok(request)
}

pub(super) fn encode_vote_answer<R: Rt, O: Send + Sync + 'static>(
    answer: &VoteResponse<Types<R, O>>,
) -> Result<Bytes, CodecError> {
    encode(&VoteAnswer {
        vote: (&answer.vote).into(),
        granted: answer.vote_granted,
        last: answer.last_log_id.as_ref().map(Into::into),
    })
}

pub(super) fn decode_vote_answer<R: Rt, O: Send + Sync + 'static>(
    bytes: &[u8],
) -> Result<VoteResponse<Types<R, O>>, CodecError> {
    let answer: VoteAnswer = decode(bytes)?;
    let vote: Vote = answer.vote.into();
    Ok(VoteResponse::new(
        vote,
        answer.last.map(Into::into),
        answer.granted,
    ))
}

pub(super) fn encode_transfer<R: Rt, O: Send + Sync + 'static>(
    request: &TransferLeaderRequest<Types<R, O>>,
) -> Result<Bytes, CodecError> {
    encode(&TransferAsk {
        from_leader: request.from_leader().into(),
        to: *request.to_node_id(),
        last: request.last_log_id().map(Into::into),
    })
}

pub(super) fn decode_transfer<R: Rt, O: Send + Sync + 'static>(
    from: u64,
    bytes: &[u8],
) -> Result<TransferLeaderRequest<Types<R, O>>, Nonsense> {
    let ask: TransferAsk = decode(bytes)?;
    let leader = ask.from_leader.of_leader(from)?;
    Ok(TransferLeaderRequest::new(
        leader,
        ask.to,
        ask.last.map(Into::into),
    ))
}

pub(super) fn encode_transfer_answer<R: Rt, O: Send + Sync + 'static>(
    answer: TransferLeaderResponse<Types<R, O>>,
) -> Result<Bytes, CodecError> {
    encode(&match answer {
        Ok(()) => TransferAnswer::Accepted,
        Err(TransferLeaderError::VoteChanged { expected, actual }) => TransferAnswer::VoteChanged {
            expected: (&expected).into(),
            actual: (&actual).into(),
        },
        Err(TransferLeaderError::LogNotFlushed { expected, actual }) => TransferAnswer::LogNotFlushed {
            expected: expected.as_ref().map(Into::into),
            actual: actual.as_ref().map(Into::into),
        },
    })
}

pub(super) fn decode_transfer_answer<R: Rt, O: Send + Sync + 'static>(
    bytes: &[u8],
) -> Result<TransferLeaderResponse<Types<R, O>>, CodecError> {
    Ok(match decode(bytes)? {
        TransferAnswer::Accepted => Ok(()),
        TransferAnswer::VoteChanged { expected, actual } => Err(TransferLeaderError::VoteChanged {
            expected: expected.into(),
            actual: actual.into(),
        }),
        TransferAnswer::LogNotFlushed { expected, actual } => Err(TransferLeaderError::LogNotFlushed {
            expected: expected.map(Into::into),
            actual: actual.map(Into::into),
        }),
    })
}

/// The bytes of any other message.
pub(super) fn encode<T: Serialize>(message: &T) -> Result<Bytes, CodecError> {
    codec::encode(message).map(Bytes::from)
}

/// Any other message, a piece of a snapshot the longest.
pub(super) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    codec::decode(bytes, SMALL_BYTES_MAX)
}

impl VoteRecord {
    /// The vote of a leader, which `from` is.
    pub(super) fn of_leader(&self, from: u64) -> Result<Vote, Nonsense> {
        if self.node == from && self.committed {
            Ok(self.into())
        } else {
            Err(Nonsense::Vote)
        }
    }

    fn of_candidate(&self, from: u64) -> Result<Vote, Nonsense> {
        if self.node == from && !self.committed {
            Ok(self.into())
        } else {
            Err(Nonsense::Vote)
        }
    }
}

impl From<&Vote> for VoteRecord {
    fn from(vote: &Vote) -> Self {
        Self {
            term: vote.leader_id.term,
            node: vote.leader_id.node_id,
            committed: vote.committed,
        }
    }
}

impl From<&VoteRecord> for Vote {
    fn from(record: &VoteRecord) -> Self {
        Self {
            leader_id: LeaderId {
                term: record.term,
                node_id: record.node,
            },
            committed: record.committed,
        }
    }
}

impl From<VoteRecord> for Vote {
    fn from(record: VoteRecord) -> Self {
        (&record).into()
    }
}

fn put(out: &mut BytesMut, record: &[u8]) {
    // A record is far below 4 GiB.
    out.put_u32_le(u32::try_from(record.len()).unwrap_or(u32::MAX));
    out.put_slice(record);
}

fn take(bytes: &mut Bytes) -> Result<Bytes, Nonsense> {
    let length = bytes.try_get_u32_le().map_err(|_| Nonsense::CutOff)? as usize;
    if length > bytes.len() {
        return Err(Nonsense::CutOff);
    }
    Ok(bytes.split_to(length))
}
