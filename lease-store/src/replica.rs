//! This node's copy of the lease machine: fed by Raft, looked at by readers.
//!
//! What an entry did is told to the parked callers and the event ring before the next entry is applied; neither ever
//! waits. It leaves to others what time it is and when an entry is due.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lease_core::Timestamp;
use lease_core::machine::{LeaseMachine, Outcome, View, codec};
use tokio::sync::watch;

use crate::events::Events;
use crate::raft::applier::{Applier, CannotApply, SnapshotView};
use crate::raft::node::RaftNode;
use crate::waiters::Waiters;

/// The Raft node that replicates leases.
pub(crate) type Node<R> = RaftNode<R, LeaseApplier>;

/// The machine that readers share with the applier. A reader holds it for a look, never across an await.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    machine: Arc<Mutex<LeaseMachine>>,
}

/// When something is due, as the last entry left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Schedule {
    /// The next deadline of a lease or a wait.
    pub(crate) next_due: Option<Timestamp>,
    /// Leases that live, with or without a deadline.
    pub(crate) leases: u64,
}

/// What Raft drives.
#[derive(Debug)]
pub(crate) struct LeaseApplier {
    replica: Replica,
    waiters: Arc<Waiters>,
    events: Arc<Events>,
    schedule: watch::Sender<Schedule>,
}

impl Replica {
    /// A look at the machine as of the last entry applied here.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&LeaseMachine) -> T) -> T {
        look(&self.lock())
    }

    /// A panic in `apply` stops the node before anybody could see a half-applied entry, so a poisoned lock hides
    /// nothing from those who may still look.
    fn lock(&self) -> MutexGuard<'_, LeaseMachine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseApplier {
    pub(crate) fn new(
        replica: Replica,
        waiters: Arc<Waiters>,
        events: Arc<Events>,
    ) -> (Self, watch::Receiver<Schedule>) {
        let (schedule, due) = watch::channel(Schedule::default());
        (
            Self {
                replica,
                waiters,
                events,
                schedule,
            },
            due,
        )
    }

    fn publish_schedule(&self, machine: &LeaseMachine) {
        let schedule = Schedule {
            next_due: machine.next_due(),
            leases: machine.stats().leases,
        };
        self.schedule.send_if_modified(|current| {
            let changed = *current != schedule;
            *current = schedule;
            changed
        });
    }
}

impl Applier for LeaseApplier {
    type Outcome = Vec<Outcome>;
    type View = View;
    type State = LeaseMachine;

    fn apply(&mut self, at: Timestamp, body: &Bytes) -> Result<Vec<Outcome>, CannotApply> {
        let commands = codec::split(body).map_err(|error| CannotApply::Malformed {
            reason: error.to_string(),
        })?;
        let mut machine = self.replica.lock();
        let applied =
            machine
                .apply_entry(at, &commands)
                .map_err(|error| CannotApply::UnsupportedVersion {
                    needed: u32::from(error.asked.get()),
                    supported: u32::from(error.known.get()),
                })?;
        self.publish_schedule(&machine);
        drop(machine);
        self.events.record(&applied.effects);
        self.waiters.wake(&applied.effects);
        Ok(applied.outcomes)
    }

    fn view(&self) -> View {
        self.replica.look(LeaseMachine::view)
    }

    fn decode(from: &mut dyn Read) -> io::Result<LeaseMachine> {
        let mut from = from;
        LeaseMachine::decode(&mut from).map_err(io::Error::other)
    }

    fn replace(&mut self, state: LeaseMachine) -> LeaseMachine {
        let mut machine = self.replica.lock();
        let before = std::mem::replace(&mut *machine, state);
        self.publish_schedule(&machine);
        self.events.skip();
        self.waiters
            .reconcile(|attachment| machine.is_waiting(attachment));
        before
    }
}

impl SnapshotView for View {
    fn encode(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = out;
        Self::encode(self, &mut out)
    }
}
