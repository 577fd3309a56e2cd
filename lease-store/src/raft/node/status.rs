//! Where a node stands, in plain numbers.

use openraft::RaftMetrics;

use super::super::types::{LogId, Types};
use crate::runtime::Rt;

/// Where a node stands; each number as of about now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// This node.
    pub node: u64,
    /// The term it knows.
    pub term: u64,
    /// The node that leads, if this one knows.
    pub leader: Option<u64>,
    /// The last entry in its log.
    pub last_index: Option<u64>,
    /// The last entry that it knows to be committed.
    pub committed_index: Option<u64>,
    /// The last entry that it applied.
    pub applied_index: Option<u64>,
    /// The last entry in its newest snapshot.
    pub snapshot_index: Option<u64>,
    /// The last entry that is gone from its log.
    pub purged_index: Option<u64>,
    /// The members of the cluster.
    pub members: Vec<MemberStatus>,
}

/// One member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub node: u64,
    /// Where its peers reach it.
    pub address: String,
    /// Whether it has a vote.
    pub standing: Standing,
}

/// What a member counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It counts for the quorum.
    Voter,
    /// It only follows.
    Learner,
}

impl NodeStatus {
    pub(super) fn new<R: Rt, O: Send + Sync + 'static>(metrics: &RaftMetrics<Types<R, O>>) -> Self {
        let membership = metrics.membership_config.membership();
        let voters: Vec<u64> = membership.voter_ids().collect();
        let members = membership.nodes().map(|(&node, member)| MemberStatus {
            node,
            address: member.address.clone(),
            standing: if voters.contains(&node) {
                Standing::Voter
            } else {
                Standing::Learner
            },
        });
        Self {
            node: metrics.id,
            term: metrics.current_term,
            leader: metrics.current_leader,
            last_index: metrics.last_log_index,
            committed_index: index(metrics.local_committed.as_ref()),
            applied_index: index(metrics.last_applied.as_ref()),
            snapshot_index: index(metrics.snapshot.as_ref()),
            purged_index: index(metrics.purged.as_ref()),
            members: members.collect(),
        }
    }
}

fn index(id: Option<&LogId>) -> Option<u64> {
    id.map(|id| id.index)
}
