//! The nodes of a simulated cluster as processes with disks: they start, crash, fail, and start again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lease_store::peers::memory::MemoryNet;
use lease_store::raft::simulated::SimulatedDisk;
use lease_store::runtime::{AsyncRuntime as _, Rt as _};
use lease_store::simulation::{self, ClockRate, NodeRt, Steps};
use lease_store::{ClusterConfig, Store, StoreConfig};

use super::note::Notes;
use crate::random::Random;

/// The nodes.
pub(super) const NODES: [u64; 3] = [1, 2, 3];

/// A store of the simulation.
pub(super) type SimStore = Store<NodeRt>;

/// The stage. Clones share it.
#[derive(Clone)]
pub(super) struct Stage {
    shared: Arc<Shared>,
}

struct Shared {
    net: MemoryNet<NodeRt>,
    notes: Notes,
    nodes: Mutex<BTreeMap<u64, Node>>,
    phase: Mutex<Phase>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Faults are on.
    Safety,
    /// They are healed, and clients are done.
    Liveness,
}

struct Node {
    disk: SimulatedDisk,
    standing: Standing,
    store: Option<SimStore>,
    life: u64,
    ppm: i32,
    random: Random,
    /// Snapshots that its machine was replaced by, as last seen.
    term: u64,
    leader: Option<u64>,
}

/// What a node is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Down,
    Starting,
    Up,
}

impl Stage {
    pub(super) fn new(seed: u64, skew_ppm: u32) -> Self {
        let mut random = Random::new(seed ^ 0x5747);
        let nodes = NODES.map(|id| {
            let node = Node {
                disk: SimulatedDisk::new(),
                standing: Standing::Down,
                store: None,
                life: 0,
                ppm: skew(&mut random, skew_ppm),
                random: Random::new(random.bits()),
                term: 0,
                leader: None,
            };
            (id, node)
        });
        simulation::begin(
            lease_store::peers::memory::WIRES,
            ClockRate::default(),
            Steps::Prompt,
        );
        Self {
            shared: Arc::new(Shared {
                net: MemoryNet::new(),
                notes: Notes::default(),
                nodes: Mutex::new(nodes.into()),
                phase: Mutex::new(Phase::Safety),
            }),
        }
    }

    pub(super) fn notes(&self) -> &Notes {
        &self.shared.notes
    }

    pub(super) fn net(&self) -> &MemoryNet<NodeRt> {
        &self.shared.net
    }

    pub(super) fn phase(&self) -> Phase {
        *self.shared.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        *self.shared.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        self.notes().say(&format!("phase {phase:?}"));
    }

    /// The store of a node that serves.
    pub(super) fn store(&self, node: u64) -> Option<SimStore> {
        self.nodes().get(&node)?.store.clone()
    }

    pub(super) fn stores(&self) -> Vec<(u64, SimStore)> {
        let nodes = self.nodes();
        let up = nodes
            .iter()
            .filter_map(|(id, node)| Some((*id, node.store.clone()?)));
        up.collect()
    }

    pub(super) fn standing(&self, node: u64) -> Standing {
        self.nodes()
            .get(&node)
            .map_or(Standing::Down, |node| node.standing)
    }

    pub(super) fn disk(&self, node: u64) -> Option<SimulatedDisk> {
        Some(self.nodes().get(&node)?.disk.clone())
    }

    /// Starts a node that is down.
    pub(super) fn start(&self, id: u64) {
        let Some((disk, life, rate)) = self.begin_life(id) else {
            return;
        };
        simulation::begin(id, rate, Steps::Disturbed);
        self.notes().say(&format!("node {id} starts, life {life}"));
        let net = self.net().clone();
        let started = NodeRt::spawn_on(id, async move {
            let members = NODES.map(|node| (node, format!("node-{node}:7422")));
            let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let cluster =
                ClusterConfig::new(members, nowhere).unwrap_or_else(|error| panic!("harness: {error}"));
            let config = StoreConfig::in_directory("simulated").node(id);
            Store::start_simulated(config, cluster, &disk, &net).await
        });
        let stage = self.clone();
        drop(NodeRt::spawn(async move {
            match started.await {
                Ok(Ok(store)) => stage.is_up(id, life, store),
                Ok(Err(error)) => stage.did_not_start(id, life, &error),
                // It crashed, or panicked, which is counted.
                Err(_) => {}
            }
        }));
    }

    fn begin_life(&self, id: u64) -> Option<(SimulatedDisk, u64, ClockRate)> {
        let mut nodes = self.nodes();
        let node = nodes
            .get_mut(&id)
            .filter(|node| node.standing == Standing::Down)?;
        node.standing = Standing::Starting;
        node.life += 1;
        let ahead = Duration::from_millis(node.random.below(1_000_000_000));
        let rate = ClockRate { ppm: node.ppm, ahead };
        Some((node.disk.clone(), node.life, rate))
    }

    fn is_up(&self, id: u64, life: u64, store: SimStore) {
        self.notes().say(&format!("node {id} serves"));
        let mut nodes = self.nodes();
        if let Some(node) = nodes.get_mut(&id).filter(|node| node.life == life) {
            node.standing = Standing::Up;
            node.store = Some(store);
        }
    }

    fn did_not_start(&self, id: u64, life: u64, error: &lease_store::StartError) {
        let text = said(error);
        self.notes().say(&format!("node {id} did not start: {text}"));
        // Only a disk that fails may keep a node from starting.
        if !text.contains("simulated disk failed") {
            self.notes().wrong(format!("node {id} did not start: {text}"));
        }
        let current = self.nodes().get(&id).is_some_and(|node| node.life == life);
        if current {
            self.crash(id);
            let stage = self.clone();
            drop(NodeRt::spawn(async move {
                NodeRt::sleep(Duration::from_millis(700)).await;
                stage.start(id);
            }));
        }
    }

    /// Ends a node at once; of what its disk had not synced, a part is lost.
    pub(super) fn crash(&self, id: u64) {
        let (store, disk, kept) = {
            let mut nodes = self.nodes();
            let Some(node) = nodes.get_mut(&id).filter(|node| node.standing != Standing::Down) else {
                return;
            };
            if node.standing == Standing::Starting {
                self.notes().count("crash while starting");
            }
            node.standing = Standing::Down;
            node.life += 1;
            let unsynced = node.disk.unsynced() as u64;
            let kept = node.random.below(unsynced + 1);
            (node.store.take(), node.disk.clone(), kept)
        };
        self.notes().say(&format!("node {id} crashes"));
        simulation::crash(id);
        self.net().detach(id);
        drop(store);
        let before = disk.counts().lost;
        disk.lose_unsynced(usize::try_from(kept).unwrap_or(usize::MAX));
        let lost = disk.counts().lost - before;
        if lost > 0 {
            self.notes().add("records lost at a crash", lost);
        }
    }

    /// Notes who leads by this node's word, and counts changes.
    pub(super) fn heard_of_leader(&self, id: u64, term: u64, leader: Option<u64>) {
        let mut nodes = self.nodes();
        let Some(node) = nodes.get_mut(&id) else { return };
        if leader.is_some() && (node.term, node.leader) != (term, leader) {
            node.term = term;
            node.leader = leader;
            drop(nodes);
            self.notes()
                .say(&format!("node {id} says that {leader:?} leads in term {term}"));
            self.notes().count("leader changed");
        }
    }

    /// Ends everything, so that nothing outlives the run.
    pub(super) fn clear(&self) {
        for id in NODES {
            self.crash(id);
        }
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<u64, Node>> {
        self.shared.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock's error within these bounds, often at one of them.
pub(super) fn skew(random: &mut Random, most_ppm: u32) -> i32 {
    let most = i32::try_from(most_ppm).unwrap_or(i32::MAX);
    match random.below(4) {
        0 => most,
        1 => -most,
        _ => {
            let span = u64::from(most_ppm) * 2 + 1;
            i32::try_from(random.below(span)).unwrap_or_default() - most
        }
    }
}

fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
