//! The faults of a run, by its seed: each begins at some time, lasts for a while, and is undone.

use std::time::Duration;

use lease_store::peers::memory::{Link, Passage};
use lease_store::raft::simulated::{DiskBehaviour, Syncs};
use lease_store::runtime::AsyncRuntime as _;
use lease_store::simulation::{self, NodeRt};

use super::run::CLIENTS_FROM;
use super::stage::{NODES, Phase, Stage, Standing};
use crate::random::Random;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Crash,
    AllDown,
    PauseNode,
    PauseClient,
    Isolate,
    CutOneWay,
    CutPair,
    SlowLinks,
    LossyLinks,
    SlowDisk,
    StalledDisk,
    FailedDisk,
    HandOver,
}

/// Each as often as it stands here.
const FAULTS: [Fault; 18] = [
    Fault::Crash,
    Fault::Crash,
    Fault::AllDown,
    Fault::PauseNode,
    Fault::PauseNode,
    Fault::PauseClient,
    Fault::PauseClient,
    Fault::Isolate,
    Fault::Isolate,
    Fault::CutOneWay,
    Fault::CutPair,
    Fault::SlowLinks,
    Fault::LossyLinks,
    Fault::SlowDisk,
    Fault::StalledDisk,
    Fault::FailedDisk,
    Fault::HandOver,
    Fault::HandOver,
];

/// Messages between nodes in the ordinary case.
pub(super) const USUAL_LINK: Link = Link {
    passage: Passage::Open,
    delay_min: Duration::from_micros(100),
    delay_max: Duration::from_millis(2),
    lost_per_mille: 0,
};

/// Begins faults until the phase of safety is over.
pub(super) async fn run(stage: Stage, mut random: Random, clients: u32) {
    // How much goes wrong differs from run to run: some have long quiet times.
    let pause_most = *random.choose(&[500, 1_500, 3_000, 6_000]);
    if random.percent(75) {
        // The cluster may form in peace.
        NodeRt::sleep(Duration::from_millis(1_500)).await;
    }
    loop {
        let pause = Duration::from_millis(50 + random.below(pause_most));
        NodeRt::sleep(pause).await;
        if stage.phase() != Phase::Safety {
            return;
        }
        let fault = *random.choose(&FAULTS);
        let one = One {
            stage: stage.clone(),
            random: Random::new(random.bits()),
            clients,
        };
        drop(NodeRt::spawn(one.happen(fault)));
    }
}

/// One fault.
struct One {
    stage: Stage,
    random: Random,
    clients: u32,
}

impl One {
    async fn happen(mut self, fault: Fault) {
        self.stage.notes().say(&format!("fault {fault:?}"));
        if fault != Fault::PauseClient {
            self.stage.notes().fault_on();
        }
        match fault {
            Fault::Crash => self.crash().await,
            Fault::AllDown => self.all_down().await,
            Fault::PauseNode => self.pause_node().await,
            Fault::PauseClient => self.pause_client().await,
            Fault::Isolate => self.isolate().await,
            Fault::CutOneWay => self.cut_one_way().await,
            Fault::CutPair => self.cut_pair().await,
            Fault::SlowLinks => self.slow_links().await,
            Fault::LossyLinks => self.lossy_links().await,
            Fault::SlowDisk => self.slow_disk().await,
            Fault::StalledDisk => self.stalled_disk().await,
            Fault::FailedDisk => self.failed_disk().await,
            Fault::HandOver => self.hand_over().await,
        }
        if fault != Fault::PauseClient {
            self.stage.notes().fault_off();
        }
    }

    fn node(&mut self) -> u64 {
        // Often the leader: what happens to it matters most.
        let stores = self.stage.stores();
        let leader = stores.iter().find_map(|(_, store)| store.leader());
        match leader {
            Some(leader) if self.random.percent(50) => leader,
            _ => *self.random.choose(&NODES),
        }
    }

    fn span(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_millis(least_ms + self.random.below(most_ms - least_ms))
    }

    async fn crash(&mut self) {
        let node = self.node();
        self.stage.notes().count("node crash");
        self.stage.crash(node);
        let away = self.span(5, 2_500);
        NodeRt::sleep(away).await;
        self.stage.start(node);
        if self.random.percent(20) {
            let early = self.span(1, 400);
            NodeRt::sleep(early).await;
            if self.stage.standing(node) == Standing::Starting {
                self.stage.crash(node);
                let again = self.span(5, 500);
                NodeRt::sleep(again).await;
                self.stage.start(node);
            }
        }
    }

    async fn all_down(&mut self) {
        self.stage.notes().count("all nodes down");
        for node in NODES {
            self.stage.crash(node);
            let between = self.span(0, 20);
            NodeRt::sleep(between).await;
        }
        for node in NODES {
            let away = self.span(5, 800);
            NodeRt::sleep(away).await;
            self.stage.start(node);
        }
    }

    async fn pause_node(&mut self) {
        let node = self.node();
        self.stage.notes().count("node pause");
        simulation::pause(node);
        let stands_still = self.span(100, 3_500);
        NodeRt::sleep(stands_still).await;
        simulation::resume(node);
    }

    async fn pause_client(&mut self) {
        let client = CLIENTS_FROM + self.random.below(u64::from(self.clients));
        self.stage.notes().count("client pause");
        simulation::pause(client);
        let stands_still = self.span(50, 4_000);
        NodeRt::sleep(stands_still).await;
        simulation::resume(client);
    }

    async fn isolate(&mut self) {
        let node = self.node();
        self.stage.notes().count("isolated");
        let others: Vec<u64> = NODES.into_iter().filter(|other| *other != node).collect();
        for other in &others {
            self.stage.net().cut(node, *other);
            self.stage.net().cut(*other, node);
        }
        let lasts = self.span(200, 3_500);
        NodeRt::sleep(lasts).await;
        for other in others {
            self.stage.net().mend(node, other);
            self.stage.net().mend(other, node);
        }
    }

    async fn cut_one_way(&mut self) {
        self.stage.notes().count("cut one way");
        let node = self.node();
        let outward = self.random.percent(50);
        let both = self.random.percent(50);
        let others: Vec<u64> = NODES.into_iter().filter(|other| *other != node).collect();
        let ways: Vec<(u64, u64)> = others
            .into_iter()
            .take(if both { 2 } else { 1 })
            .map(|other| if outward { (node, other) } else { (other, node) })
            .collect();
        for (from, to) in &ways {
            self.stage.net().cut(*from, *to);
        }
        let lasts = self.span(200, 3_500);
        NodeRt::sleep(lasts).await;
        for (from, to) in ways {
            self.stage.net().mend(from, to);
        }
    }

    async fn cut_pair(&mut self) {
        self.stage.notes().count("cut both ways");
        let node = self.node();
        let other = *self.random.choose(&NODES);
        self.stage.net().cut(node, other);
        self.stage.net().cut(other, node);
        let lasts = self.span(200, 3_500);
        NodeRt::sleep(lasts).await;
        self.stage.net().mend(node, other);
        self.stage.net().mend(other, node);
    }

    async fn slow_links(&mut self) {
        self.stage.notes().count("slow links");
        let most = *self.random.choose(&[20, 60, 200, 600]);
        let slow = Link {
            delay_max: Duration::from_millis(most),
            ..USUAL_LINK
        };
        self.bad_links(slow).await;
    }

    async fn lossy_links(&mut self) {
        self.stage.notes().count("lossy links");
        let lossy = Link {
            lost_per_mille: *self.random.choose(&[20, 100, 400]),
            delay_max: Duration::from_millis(20),
            ..USUAL_LINK
        };
        self.bad_links(lossy).await;
    }

    async fn bad_links(&mut self, link: Link) {
        let node = self.node();
        let everywhere = self.random.percent(40);
        if everywhere {
            self.stage.net().set_every_link(link);
        } else {
            for other in NODES {
                self.stage.net().set_link(node, other, link);
            }
        }
        let lasts = self.span(300, 4_000);
        NodeRt::sleep(lasts).await;
        if everywhere {
            self.stage.net().set_every_link(USUAL_LINK);
        } else {
            for other in NODES {
                self.stage.net().set_link(node, other, USUAL_LINK);
            }
        }
    }

    async fn slow_disk(&mut self) {
        self.stage.notes().count("slow disk");
        let most = *self.random.choose(&[20, 80, 200]);
        let slow = DiskBehaviour {
            sync_max: Duration::from_millis(most),
            ..DiskBehaviour::default()
        };
        let node = self.node();
        let lasts = self.span(300, 4_000);
        self.disk_behaves(node, slow, lasts).await;
    }

    async fn stalled_disk(&mut self) {
        self.stage.notes().count("stalled disk");
        let span = self.span(300, 3_000);
        let stalled = DiskBehaviour {
            sync_min: span,
            sync_max: span + Duration::from_millis(1),
            syncs: Syncs::Succeed,
        };
        let node = self.node();
        let begins = self.span(10, 300);
        self.disk_behaves(node, stalled, begins).await;
        // The sync that has begun lasts on.
        NodeRt::sleep(span).await;
    }

    async fn failed_disk(&mut self) {
        self.stage.notes().count("failed disk");
        let broken = DiskBehaviour {
            syncs: Syncs::Fail,
            ..DiskBehaviour::default()
        };
        let node = self.node();
        let lasts = self.span(50, 1_500);
        self.disk_behaves(node, broken, lasts).await;
    }

    async fn disk_behaves(&mut self, node: u64, behaviour: DiskBehaviour, lasts: Duration) {
        let Some(disk) = self.stage.disk(node) else { return };
        disk.behave(behaviour);
        NodeRt::sleep(lasts).await;
        disk.behave(DiskBehaviour::default());
    }

    async fn hand_over(&mut self) {
        let stores = self.stage.stores();
        for (node, store) in stores {
            if store.leader() != Some(node) {
                continue;
            }
            let to = *self.random.choose(&NODES);
            if to != node && store.hand_leadership_to(to).await {
                self.stage.notes().count("leadership handed over");
            }
        }
        NodeRt::sleep(Duration::from_millis(500)).await;
    }
}

/// Undoes all that may still be in force.
pub(super) fn heal(stage: &Stage, clients: u32) {
    stage.net().set_every_link(USUAL_LINK);
    for node in NODES {
        if let Some(disk) = stage.disk(node) {
            disk.behave(DiskBehaviour::default());
        }
        simulation::resume(node);
        stage.start(node);
    }
    for client in 0..u64::from(clients) {
        simulation::resume(CLIENTS_FROM + client);
    }
}
