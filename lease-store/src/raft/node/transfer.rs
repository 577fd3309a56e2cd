//! Handing the leadership over to a member that can take it.

use std::time::Duration;

use thiserror::Error;

use super::{RaftNode, Standing};
use crate::raft::applier::Applier;
use crate::runtime::Rt;

/// A member that has been silent for longer is not handed the leadership: proposals are refused while it is on its
/// way, and it may be gone.
const SILENT_MAX: Duration = Duration::from_secs(1);
/// Entries that a member may lack: it fetches them before it stands for election, and proposals are refused meanwhile.
const ENTRIES_LACKED_MAX: u64 = 1_000;

/// Why a leadership is not handed over. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// This node does not lead.
    #[error("this node does not lead")]
    NotLeader {
        /// The node that leads, if this one knows.
        leader: Option<u64>,
    },
    /// The other one is no member with a vote.
    #[error("node {to} is no voting member of the cluster")]
    NotAVoter {
        /// Whom it was for.
        to: u64,
    },
    /// The other one has not answered for a while.
    #[error("node {to} has not answered within {SILENT_MAX:?}")]
    Silent {
        /// Whom it was for.
        to: u64,
    },
    /// The other one lacks too much of the log.
    #[error("node {to} lacks {entries} entries, more than {ENTRIES_LACKED_MAX}")]
    Behind {
        /// Whom it was for.
        to: u64,
        /// How many entries it lacks.
        entries: u64,
    },
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

impl TransferError {
    /// Whether the same call may succeed later, here or at the leader.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        !matches!(self, Self::NotAVoter { .. })
    }
}

impl<R: Rt, A: Applier> RaftNode<R, A> {
    /// Hands the leadership to the voting member that lacks least, if this node leads, and waits until that one leads or
    /// `within` is over. Answers with the new leader; `None` if this node does not lead, nobody can take over, or nobody
    /// has in time.
    ///
    /// # Cancel safety
    /// Cancel safe: the request was made, or was not.
    pub async fn hand_over(&self, within: Duration) -> Option<u64> {
        let own = self.node();
        let status = self.status();
        let next = |index: Option<u64>| index.map_or(0, |index| index.saturating_add(1));
        let progress = status.members.iter().filter_map(|member| {
            let voter = (member.standing == Standing::Voter).then_some(member.node)?;
            Some((voter, member.progress?))
        });
        let there = progress.filter(|(_, progress)| progress.heard_ago.is_some_and(|ago| ago <= SILENT_MAX));
        let (to, _) = there.max_by_key(|(_, progress)| next(progress.matched_index))?;
        if let Err(error) = self.transfer_leader(to).await {
            tracing::debug!(%error, to, "the leadership is not handed over");
            return None;
        }
        let wait = self.shared.raft.wait(Some(within));
        let other = |leader: Option<u64>| leader.filter(|leader| *leader != own);
        let led = wait.metrics(
            |metrics| other(metrics.current_leader).is_some(),
            "another node leads",
        );
        other(led.await.ok()?.current_leader)
    }

    /// Asks the cluster to make `to` its leader, and returns before that has happened. From now until the next
    /// leader is there, about one round trip later, proposals are refused. If `to` fails to take over, an election
    /// follows after the usual silence.
    ///
    /// # Errors
    /// Nothing was asked for: this node does not lead, or `to` could not take over at once.
    ///
    /// # Cancel safety
    /// Cancel safe: the request was made, or was not.
    pub async fn transfer_leader(&self, to: u64) -> Result<(), TransferError> {
        let status = self.status();
        if status.leader != Some(status.node) {
            return Err(TransferError::NotLeader {
                leader: status.leader,
            });
        }
        if to == status.node {
            return Ok(());
        }
        let member = status.members.iter().find(|member| member.node == to);
        let member = member.filter(|member| member.standing == Standing::Voter);
        let progress = member
            .and_then(|member| member.progress)
            .ok_or(TransferError::NotAVoter { to })?;
        if progress.heard_ago.is_none_or(|ago| ago > SILENT_MAX) {
            return Err(TransferError::Silent { to });
        }
        let next = |index: Option<u64>| index.map_or(0, |index| index.saturating_add(1));
        let entries = next(status.last_index).saturating_sub(next(progress.matched_index));
        if entries > ENTRIES_LACKED_MAX {
            return Err(TransferError::Behind { to, entries });
        }
        let asked = self.shared.raft.trigger().transfer_leader(to).await;
        asked.map_err(|_| TransferError::Stopped)
    }
}
