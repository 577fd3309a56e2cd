//! Joins a running Raft node and the actors to a store.

use std::sync::Arc;

use tokio::sync::watch;

use crate::absences::Absences;
use crate::config::StoreConfig;
use crate::events::Events;
use crate::forward::Forward;
use crate::keeper::{Keeper, PeerServing};
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::orphans::Orphans;
use crate::proposer::{Life, Proposer};
use crate::reader::Reader;
use crate::replica::{LeaseApplier, Node, Replica, Schedule};
use crate::role::Role;
use crate::runtime::{Rt, Tasks};
use crate::store::{Parts, Store};
use crate::timers::Timers;
use crate::waiters::Waiters;

/// What the actors share, and what the applier feeds.
pub(super) struct Shared {
    replica: Replica,
    events: Arc<Events>,
    orphans: Arc<Orphans>,
    waiters: Arc<Waiters>,
    metrics: Arc<Metrics>,
}

/// Everything that a store is made of.
pub(super) struct Assembly<R: Rt> {
    pub(super) config: StoreConfig,
    pub(super) incarnation: u64,
    pub(super) node: Node<R>,
    pub(super) schedule: watch::Receiver<Schedule>,
    pub(super) shared: Shared,
    pub(super) forward: Arc<dyn Forward>,
    pub(super) peers: Option<PeerServing<R>>,
}

/// Hands out one way to hear of the role for each actor: a channel with one waiter is deterministic in a simulation.
struct Roles<I>(Vec<watch::Sender<Role<I>>>);

impl<I> Roles<I> {
    fn add(&mut self) -> watch::Receiver<Role<I>> {
        let (sender, receiver) = watch::channel(Role::Following { leader: None });
        self.0.push(sender);
        receiver
    }
}

impl Shared {
    /// The parts of one life of a node that are there before Raft is, and what Raft drives.
    pub(super) fn new(node: u64, incarnation: u64) -> (Self, LeaseApplier, watch::Receiver<Schedule>) {
        let orphans = Arc::new(Orphans::default());
        let waiters = Arc::new(Waiters::new(node, incarnation, Arc::clone(&orphans)));
        let (replica, events) = (Replica::default(), Arc::new(Events::default()));
        let (applier, schedule) =
            LeaseApplier::new(replica.clone(), Arc::clone(&waiters), Arc::clone(&events));
        let metrics = Arc::new(Metrics::default());
        (
            Self {
                replica,
                events,
                orphans,
                waiters,
                metrics,
            },
            applier,
            schedule,
        )
    }
}

impl<R: Rt> Assembly<R> {
    /// Starts the actors.
    pub(super) fn complete(self) -> Store<R> {
        let mut tasks = Tasks::new(self.config.node);
        let mut roles = Roles(Vec::new());
        let (proposer, propose) = self.proposer(roles.add()).with_mailbox();
        let (reader, read) = self.reader(roles.add()).with_mailbox();
        let timers = Timers::<R>::new(roles.add(), self.schedule.clone(), proposer.clone());
        let absences = self.absences(roles.add());
        let role = roles.add();
        let leadership = self.leadership(roles);
        tasks.spawn("proposer", propose);
        tasks.spawn("reader", read);
        tasks.spawn("timers", timers.run());
        tasks.spawn("absences", absences.run());
        tasks.spawn("leadership", leadership.run());
        let Self {
            config,
            node,
            shared,
            peers,
            ..
        } = self;
        let Shared {
            replica,
            events,
            orphans,
            waiters,
            metrics,
        } = shared;
        let keeper = Keeper {
            peers,
            node: node.clone(),
            waiters: Arc::clone(&waiters),
            orphans: Arc::clone(&orphans),
            tasks,
        };
        let (keeper, keep) = keeper.with_mailbox();
        // The keeper joins the others; it ends with the last handle, and nobody joins it.
        drop(R::spawn_on(config.node, keep));
        Store::new(Parts {
            proposer,
            reader,
            replica,
            waiters,
            orphans,
            events,
            metrics,
            node,
            keeper,
            role,
        })
    }

    fn proposer(&self, role: watch::Receiver<Role<R::Instant>>) -> Proposer<R> {
        Proposer {
            node: self.node.clone(),
            role,
            forward: Arc::clone(&self.forward),
            orphans: Arc::clone(&self.shared.orphans),
            waiters: Arc::clone(&self.shared.waiters),
            life: Life {
                node: self.config.node,
                incarnation: self.incarnation,
            },
            metrics: Arc::clone(&self.shared.metrics),
        }
    }

    fn reader(&self, role: watch::Receiver<Role<R::Instant>>) -> Reader<R> {
        Reader {
            node: self.node.clone(),
            role,
            forward: Arc::clone(&self.forward),
        }
    }

    fn absences(&self, role: watch::Receiver<Role<R::Instant>>) -> Absences<R> {
        Absences {
            node: self.node.clone(),
            role,
            replica: self.shared.replica.clone(),
        }
    }

    fn leadership(&self, roles: Roles<R::Instant>) -> Leadership<R> {
        Leadership {
            node: self.node.clone(),
            replica: self.shared.replica.clone(),
            id: self.config.node,
            incarnation: self.incarnation,
            floor: self.config.floor,
            limits: self.config.limits,
            forward: Arc::clone(&self.forward),
            roles: roles.0,
        }
    }
}
