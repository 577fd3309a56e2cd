//! Puts a store together: storage, Raft, machine, actors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;

use crate::absences::Absences;
use crate::config::{StorageConfig, StoreConfig};
use crate::events::Events;
use crate::forward::{Forward, NobodyElse};
use crate::keeper::Keeper;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::orphans::Orphans;
use crate::proposer::Proposer;
use crate::raft::data_dir::{DataDir, DataDirError};
use crate::raft::error::StartError as RaftStartError;
use crate::raft::failure::NodeFailure;
use crate::raft::node::{NodeConfig, RaftNode, Storage};
use crate::reader::Reader;
use crate::replica::{LeaseApplier, Node, Replica, Schedule};
use crate::role::Role;
use crate::runtime::{Rt, Tasks};
use crate::store::{Parts, Store};
use crate::timers::Timers;
use crate::token_floor::FloorError;
use crate::waiters::Waiters;

/// The incarnation of a store in memory: it remembers no earlier one.
const FIRST_INCARNATION: u64 = 1;

/// Why a store does not start. Nothing was served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// What is stored cannot be used, or Raft refuses it.
    #[error(transparent)]
    Raft(#[from] RaftStartError),
    /// No token floor can be taken from the wall clock.
    #[error(transparent)]
    Clock(#[from] FloorError),
    /// The directory could not be opened off the runtime.
    #[error("cannot open the data directory {}", directory.display())]
    Open {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The node failed while it started.
    #[error("the node failed while it started")]
    Failed(#[source] Arc<NodeFailure>),
    /// The node did not lead in time.
    #[error("the node did not lead within {within:?}: see the log for what it waits for")]
    NotLeading {
        /// How long it was given.
        within: Duration,
    },
}

impl<R: Rt> Store<R> {
    /// Starts a store of one node in this process, and returns once it serves.
    ///
    /// # Errors
    /// [`StartError`] says what is wrong and what to do. Nothing was served.
    ///
    /// # Cancel safety
    /// Not cancel safe: a start that is dropped half-way may hold the data directory until the process ends.
    pub async fn start(config: StoreConfig) -> Result<Self, StartError> {
        // An absurd clock is told at once, and not as a leadership that never opens.
        config.floor.at_start::<R>()?;
        let (storage, incarnation) = open_storage::<R>(&config).await?;
        let orphans = Arc::new(Orphans::default());
        let waiters = Arc::new(Waiters::new(config.node, incarnation, Arc::clone(&orphans)));
        let (replica, events) = (Replica::default(), Arc::new(Events::default()));
        let (applier, schedule) =
            LeaseApplier::new(replica.clone(), Arc::clone(&waiters), Arc::clone(&events));
        let node = RaftNode::start(NodeConfig::alone(config.node, storage), applier).await?;
        let shared = Shared {
            replica,
            events,
            orphans,
            waiters,
            metrics: Arc::new(Metrics::default()),
        };
        let store = assemble(&config, incarnation, node, schedule, shared)?;
        store.wait_until_leading(config.lead_within).await?;
        Ok(store)
    }

    /// Waits for the role that serves.
    async fn wait_until_leading(&self, within: Duration) -> Result<(), StartError> {
        let mut role = self.role();
        let leading = role.wait_for(|role| role.leading().is_some());
        let led = tokio::select! {
            biased;
            led = leading => led.map(|_| ()).map_err(|_| StartError::NotLeading { within }),
            failure = self.failed() => Err(StartError::Failed(Arc::new(failure))),
            () = R::sleep(within) => Err(StartError::NotLeading { within }),
        };
        if led.is_err() {
            // The reason that is returned says more than a second failure.
            let _ = self.shutdown().await;
        }
        led
    }
}

/// What the actors share.
struct Shared {
    replica: Replica,
    events: Arc<Events>,
    orphans: Arc<Orphans>,
    waiters: Arc<Waiters>,
    metrics: Arc<Metrics>,
}

fn assemble<R: Rt>(
    config: &StoreConfig,
    incarnation: u64,
    node: Node<R>,
    schedule: watch::Receiver<Schedule>,
    shared: Shared,
) -> Result<Store<R>, StartError> {
    let mut tasks = Tasks::new(config.node);
    let mut roles = Vec::new();
    let mut role = || {
        let (sender, receiver) = watch::channel(Role::Following { leader: None });
        roles.push(sender);
        receiver
    };
    let Shared {
        replica,
        events,
        orphans,
        waiters,
        metrics,
    } = shared;
    let forward: Arc<dyn Forward> = Arc::new(NobodyElse);
    let proposer = Proposer {
        node: node.clone(),
        role: role(),
        forward: Arc::clone(&forward),
        orphans: Arc::clone(&orphans),
        waiters: Arc::clone(&waiters),
        metrics: Arc::clone(&metrics),
    };
    let (proposer, propose) = proposer.with_mailbox();
    let (reader, read) = Reader {
        node: node.clone(),
        role: role(),
        forward: Arc::clone(&forward),
    }
    .with_mailbox();
    let timers = Timers::<R>::new(role(), schedule, proposer.clone());
    let absences = Absences::<R> {
        node: node.clone(),
        role: role(),
        replica: replica.clone(),
        proposer: proposer.clone(),
    };
    let store_role = role();
    tasks.spawn("proposer", propose);
    tasks.spawn("reader", read);
    tasks.spawn("timers", timers.run());
    tasks.spawn("absences", absences.run());
    let leadership = Leadership {
        node: node.clone(),
        id: config.node,
        incarnation,
        floor: config.floor,
        limits: config.limits,
        forward,
        roles,
    };
    tasks.spawn("leadership", leadership.run());
    let keeper = Keeper {
        node: node.clone(),
        waiters: Arc::clone(&waiters),
        tasks,
    };
    let (keeper, keep) = keeper.with_mailbox();
    // The keeper joins the others; it ends with the last handle, and nobody joins it.
    drop(R::spawn_on(config.node, keep));
    Ok(Store::new(Parts {
        proposer,
        reader,
        replica,
        waiters,
        orphans,
        events,
        metrics,
        node,
        keeper,
        role: store_role,
    }))
}

async fn open_storage<R: Rt>(config: &StoreConfig) -> Result<(Storage, u64), StartError> {
    match &config.storage {
        StorageConfig::Memory => Ok((Storage::Memory, FIRST_INCARNATION)),
        StorageConfig::Directory(directory) => {
            let data_dir = open_directory::<R>(directory, config.node).await?;
            let incarnation = data_dir.incarnation();
            Ok((Storage::Directory(data_dir), incarnation))
        }
    }
}

async fn open_directory<R: Rt>(directory: &Path, node: u64) -> Result<DataDir, StartError> {
    let directory = directory.to_owned();
    let opening = directory.clone();
    let opened = R::run_blocking(move || DataDir::open(&opening, node)).await;
    Ok(opened.map_err(|source| StartError::Open { directory, source })??)
}
