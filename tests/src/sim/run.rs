//! One run of one seed.

use std::collections::hash_map::DefaultHasher;
use std::future::Future;
use std::hash::{Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lease_store::runtime::{AsyncRuntime as _, Instant as _, Rt as _};
use lease_store::simulation::{self, Chaos, ClockRate, NodeInstant, NodeRt, Steps};

use super::client::Client;
use super::coverage::Coverage;
use super::faults::{self, USUAL_LINK};
use super::judge::judge;
use super::note::Noted;
use super::scenes::{Scene, act};
use super::stage::{NODES, Phase, Stage, skew};
use super::{final_phase, watch};
use crate::random::Random;

/// The number of the first client's process; nodes are below.
pub(super) const CLIENTS_FROM: u64 = 100;

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How long faults are on, in virtual time.
    pub safety: Duration,
    /// How many clients there are.
    pub clients: u32,
    /// How many names they take.
    pub names: u32,
    /// How much faster or slower than true time any clock may go, in parts per million. Two differ by twice that.
    pub skew_ppm: u32,
    /// Whether anything goes wrong.
    pub trouble: Trouble,
}

/// Whether anything goes wrong in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Faults by the seed.
    Faults,
    /// None.
    None,
}

impl Default for Plan {
    /// The assumed clock-rate error of one in a thousand lies between any two clocks.
    fn default() -> Self {
        Self {
            safety: Duration::from_secs(20),
            clients: 8,
            names: 4,
            skew_ppm: 500,
            trouble: Trouble::Faults,
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// What is wrong; nothing, if all is well.
    pub wrong: Vec<String>,
    /// What was met.
    pub coverage: Coverage,
    /// What happened, a line for each event.
    pub trace: Vec<String>,
    /// A hash of the trace, the history and, if it was recorded, every step of the executor.
    pub hash: u64,
    /// Attempts of clients.
    pub attempts: usize,
}

/// What of a run is recorded beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recording {
    /// Nothing.
    Unrecorded,
    /// Every step of the executor.
    Recorded,
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, plan: &Plan) -> Run {
    run_with(seed, plan, Recording::Unrecorded)
}

/// Runs a seed, with every step of the executor in its hash.
#[must_use]
pub fn run_recorded(seed: u64, plan: &Plan) -> Run {
    run_with(seed, plan, Recording::Recorded)
}

/// Plays a scene, on a seed's timings and clocks.
#[must_use]
pub fn play(seed: u64, scene: Scene) -> Run {
    let mut random = Random::new(seed);
    let chaos = chaos(Trouble::Faults, &mut random);
    let simulation = NodeRt::with_seed(random.bits(), chaos);
    simulate(seed, simulation, async {
        let stage = raise(seed, &Plan::default(), &mut random);
        act(scene, &stage).await;
        end(&stage)
    })
}

fn run_with(seed: u64, plan: &Plan, steps: Recording) -> Run {
    let mut random = Random::new(seed);
    let chaos = chaos(plan.trouble, &mut random);
    let mut simulation = NodeRt::with_seed(random.bits(), chaos);
    if steps == Recording::Recorded {
        simulation.record_trace();
    }
    simulate(seed, simulation, scenario(seed, plan, &mut random))
}

fn chaos(trouble: Trouble, random: &mut Random) -> Chaos {
    match trouble {
        Trouble::None => Chaos::NONE,
        Trouble::Faults => Chaos {
            again_per_mille: u16::try_from(random.below(120)).unwrap_or_default(),
            late_per_mille: u16::try_from(random.below(12)).unwrap_or_default(),
            late_max: Duration::from_micros(100 + random.below(4_000)),
        },
    }
}

fn simulate(seed: u64, mut simulation: NodeRt, what: impl Future<Output = Noted>) -> Run {
    let ended = catch_unwind(AssertUnwindSafe(|| simulation.block_on(what)));
    let mut noted = ended.unwrap_or_else(|panic| Noted {
        wrong: vec![format!("the simulation cannot go on: {}", text_of(&*panic))],
        ..Noted::default()
    });
    let mut hasher = DefaultHasher::new();
    noted.trace.hash(&mut hasher);
    for step in simulation.take_trace() {
        step.hash(&mut hasher);
    }
    let wrong = judge(&mut noted);
    Run {
        seed,
        wrong,
        coverage: noted.coverage,
        trace: noted.trace,
        hash: hasher.finish(),
        attempts: noted.records.len(),
    }
}

/// Starts the nodes, one a little after the other, and looks at them from now on.
fn raise(seed: u64, plan: &Plan, random: &mut Random) -> Stage {
    let stage = Stage::new(seed, plan.skew_ppm);
    stage.net().set_every_link(USUAL_LINK);
    for node in NODES {
        let late = random.below(400);
        let stage = stage.clone();
        drop(NodeRt::spawn(async move {
            NodeRt::sleep(Duration::from_millis(late)).await;
            stage.start(node);
        }));
    }
    stage.notes().fault_on();
    stage.notes().fault_off();
    drop(NodeRt::spawn(watch::run(stage.clone())));
    stage
}

async fn scenario(seed: u64, plan: &Plan, random: &mut Random) -> Noted {
    let stage = raise(seed, plan, random);
    drop(NodeRt::spawn(watch::outages(stage.clone())));
    let clients = start_clients(&stage, plan, random);
    if plan.trouble == Trouble::Faults {
        let faults = faults::run(stage.clone(), Random::new(random.bits()), plan.clients);
        drop(NodeRt::spawn(faults));
    }
    NodeRt::sleep(plan.safety).await;
    stage.set_phase(Phase::Liveness);
    simulation::set_chaos(Chaos::NONE);
    // Faults that are on undo themselves, unless it is done here before.
    faults::heal(&stage, plan.clients);
    for client in clients {
        // One that panicked is counted.
        drop(client.await);
    }
    faults::heal(&stage, plan.clients);
    let names: Vec<String> = (0..plan.names).map(|name| format!("lease-{name}")).collect();
    final_phase::run(&stage, &names).await;
    for (node, store) in stage.stores() {
        let kind = lease_store::peers::Kind::SnapshotEnd;
        let installed = stage.net().served(node, kind);
        stage.notes().add("snapshot installed", installed);
        drop(store);
    }
    end(&stage)
}

fn end(stage: &Stage) -> Noted {
    if simulation::panics() > 0 {
        stage
            .notes()
            .wrong(format!("{} tasks panicked", simulation::panics()));
    }
    stage.clear();
    stage.notes().take()
}

fn start_clients(stage: &Stage, plan: &Plan, random: &mut Random) -> Vec<simulation::NodeJoinHandle<()>> {
    let client = |id: u32| {
        let process = CLIENTS_FROM + u64::from(id);
        let rate = ClockRate {
            ppm: skew(random, plan.skew_ppm),
            ahead: Duration::from_millis(random.below(1_000_000)),
        };
        simulation::begin(process, rate, Steps::Prompt);
        let (stage, random, names) = (stage.clone(), Random::new(random.bits()), plan.names);
        NodeRt::spawn_on(process, async move {
            let client = Client {
                stage,
                id,
                random,
                ppm: rate.ppm,
                started: NodeInstant::now(),
                requests: 0,
                old: Vec::new(),
                names,
            };
            client.run().await;
        })
    };
    (0..plan.clients).map(client).collect()
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}
