//! The types that Raft works with here: what is proposed, who is a member, which leadership it was.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use lease_core::Timestamp;
use openraft::impls::{BoxedErrorSource, InlineBatch, leader_id_adv};
use openraft::raft::responder::Responder;
use openraft::{EntryPayload, OptionalSend, RaftTypeConfig};
use tokio::sync::oneshot;

use crate::runtime::Rt;

/// One proposal: a stamp and the encoded commands of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The point in cluster time at which the commands happen.
    pub at: Timestamp,
    /// The encoded commands; the applier alone reads them.
    pub body: Bytes,
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.body.len(), self.at)
    }
}

/// One leadership of one node. Two leaderships of one term are legal and differ in the node, so neither number names
/// one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeadershipId {
    /// The term.
    pub term: u64,
    /// The node that leads, or led.
    pub node: u64,
}

impl fmt::Display for LeadershipId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {} of node {}", self.term, self.node)
    }
}

/// What the cluster knows of a member beside its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Where its peers reach it; empty for a node that has none.
    pub address: String,
}

pub(super) type LeaderId = leader_id_adv::LeaderId<u64, u64>;
pub(super) type Vote = openraft::Vote<LeaderId>;
pub(super) type LogId = openraft::LogId<LeaderId>;
pub(super) type Payload = EntryPayload<Proposal, u64, Member>;
pub(super) type Entry = openraft::Entry<LeaderId, Payload>;
pub(super) type Membership = openraft::Membership<u64, Member>;
pub(super) type StoredMembership = openraft::StoredMembership<LeaderId, u64, Member>;
pub(super) type SnapshotMeta = openraft::SnapshotMeta<LeaderId, u64, Member>;

/// Bytes that an entry takes beside its body, about.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// Bytes that an entry with this payload takes in the log and in memory, about.
pub(super) fn size_of_payload(payload: &Payload) -> usize {
    let body = match payload {
        Payload::Normal(proposal) => proposal.body.len(),
        Payload::Blank | Payload::Membership(_) => 0,
    };
    body.saturating_add(ENTRY_OVERHEAD_BYTES)
}

/// The index that follows an entry; 0 before the first.
pub(super) fn next_index(id: Option<&LogId>) -> u64 {
    id.map_or(0, |id| id.index.saturating_add(1))
}

impl From<LeaderId> for LeadershipId {
    fn from(id: LeaderId) -> Self {
        Self {
            term: id.term,
            node: id.node_id,
        }
    }
}

impl From<LeadershipId> for LeaderId {
    fn from(id: LeadershipId) -> Self {
        Self {
            term: id.term,
            node_id: id.node,
        }
    }
}

/// The answer to one entry: `None` for entries of Raft's own, which carry no commands.
pub(super) type Answer<O> = Option<O>;

/// The type configuration, over the runtime and over what the machine answers.
pub struct Types<R, O>(PhantomData<fn() -> (R, O)>);

impl<R: Rt, O: Send + Sync + 'static> RaftTypeConfig for Types<R, O> {
    type D = Proposal;
    type R = Answer<O>;
    type NodeId = u64;
    type Node = Member;
    type Term = u64;
    type LeaderId = LeaderId;
    type Vote = Vote;
    type Payload = Payload;
    type Entry = Entry;
    type AsyncRuntime = R;
    type Responder<T>
        = Reply<T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = BoxedErrorSource;
}

/// Hands the answer to one proposal straight to its proposer, from the apply path.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<T>);

impl<T> Reply<T> {
    pub(super) fn channel() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }
}

impl<R: Rt, O: Send + Sync + 'static, T: Send + 'static> Responder<Types<R, O>, T> for Reply<T> {
    fn on_complete(self, result: T) {
        // A proposer that is gone needs no answer.
        let _ = self.0.send(result);
    }
}

// Written out by hand: the derives would ask the same of R and O.
impl<R, O> Types<R, O> {
    const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R, O> fmt::Debug for Types<R, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Types")
    }
}

impl<R, O> Default for Types<R, O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, O> Clone for Types<R, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, O> Copy for Types<R, O> {}

impl<R, O> PartialEq for Types<R, O> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl<R, O> Eq for Types<R, O> {}

impl<R, O> PartialOrd for Types<R, O> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R, O> Ord for Types<R, O> {
    fn cmp(&self, _other: &Self) -> Ordering {
        Ordering::Equal
    }
}
