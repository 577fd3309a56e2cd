//! Where a node stands, in plain numbers.

use std::time::Duration;

use openraft::{Instant as _, RaftMetrics};

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
    /// At the leader: how long ago it sent the last thing that a quorum has answered. Beyond an election timeout it
    /// is likely no leader any more.
    pub quorum_heard_ago: Option<Duration>,
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
    /// At the leader, of others: how far they are. No other node knows.
    pub progress: Option<PeerProgress>,
}

/// What a leader knows of another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerProgress {
    /// The last entry that it is known to hold.
    pub matched_index: Option<u64>,
    /// How long ago the leader sent the last thing that it has answered; `None` if it has answered nothing yet.
    pub heard_ago: Option<Duration>,
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
        let now = R::now();
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
            progress: (node != metrics.id)
                .then(|| progress(metrics, node, now))
                .flatten(),
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
            quorum_heard_ago: metrics
                .last_quorum_acked
                .map(|acked| now.saturating_duration_since(*acked)),
            members: members.collect(),
        }
    }
}

fn progress<R: Rt, O: Send + Sync + 'static>(
    metrics: &RaftMetrics<Types<R, O>>,
    node: u64,
    now: R::Instant,
) -> Option<PeerProgress> {
    let matched = metrics.replication.as_ref()?.get(&node)?;
    let heard = metrics.heartbeat.as_ref().and_then(|heard| *heard.get(&node)?);
    Some(PeerProgress {
        matched_index: index(matched.as_ref()),
        heard_ago: heard.map(|heard| now.saturating_duration_since(*heard)),
    })
}

fn index(id: Option<&LogId>) -> Option<u64> {
    id.map(|id| id.index)
}
