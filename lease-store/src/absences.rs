//! Tells the machine of nodes that stay lost, so that no lease is granted to a caller parked there.
//!
//! Owns: what was observed of the others' silence. Asks: Raft. Asked by: nobody. Stops: when nobody tells it the role any
//! more.
//!
//! Only the leader can tell, since it alone hears from everybody. Without this, the callers of a dead node would be
//! granted one after another, each for a whole ttl.
//!
//! What is told names the leadership that observed it, and goes to Raft directly. The proposer would forward it to a
//! successor: a leader that was cut off hears from nobody, and the cluster would throw out the callers of nodes that are
//! well.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lease_core::machine::Command;
use lease_core::machine::codec::{self, EncodedCommand};
use tokio::sync::watch;

use crate::raft::error::ProposeError;
use crate::raft::types::LeadershipId;
use crate::replica::{Node, Replica};
use crate::role::{Leading, Role};
use crate::runtime::{Instant, Rt};

/// How often the leader looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a look may take: what Raft does not answer is told again at the next one.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// How long a node must be silent. Longer than an election and a slow restart: its callers lose their places.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// A look that comes so long after the one before means that this process stood still: it was silent, not the others.
/// Longer than looks that are in time; with what a node may be silent beside it, shorter than [`LOST_AFTER`].
const STOOD_STILL_AFTER: Duration = Duration::from_secs(3);

/// What the actor works with.
pub(crate) struct Absences<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) replica: Replica,
}

/// What one leadership has observed of the others, while this process did not stand still.
#[derive(Debug)]
struct Observed<I> {
    leadership: LeadershipId,
    /// The first look.
    since: I,
    /// The newest look.
    looked_at: I,
    absences: BTreeMap<u64, Absence<I>>,
}

/// How long a node has been silent, and whether it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence<I> {
    /// It was not heard of since then.
    Since(I),
    /// The machine knows.
    Told,
}

impl<I: Instant> Observed<I> {
    const fn begin(leadership: LeadershipId, now: I) -> Self {
        Self {
            leadership,
            since: now,
            looked_at: now,
            absences: BTreeMap::new(),
        }
    }

    /// Takes note of a look at `now`. Another leadership counts anew, and so does a process that stood still.
    fn look(&mut self, leadership: LeadershipId, now: I) {
        if self.leadership != leadership || now - self.looked_at >= STOOD_STILL_AFTER {
            *self = Self::begin(leadership, now);
        }
        self.looked_at = now;
    }

    /// Whether a node that was last heard of `heard_ago` is lost, and the machine is to be told.
    fn is_lost(&mut self, node: u64, heard_ago: Option<Duration>) -> bool {
        if heard_ago.is_some_and(|ago| ago < LOST_AFTER) {
            self.absences.remove(&node);
            return false;
        }
        let now = self.looked_at;
        match *self.absences.entry(node).or_insert(Absence::Since(now)) {
            Absence::Told => false,
            Absence::Since(since) => {
                let silent_for = heard_ago.unwrap_or_else(|| now - since);
                silent_for.min(now - self.since) >= LOST_AFTER
            }
        }
    }

    fn told(&mut self, node: u64) {
        self.absences.insert(node, Absence::Told);
    }
}

impl<R: Rt> Absences<R> {
    pub(crate) async fn run(mut self) {
        let mut observed = None;
        loop {
            tokio::select! {
                biased;
                changed = self.role.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    // A new leader counts anew.
                    observed = None;
                }
                () = R::sleep(LOOK_EVERY) => self.look(&mut observed).await,
            }
        }
    }

    async fn look(&self, observed: &mut Option<Observed<R::Instant>>) {
        let Some(leading) = self.role.borrow().leading().copied() else {
            return;
        };
        let now = R::now();
        let observed = observed.get_or_insert_with(|| Observed::begin(leading.id, now));
        observed.look(leading.id, now);
        let status = self.node.status();
        for member in status.members.iter().filter(|member| member.node != status.node) {
            let heard_ago = member.progress.and_then(|progress| progress.heard_ago);
            if !observed.is_lost(member.node, heard_ago) {
                continue;
            }
            match R::timeout(TELL_WITHIN, self.tell(&leading, member.node)).await {
                Ok(Ok(())) => observed.told(member.node),
                Ok(Err(error)) => {
                    tracing::debug!(%error, node = member.node, "a lost node is not told of yet")
                }
                Err(_) => tracing::debug!(node = member.node, "a lost node is not told of yet"),
            }
            // The next one at the next look, which must not come late.
            break;
        }
    }

    /// Returns when the machine knows; only under the leadership that has observed it.
    async fn tell(&self, leading: &Leading<R::Instant>, node: u64) -> Result<(), TellError> {
        let Some(incarnation) = self.replica.look(|machine| machine.incarnation(node)) else {
            // It never parked anybody.
            return Ok(());
        };
        let body = encode(&Command::NodeLost { node, incarnation })?;
        let pending = self
            .node
            .propose(leading.time(R::now()), body, leading.id)
            .await?;
        pending.await?;
        tracing::warn!(
            node,
            incarnation,
            "a node stays lost: its waiting callers lose their places"
        );
        Ok(())
    }
}

fn encode(command: &Command) -> Result<Bytes, codec::CodecError> {
    codec::join(&[EncodedCommand::new(command)?])
}

/// Why the machine may not know. It is told again.
#[derive(Debug, thiserror::Error)]
enum TellError {
    #[error(transparent)]
    Codec(#[from] codec::CodecError),
    #[error(transparent)]
    Propose(#[from] ProposeError),
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lease_core::Timestamp;

    use super::*;
    use crate::clock::ClusterClock;
    use crate::events::Events;
    use crate::orphans::Orphans;
    use crate::raft::error::Refusal;
    use crate::raft::leadership::Role as RaftRole;
    use crate::raft::node::{NodeConfig, RaftNode, Storage};
    use crate::replica::LeaseApplier;
    use crate::runtime::Tokio;
    use crate::waiters::Waiters;

    const THIS: LeadershipId = LeadershipId { term: 3, node: 1 };
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_node_is_lost_once_when_it_was_silent_for_long_and_again_when_it_was_heard_meanwhile() {
        let start = Tokio::now();
        let mut observed = Observed::begin(THIS, start);
        for second in 1..=12 {
            let silent = second - 1;
            observed.look(THIS, start + SECOND * second);
            let never_heard = observed.is_lost(2, None);
            assert_eq!(never_heard, silent == 5, "{second}");
            if never_heard {
                observed.told(2);
            }
            assert_eq!(observed.is_lost(3, Some(SECOND * (second % 6))), second % 6 == 5);
        }
    }

    #[test]
    fn a_leader_that_stood_still_holds_nobodys_silence_against_them() {
        let start = Tokio::now();
        let mut observed = Observed::begin(THIS, start);
        for second in 1..=60 {
            observed.look(THIS, start + SECOND * second);
            assert!(!observed.is_lost(2, Some(SECOND / 10)));
        }
        for second in 70..75 {
            observed.look(THIS, start + SECOND * second);
            assert!(!observed.is_lost(2, Some(SECOND * (second - 60))), "{second}");
        }
        observed.look(THIS, start + SECOND * 75);
        assert!(observed.is_lost(2, Some(SECOND * 15)), "it is silent indeed");
    }

    #[test]
    fn each_leadership_counts_anew() {
        let start = Tokio::now();
        let mut observed = Observed::begin(THIS, start);
        for second in 1..=6 {
            observed.look(THIS, start + SECOND * second);
        }
        let next = LeadershipId { term: 5, node: 1 };
        observed.look(next, start + SECOND * 7);
        assert!(!observed.is_lost(2, Some(SECOND * 7)));
        assert!(!observed.is_lost(3, None));
    }

    /// A leader that was cut off is deposed before it knows.
    #[tokio::test]
    async fn a_leadership_that_is_over_tells_nobody_of_lost_nodes() {
        let replica = Replica::default();
        let waiters = Waiters::new(1, 1, Arc::new(Orphans::default()));
        let (applier, _schedule) =
            LeaseApplier::new(replica.clone(), Arc::new(waiters), Arc::new(Events::default()));
        let node: Node<Tokio> = RaftNode::start(NodeConfig::alone(1, Storage::Memory), applier)
            .await
            .unwrap();
        let mut watched = node.leadership();
        let id = loop {
            if let RaftRole::Leading(elected) = watched.changed().await.unwrap() {
                break elected.id;
            }
        };
        let leading = |id| Leading {
            id,
            clock: ClusterClock::new(Timestamp::ZERO, Tokio::now()),
        };
        let (known, incarnation) = (2, 7);
        let started = Command::NodeStarted {
            node: known,
            incarnation,
        };
        let pending = node
            .propose(Timestamp::ZERO, encode(&started).unwrap(), id)
            .await
            .unwrap();
        pending.await.unwrap();
        let (_role, role) = watch::channel(Role::Leading(leading(id)));
        let absences = Absences { node, role, replica };

        let before = absences.node.status().last_index;
        let over = LeadershipId {
            term: id.term - 1,
            ..id
        };
        let told = absences.tell(&leading(over), known).await;
        assert!(
            matches!(
                told,
                Err(TellError::Propose(ProposeError::NotApplied {
                    reason: Refusal::LeadershipOver { .. }
                }))
            ),
            "{told:?}"
        );
        assert_eq!(absences.node.status().last_index, before);
        absences.tell(&leading(id), known).await.unwrap();
        assert!(absences.node.status().last_index > before);
        absences.node.shutdown().await.unwrap();
    }
}
