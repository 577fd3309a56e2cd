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
use crate::proposer::Proposer;
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
        let Self {
            config,
            incarnation,
            node,
            schedule,
            shared,
            forward,
            peers,
        } = self;
        let Shared {
            replica,
            events,
            orphans,
            waiters,
            metrics,
        } = shared;
        let mut tasks = Tasks::new(config.node);
        let mut roles = Roles(Vec::new());
        let proposer = Proposer {
            node: node.clone(),
            role: roles.add(),
            forward: Arc::clone(&forward),
            orphans: Arc::clone(&orphans),
            waiters: Arc::clone(&waiters),
            metrics: Arc::clone(&metrics),
        };
        let (proposer, propose) = proposer.with_mailbox();
        let reader = Reader {
            node: node.clone(),
            role: roles.add(),
            forward: Arc::clone(&forward),
        };
        let (reader, read) = reader.with_mailbox();
        let timers = Timers::<R>::new(roles.add(), schedule, proposer.clone());
        let absences = Absences::<R> {
            node: node.clone(),
            role: roles.add(),
            replica: replica.clone(),
            proposer: proposer.clone(),
        };
        let role = roles.add();
        let leadership = Leadership {
            node: node.clone(),
            replica: replica.clone(),
            id: config.node,
            incarnation,
            floor: config.floor,
            limits: config.limits,
            forward,
            roles: roles.0,
        };
        tasks.spawn("proposer", propose);
        tasks.spawn("reader", read);
        tasks.spawn("timers", timers.run());
        tasks.spawn("absences", absences.run());
        tasks.spawn("leadership", leadership.run());
        let keeper = Keeper {
            peers,
            node: node.clone(),
            waiters: Arc::clone(&waiters),
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
}
