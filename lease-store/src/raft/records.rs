//! What is stored and sent, as mirror structs of our own, and their conversions from and to openraft's.
//!
//! Golden files in `tests/data/raft/` guard the bytes of each. Enums are only appended to, fields never moved: a
//! change of either needs a new format number in [`super::codec`].

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lease_core::Timestamp;
use openraft::EntryPayload;
use serde::{Deserialize, Serialize};

use super::codec::CodecError;
use super::types::{LeaderId, LogId, Member, Membership, Payload, Proposal, SnapshotMeta, StoredMembership};

/// The id of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogIdRecord {
    pub(super) term: u64,
    pub(super) node: u64,
    pub(super) index: u64,
}

/// What an entry carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PayloadRecord {
    Blank,
    Commands { at_ms: u64, body: Bytes },
    Membership(MembershipRecord),
}

/// Who is in the cluster: the voter sets (two during a change) and all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MembershipRecord {
    pub(super) voter_sets: Vec<BTreeSet<u64>>,
    pub(super) nodes: BTreeMap<u64, MemberRecord>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberRecord {
    pub(super) address: String,
}

/// The first record of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotRecord {
    /// The last entry that the state contains.
    pub(super) last: Option<LogIdRecord>,
    /// The entry that set the membership.
    pub(super) membership_at: Option<LogIdRecord>,
    pub(super) membership: MembershipRecord,
    /// The stamp of the last stamped entry that the state contains, in milliseconds of cluster time.
    pub(super) last_stamp_ms: Option<u64>,
}

impl From<&LogId> for LogIdRecord {
    fn from(id: &LogId) -> Self {
        Self {
            term: id.leader_id.term,
            node: id.leader_id.node_id,
            index: id.index,
        }
    }
}

impl From<LogIdRecord> for LogId {
    fn from(record: LogIdRecord) -> Self {
        Self {
            leader_id: LeaderId {
                term: record.term,
                node_id: record.node,
            },
            index: record.index,
        }
    }
}

impl From<&Payload> for PayloadRecord {
    fn from(payload: &Payload) -> Self {
        match payload {
            EntryPayload::Blank => Self::Blank,
            EntryPayload::Normal(proposal) => Self::Commands {
                at_ms: proposal.at.as_millis(),
                body: proposal.body.clone(),
            },
            EntryPayload::Membership(membership) => Self::Membership(membership.into()),
        }
    }
}

impl TryFrom<PayloadRecord> for Payload {
    type Error = CodecError;

    fn try_from(record: PayloadRecord) -> Result<Self, CodecError> {
        Ok(match record {
            PayloadRecord::Blank => Self::Blank,
            PayloadRecord::Commands { at_ms, body } => Self::Normal(Proposal {
                at: Timestamp::from_millis(at_ms),
                body,
            }),
            PayloadRecord::Membership(membership) => Self::Membership(membership.try_into()?),
        })
    }
}

impl From<&Membership> for MembershipRecord {
    fn from(membership: &Membership) -> Self {
        let nodes = membership.nodes().map(|(&id, member)| {
            let record = MemberRecord {
                address: member.address.clone(),
            };
            (id, record)
        });
        Self {
            voter_sets: membership.get_joint_config().clone(),
            nodes: nodes.collect(),
        }
    }
}

impl TryFrom<MembershipRecord> for Membership {
    type Error = CodecError;

    fn try_from(record: MembershipRecord) -> Result<Self, CodecError> {
        // No voter set at all is the membership of a node that has joined nothing yet: openraft's own default.
        if record.voter_sets.is_empty() && record.nodes.is_empty() {
            return Ok(Self::default());
        }
        let nodes: BTreeMap<u64, Member> = record
            .nodes
            .into_iter()
            .map(|(id, member)| {
                (
                    id,
                    Member {
                        address: member.address,
                    },
                )
            })
            .collect();
        Self::new(record.voter_sets, nodes).map_err(|error| CodecError::Malformed {
            reason: error.to_string(),
        })
    }
}

impl SnapshotRecord {
    pub(super) fn new(meta: &SnapshotMeta, last_stamp: Option<Timestamp>) -> Self {
        Self {
            last: meta.last_log_id.as_ref().map(Into::into),
            membership_at: meta.last_membership.log_id().as_ref().map(Into::into),
            membership: meta.last_membership.membership().into(),
            last_stamp_ms: last_stamp.map(Timestamp::as_millis),
        }
    }

    pub(super) fn meta(&self) -> Result<SnapshotMeta, CodecError> {
        let membership = self.membership.clone().try_into()?;
        Ok(SnapshotMeta {
            last_log_id: self.last.clone().map(Into::into),
            last_membership: StoredMembership::new(self.membership_at.clone().map(Into::into), membership),
        })
    }

    pub(super) fn last_stamp(&self) -> Option<Timestamp> {
        self.last_stamp_ms.map(Timestamp::from_millis)
    }
}
