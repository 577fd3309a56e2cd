//! Looks at the nodes all the time: whether their machines are equal, whether one has stopped, whether the cluster is back.

use std::collections::BTreeMap;
use std::time::Duration;

use lease_core::Database;
use lease_core::wire::{AcquireCommand, AcquireReply};
use lease_store::runtime::AsyncRuntime as _;
use lease_store::simulation::NodeRt;

use super::client::{lease_name, owner_id, ttl_of};
use super::stage::{Phase, Stage};

/// How often.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The machine's own check is dearer.
const CHECK_EVERY_LOOKS: u64 = 20;
/// How long a node that has stopped stays down.
const DOWN_AFTER_FAILURE: Duration = Duration::from_millis(900);

/// Looks until the run is over.
pub(super) async fn run(stage: Stage) {
    let mut seen = BTreeMap::new();
    for look in 0_u64.. {
        NodeRt::sleep(LOOK_EVERY).await;
        for (node, store) in stage.stores() {
            if seen.insert(node, store.applied_next()) != Some(store.applied_next()) {
                let print = store.fingerprint();
                stage.notes().fingerprint(node, print.applied_next, print.state);
            }
            let status = store.status();
            stage.heard_of_leader(node, status.term, status.leader);
            if look.is_multiple_of(CHECK_EVERY_LOOKS)
                && let Some(broken) = store.broken()
            {
                stage
                    .notes()
                    .wrong(format!("the machine of node {node}: {broken}"));
            }
            if let Some(failure) = store.failure() {
                end_stopped(&stage, node, &failure);
            }
        }
    }
}

/// A node that has stopped says why and ends, and is started again by whoever runs it.
fn end_stopped(stage: &Stage, node: u64, failure: &lease_store::NodeFailure) {
    let text = format!("{failure:?}");
    stage.notes().say(&format!("node {node} has stopped: {text}"));
    if text.contains("simulated disk failed") {
        stage.notes().count("node stopped by its disk");
    } else {
        stage.notes().wrong(format!("node {node} has stopped: {text}"));
    }
    stage.crash(node);
    let stage = stage.clone();
    drop(NodeRt::spawn(async move {
        NodeRt::sleep(DOWN_AFTER_FAILURE).await;
        stage.start(node);
    }));
}

/// Sees when the cluster serves again after faults.
pub(super) async fn outages(stage: Stage) {
    for probe in 0_u64.. {
        NodeRt::sleep(LOOK_EVERY * 4).await;
        if !stage.notes().may_be_back() {
            continue;
        }
        let stores = stage.stores();
        if stores.len() == super::stage::NODES.len() && all_serve(&stores, probe).await {
            stage.notes().serves_again();
        } else if stage.phase() == Phase::Liveness {
            stage.notes().say("the cluster is not back yet");
        }
    }
}

async fn all_serve(stores: &[(u64, super::stage::SimStore)], probe: u64) -> bool {
    for (node, store) in stores {
        let command = AcquireCommand {
            name: lease_name(&format!("probe-{probe}-{node}")),
            owner: owner_id("probe"),
            ttl: ttl_of(Duration::from_millis(100)),
            wait_ms: 0,
            request: None,
            metadata: None,
        };
        let granted = NodeRt::timeout(Duration::from_secs(2), store.acquire(Database::ZERO, command)).await;
        if !matches!(granted, Ok(Ok(AcquireReply::Granted { .. }))) {
            return false;
        }
    }
    true
}
