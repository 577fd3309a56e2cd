//! Turns Raft's leadership into this node's role and the cluster's clock.
//!
//! Owns: the role. Asks: Raft. Asked by: nobody; it publishes. Stops: when Raft stops.
//!
//! A leadership is opened by an entry of its own: it tells the machine which life of this node parks callers now, and,
//! where this node is alone, lifts the token counter above all that an earlier life can have issued. Only when that
//! entry is applied does the role become `Leading`, so nothing is granted before this start's floor.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lease_core::Timestamp;
use lease_core::machine::codec::{self, EncodedCommand};
use lease_core::machine::{Command, LeaseMachine, Limits, Outcome};
use tokio::sync::watch;

use crate::clock::ClusterClock;
use crate::error::StoreError;
use crate::forward::Forward;
use crate::raft::leadership::{LeadershipWatch, Leading as Elected, Role as RaftRole};
use crate::replica::{Node, Replica};
use crate::role::{Leading, Role};
use crate::runtime::{Instant, Rt};
use crate::token_floor::{FloorError, Opened, TokenFloor};

/// How long until a role that could not be taken up is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Whether the machine knows of this life of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    No,
    Yes,
}

impl Known {
    /// Whoever serves has told the machine of its life.
    const fn or_by<I: Instant>(self, taken: &Role<I>) -> Self {
        if taken.leader().is_some() { Self::Yes } else { self }
    }
}

/// What the leadership actor works with.
pub(crate) struct Leadership<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) replica: Replica,
    /// This node's id and which life of it this is.
    pub(crate) id: u64,
    pub(crate) incarnation: u64,
    pub(crate) floor: TokenFloor,
    pub(crate) limits: Option<Limits>,
    pub(crate) forward: Arc<dyn Forward>,
    /// One for each actor that follows the role: a channel with one waiter is deterministic in a simulation.
    pub(crate) roles: Vec<watch::Sender<Role<R::Instant>>>,
}

impl<R: Rt> Leadership<R> {
    pub(crate) async fn run(self) {
        let mut watched: LeadershipWatch<R, _> = self.node.leadership();
        let mut known = Known::No;
        while let Some(role) = watched.changed().await {
            while watched.role() == role {
                match self.take_up(role, known).await {
                    Ok(taken) => {
                        known = known.or_by(&taken);
                        self.publish(taken);
                        break;
                    }
                    Err(error) => tracing::warn!(%error, "this node does not serve yet"),
                }
                self.publish(Role::Following { leader: None });
                R::sleep(TRY_AGAIN_AFTER).await;
            }
        }
        self.publish(Role::Following { leader: None });
    }

    /// What this node may do in a role that Raft gave it, once the cluster knows of its life.
    async fn take_up(&self, role: RaftRole<R::Instant>, known: Known) -> Result<Role<R::Instant>, OpenError> {
        match role {
            RaftRole::Leading(elected) => Ok(Role::Leading(self.open(elected).await?)),
            RaftRole::Following { leader: Some(leader) } => {
                if known == Known::No {
                    self.introduce(leader).await?;
                }
                Ok(Role::Following { leader: Some(leader) })
            }
            RaftRole::Following { leader: None } => Ok(Role::Following { leader: None }),
        }
    }

    /// Has the leader tell the machine which life of this node parks callers from now on.
    async fn introduce(&self, leader: u64) -> Result<(), OpenError> {
        let command = EncodedCommand::new(&self.node_started())?;
        match self.forward.submit(leader, vec![command]).await.pop() {
            Some(Ok(Outcome::Refused(refusal))) => Err(OpenError::Refused(refusal)),
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(OpenError::Forward(error)),
            None => Err(OpenError::Forward(StoreError::Unknown)),
        }
    }

    const fn node_started(&self) -> Command {
        Command::NodeStarted {
            node: self.id,
            incarnation: self.incarnation,
        }
    }

    async fn open(&self, elected: Elected<R::Instant>) -> Result<Leading<R::Instant>, OpenError> {
        let clock = match elected.anchor {
            Some(anchor) => ClusterClock::new(anchor.stamp, anchor.applied_at),
            None => ClusterClock::new(Timestamp::ZERO, R::now()),
        };
        let opened = if self.replica.look(LeaseMachine::issues_tokens) {
            Opened::Yes
        } else {
            Opened::No
        };
        let floor = self.floor.at_start::<R>(opened)?;
        // The floor comes first: what is due may be granted to others in this very entry.
        let raise = floor.map(|floor| Command::RaiseTokenFloor { floor: floor.token });
        let mut commands: Vec<Command> = raise.into_iter().collect();
        commands.push(self.node_started());
        commands.extend(self.limits.map(Command::SetLimits));
        let body = encode(&commands)?;
        let pending = self.node.propose(clock.at(R::now()), body, elected.id).await?;
        pending.await?;
        if let Some(floor) = floor {
            floor.wait_out::<R>().await;
        }
        tracing::info!(leadership = %elected.id, floor = floor.map(|floor| floor.token), "leading");
        Ok(Leading {
            id: elected.id,
            clock,
        })
    }

    fn publish(&self, role: Role<R::Instant>) {
        for follower in &self.roles {
            follower.send_replace(role);
        }
    }
}

fn encode(commands: &[Command]) -> Result<Bytes, codec::CodecError> {
    let encoded: Result<Vec<_>, _> = commands.iter().map(EncodedCommand::new).collect();
    codec::join(&encoded?)
}

/// Why a leadership was not opened. Another one may be, here or elsewhere.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Floor(#[from] FloorError),
    #[error(transparent)]
    Codec(#[from] codec::CodecError),
    #[error(transparent)]
    Refused(lease_core::machine::Refusal),
    #[error(transparent)]
    Forward(StoreError),
    #[error(transparent)]
    Propose(#[from] crate::raft::error::ProposeError),
}
