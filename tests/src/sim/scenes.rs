//! Runs in which one thing is done on purpose, and looked at closely: what the faults of a seed meet by chance.

use std::collections::BTreeMap;
use std::time::Duration;

use lease_core::Database;
use lease_core::wire::{AcquireCommand, AcquireReply};
use lease_store::peers::Kind;
use lease_store::runtime::{AsyncRuntime as _, Rt as _};
use lease_store::simulation::{self, NodeJoinHandle, NodeRt};

use super::client::{lease_name, millis, owner_id, ttl_of};
use super::note::now;
use super::stage::{NODES, SimStore, Stage};

/// Long enough for an election that is split a few times.
const LED_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longer than any scene.
const LONG: Duration = Duration::from_secs(600);
/// The lease that is waited for.
const AWAITED: &str = "awaited";
/// What each caller in line takes it for.
const TURN: Duration = Duration::from_secs(1);
/// Callers parked at a node that dies: one after the other they would hold the lease for this many turns.
const GHOSTS: u64 = 15;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// A follower stands still for a minute of changes, another one starts anew with a clock that shows another hour.
    LateFollower,
    /// The leader dies, and a node that lacks what was acknowledged stands for election beside one that has it.
    OldLog,
    /// A node dies with many callers in line, and another caller stands behind them.
    DeadNode,
    /// The same, and the node is back at once, in its next life.
    NextLife,
    /// A leader that is cut off is read, while another one leads.
    CutOffReads,
}

pub(super) async fn act(scene: Scene, stage: &Stage) {
    match scene {
        Scene::LateFollower => late_follower(stage).await,
        Scene::OldLog => old_log(stage).await,
        Scene::DeadNode => ghosts(stage, None, Duration::from_secs(8)).await,
        Scene::NextLife => ghosts(stage, Some(Duration::from_millis(300)), Duration::from_secs(4)).await,
        Scene::CutOffReads => cut_off_reads(stage).await,
    }
}

async fn late_follower(stage: &Stage) {
    let Some((leader, [late, anew])) = leader_and_others(stage).await else {
        return;
    };
    simulation::pause(late);
    let mut held = BTreeMap::new();
    for turn in 0..60_u64 {
        let (name, short) = (format!("lease-{turn}"), format!("short-{turn}"));
        let ttl = if turn.is_multiple_of(3) { TURN } else { LONG };
        let taken = take(stage, leader, &name, ttl).await;
        let also = take(stage, leader, &short, Duration::from_millis(300)).await;
        let (Some(token), Some(_)) = (taken, also) else {
            return;
        };
        if ttl == LONG {
            held.insert(name, token);
        }
        if turn == 40 {
            stage.crash(anew);
            NodeRt::sleep(Duration::from_millis(100)).await;
            stage.start(anew);
        }
        NodeRt::sleep(Duration::from_secs(1)).await;
    }
    let snapshots = stage.net().served(late, Kind::SnapshotEnd);
    simulation::resume(late);
    if !wait_until(LED_WITHIN, || all_alike(stage)).await {
        let prints = stage
            .stores()
            .into_iter()
            .map(|(node, store)| (node, store.fingerprint()));
        let prints: Vec<_> = prints.collect();
        return stage.notes().wrong(format!("the machines stand at {prints:?}"));
    }
    if stage.net().served(late, Kind::SnapshotEnd) == snapshots {
        stage
            .notes()
            .wrong("the late follower needed no snapshot".to_owned());
    }
    all_see(stage, &held).await;
}

async fn old_log(stage: &Stage) {
    let mut held = BTreeMap::new();
    for round in 0..4 {
        let Some((leader, [old, new])) = leader_and_others(stage).await else {
            return;
        };
        for other in [leader, new] {
            stage.net().cut(old, other);
            stage.net().cut(other, old);
        }
        for number in 0..12 {
            let name = format!("lease-{round}-{number}");
            let Some(token) = take(stage, leader, &name, LONG).await else {
                return;
            };
            held.insert(name, token);
        }
        // It stands for election, again and again, and nobody hears it.
        NodeRt::sleep(Duration::from_secs(3)).await;
        stage.crash(leader);
        for other in [leader, new] {
            stage.net().mend(old, other);
            stage.net().mend(other, old);
        }
        let elected = || stage.store(new).and_then(|store| store.leader());
        wait_until(LED_WITHIN, || elected().is_some_and(|next| next != leader)).await;
        let next = elected();
        if next != Some(new) {
            stage.notes().wrong(format!(
                "node {new} has all that was acknowledged and node {old} has not, and {next:?} leads"
            ));
        }
        all_see(stage, &held).await;
        stage.start(leader);
    }
}

/// `back_after`: when the node is started again, if it is. `within`: by when whoever stands behind its callers must be
/// granted.
async fn ghosts(stage: &Stage, back_after: Option<Duration>, within: Duration) {
    let Some((leader, [dies, _])) = leader_and_others(stage).await else {
        return;
    };
    if take(stage, leader, AWAITED, 2 * TURN).await.is_none() {
        return;
    }
    let in_line = |count: u64| {
        let stage = stage.clone();
        async move {
            let stands = || {
                stage
                    .store(leader)
                    .is_some_and(|store| store.stats().waiters == count)
            };
            wait_until(TURN, stands).await
        }
    };
    for ghost in 0..GHOSTS {
        drop(wait_in_line(stage, dies, &format!("ghost-{ghost}")));
    }
    let ghosts_stand = in_line(GHOSTS).await;
    let behind = wait_in_line(stage, leader, "behind");
    if !ghosts_stand || !in_line(GHOSTS + 1).await {
        return stage.notes().wrong("not all callers stand in line".to_owned());
    }
    let died_at = now();
    stage.crash(dies);
    if let Some(back_after) = back_after {
        NodeRt::sleep(back_after).await;
        stage.start(dies);
    }
    let granted = behind.await;
    let took = Duration::from_micros(now().saturating_sub(died_at));
    if !matches!(granted, Ok(Some(AcquireReply::Granted { .. }))) || took > within {
        stage.notes().wrong(format!(
            "whoever stands behind the callers of a dead node gets {granted:?} after {took:?}"
        ));
    }
}

async fn cut_off_reads(stage: &Stage) {
    for round in 0..2_u64 {
        let Some((leader, others)) = leader_and_others(stage).await else {
            return;
        };
        let name = format!("read-{round}");
        for other in others {
            stage.net().cut(leader, other);
            stage.net().cut(other, leader);
        }
        let elected = || {
            let stores = stage.stores();
            let led = stores
                .iter()
                .find_map(|(_, store)| store.leader().filter(|next| *next != leader));
            led.filter(|next| stage.store(*next).and_then(|store| store.leader()) == Some(*next))
        };
        wait_until(LED_WITHIN, || elected().is_some()).await;
        let Some(token) = take(stage, elected().unwrap_or(leader), &name, LONG).await else {
            return;
        };
        for _ in 0..20 {
            expect_shown(stage, &name, token, read(stage, leader, &name).await);
        }
        for other in others {
            stage.net().mend(leader, other);
            stage.net().mend(other, leader);
        }
    }
}

/// Who holds a lease, as a node shows it; `None` if it does not answer.
type Shown = Option<Option<u64>>;

fn read(stage: &Stage, node: u64, name: &str) -> NodeJoinHandle<Shown> {
    let (store, lease) = (stage.store(node), lease_name(name));
    NodeRt::spawn_on(node, async move {
        let seen = store?.get(Database::ZERO, lease).await.ok()?;
        Some(seen.lease.map(|lease| lease.token.get()))
    })
}

/// A read shows the holder, or has no answer.
fn expect_shown<E>(stage: &Stage, name: &str, token: u64, shown: Result<Shown, E>) {
    let Ok(Some(shown)) = shown else { return };
    stage.notes().count("read of a stale leader answered");
    if shown != Some(token) {
        stage.notes().wrong(format!(
            "{name} is held under token {token}, and a read shows {shown:?}"
        ));
    }
}

/// A caller that waits for [`AWAITED`] at a node.
fn wait_in_line(stage: &Stage, node: u64, owner: &str) -> NodeJoinHandle<Option<AcquireReply>> {
    let command = AcquireCommand {
        wait_ms: millis(LONG),
        ..command(AWAITED, owner, TURN)
    };
    let store = stage.store(node);
    NodeRt::spawn_on(
        node,
        async move { store?.acquire(Database::ZERO, command).await.ok() },
    )
}

/// Takes a lease, and notes it if that is refused.
async fn take(stage: &Stage, node: u64, name: &str, ttl: Duration) -> Option<u64> {
    let store = stage.store(node)?;
    let command = command(name, "scene", ttl);
    let asked = NodeRt::spawn_on(node, async move { store.acquire(Database::ZERO, command).await });
    let answer = asked.await;
    if let Ok(Ok(AcquireReply::Granted { token, .. })) = answer {
        return Some(token.get());
    }
    stage.notes().wrong(format!("{name} at node {node}: {answer:?}"));
    None
}

fn command(name: &str, owner: &str, ttl: Duration) -> AcquireCommand {
    AcquireCommand {
        name: lease_name(name),
        owner: owner_id(owner),
        ttl: ttl_of(ttl),
        wait_ms: 0,
        request: None,
        metadata: None,
    }
}

/// Every node that is up shows these holders.
async fn all_see(stage: &Stage, held: &BTreeMap<String, u64>) {
    for (node, store) in stage.stores() {
        for (name, token) in held {
            let (store, lease) = (store.clone(), lease_name(name));
            let seen = NodeRt::spawn_on(node, async move { store.get(Database::ZERO, lease).await }).await;
            let shown = match &seen {
                Ok(Ok(seen)) => seen.lease.as_ref().map(|lease| lease.token.get()),
                Ok(Err(_)) | Err(_) => None,
            };
            if shown != Some(*token) {
                stage.notes().wrong(format!(
                    "{name} was granted under token {token}, and node {node} shows {seen:?}"
                ));
            }
        }
    }
}

/// The leader of whom all nodes are sure, and the two others.
async fn leader_and_others(stage: &Stage) -> Option<(u64, [u64; 2])> {
    wait_until(LED_WITHIN, || leader(&stage.stores()).is_some()).await;
    let leader = leader(&stage.stores());
    let others: Vec<u64> = NODES.into_iter().filter(|node| Some(*node) != leader).collect();
    let found = leader.zip(others.try_into().ok());
    if found.is_none() {
        stage.notes().wrong(format!("nobody leads within {LED_WITHIN:?}"));
    }
    found
}

fn leader(stores: &[(u64, SimStore)]) -> Option<u64> {
    let first = stores.first()?.1.leader()?;
    let sure = stores.len() == NODES.len() && stores.iter().all(|(_, store)| store.leader() == Some(first));
    sure.then_some(first)
}

fn all_alike(stage: &Stage) -> bool {
    let prints: Vec<_> = stage
        .stores()
        .iter()
        .map(|(_, store)| store.fingerprint())
        .collect();
    prints.len() == NODES.len() && prints.iter().all(|print| Some(print) == prints.first())
}

async fn wait_until(within: Duration, holds: impl Fn() -> bool) -> bool {
    let began = now();
    while now().saturating_sub(began) < 1_000 * millis(within) {
        if holds() {
            return true;
        }
        NodeRt::sleep(LOOK_EVERY).await;
    }
    false
}
