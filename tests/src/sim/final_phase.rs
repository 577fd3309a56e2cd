//! The second phase: faults are healed, clients are done. Everything must get going within a stated time, and then come
//! to rest with nothing left over.

use std::time::Duration;

use lease_core::Database;
use lease_core::wire::{AcquireCommand, AcquireReply};
use lease_store::runtime::AsyncRuntime as _;
use lease_store::simulation::NodeRt;

use super::client::{lease_name, millis, owner_id, ttl_of};
use super::note::now;
use super::stage::{NODES, Stage, Standing};
use crate::history::{Op, Outcome, Record};

/// Within this all nodes serve: the longest pause before a node is started again, a replay, and an election that is
/// split a few times.
const SERVE_WITHIN: Duration = Duration::from_secs(15);
/// Within this each lease can be had again: the longest ttl and wait, and what a forgotten caller costs.
const GRANT_WITHIN: Duration = Duration::from_secs(15);
/// Within this nothing is left over, and all machines are equal.
const REST_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The client of this phase.
const PROCESS: u32 = 9_999;

/// Goes through it, and notes what does not get going.
pub(super) async fn run(stage: &Stage, names: &[String]) {
    if !wait_until(SERVE_WITHIN, || all_up(stage)).await {
        for node in NODES {
            let standing = stage.standing(node);
            stage.notes().say(&format!("node {node} is {standing:?}"));
        }
        stage.notes().wrong(format!(
            "not all nodes serve within {SERVE_WITHIN:?} after the last fault"
        ));
        return;
    }
    for (name, node) in names.iter().zip(NODES.into_iter().cycle()) {
        if !every_lease_can_be_had(stage, node, name).await {
            stage.notes().wrong(format!(
                "{name} cannot be had at node {node} within {GRANT_WITHIN:?}"
            ));
        }
    }
    if !wait_until(REST_WITHIN, || at_rest(stage).is_none()).await {
        let why = at_rest(stage).unwrap_or_default();
        stage.notes().wrong(format!(
            "the cluster does not come to rest within {REST_WITHIN:?}: {why}"
        ));
    }
}

fn all_up(stage: &Stage) -> bool {
    let up = NODES.into_iter().all(|node| stage.standing(node) == Standing::Up);
    up && !stage.notes().may_be_back()
}

async fn every_lease_can_be_had(stage: &Stage, node: u64, name: &str) -> bool {
    let began = now();
    let ttl = Duration::from_millis(200);
    for attempt in 0.. {
        let Some(store) = stage.store(node) else {
            return false;
        };
        let command = AcquireCommand {
            name: lease_name(name),
            owner: owner_id(&format!("last-{node}-{attempt}")),
            ttl: ttl_of(ttl),
            wait_ms: millis(GRANT_WITHIN),
            request: None,
            metadata: None,
        };
        let call = now();
        let asked = store.acquire(Database::ZERO, command);
        let granted = NodeRt::timeout(GRANT_WITHIN, asked).await;
        if let Ok(Ok(AcquireReply::Granted {
            token,
            remaining_ms,
            waited_ms,
        })) = granted
        {
            stage.notes().record(Record {
                process: PROCESS,
                op: Op::Acquire,
                resource: name.to_owned(),
                request_id: None,
                call,
                returned: Some(now()),
                outcome: Outcome::Ok,
                token: Some(token.get()),
                ttl_ms: Some(waited_ms + remaining_ms.unwrap_or_default()),
            });
            return true;
        }
        stage.notes().say(&format!("{name} at node {node}: {granted:?}"));
        if now().saturating_sub(began) > 1_000 * millis(GRANT_WITHIN) {
            return false;
        }
        NodeRt::sleep(LOOK_EVERY).await;
    }
    false
}

/// What is left over, or differs between the nodes.
fn at_rest(stage: &Stage) -> Option<String> {
    let stores = stage.stores();
    let mut prints = Vec::new();
    for (node, store) in &stores {
        let (stats, parked) = (store.stats(), store.parked_callers());
        if stats.leases + stats.waiters > 0 || parked > 0 {
            return Some(format!("node {node} has {stats:?} and {parked} parked callers"));
        }
        prints.push(store.fingerprint());
    }
    let first = prints.first()?;
    let equal = prints.iter().all(|print| print == first);
    (!equal).then(|| format!("the machines stand at {prints:?}"))
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
