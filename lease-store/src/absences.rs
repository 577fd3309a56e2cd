//! Tells the machine of nodes that stay lost, so that no lease is granted to a caller parked there.
//!
//! Owns: which absences were told. Asks: the proposer. Asked by: nobody. Stops: when nobody tells it the role any more.
//!
//! Only the leader can tell, since it alone hears from everybody. Without this, the callers of a dead node would be
//! granted one after another, each for a whole ttl.

use std::collections::BTreeMap;
use std::time::Duration;

use lease_core::machine::Command;
use tokio::sync::watch;

use crate::orphans::IfUndelivered;
use crate::proposer::{ProposerHandle, Request};
use crate::replica::{Node, Replica};
use crate::role::Role;
use crate::runtime::{Instant as _, Rt};

/// How often the leader looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a node must be silent. Longer than an election and a slow restart: its callers lose their places.
const LOST_AFTER: Duration = Duration::from_secs(5);

/// What the actor works with.
pub(crate) struct Absences<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) replica: Replica,
    pub(crate) proposer: ProposerHandle<R::Instant>,
}

/// How long a node has been silent, and whether it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence<I> {
    /// Silent since then.
    Since(I),
    /// The machine knows.
    Told,
}

impl<R: Rt> Absences<R> {
    pub(crate) async fn run(mut self) {
        let mut absences = BTreeMap::new();
        loop {
            tokio::select! {
                biased;
                changed = self.role.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    // A new leader counts anew.
                    absences.clear();
                }
                () = R::sleep(LOOK_EVERY) => self.look(&mut absences).await,
            }
        }
    }

    async fn look(&self, absences: &mut BTreeMap<u64, Absence<R::Instant>>) {
        if self.role.borrow().leading().is_none() {
            return;
        }
        let status = self.node.status();
        for member in status.members.iter().filter(|member| member.node != status.node) {
            let heard_ago = member.progress.and_then(|progress| progress.heard_ago);
            if heard_ago.is_some_and(|ago| ago < LOST_AFTER) {
                absences.remove(&member.node);
                continue;
            }
            let absence = absences
                .entry(member.node)
                .or_insert_with(|| Absence::Since(R::now()));
            let Absence::Since(since) = *absence else { continue };
            if (heard_ago.is_some() || since.elapsed() >= LOST_AFTER) && self.tell(member.node).await {
                *absence = Absence::Told;
            }
        }
    }

    /// Whether the machine knows now.
    async fn tell(&self, node: u64) -> bool {
        let Some(incarnation) = self.replica.look(|machine| machine.incarnation(node)) else {
            // It never parked anybody.
            return true;
        };
        let Ok(request) = Request::new(&Command::NodeLost { node, incarnation }, IfUndelivered::Keep) else {
            return false;
        };
        tracing::warn!(
            node,
            incarnation,
            "a node stays lost: its waiting callers lose their places"
        );
        self.proposer.propose::<R>(request).await.is_ok()
    }
}
