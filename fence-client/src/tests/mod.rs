//! The client against the real lease machine, without sockets in paused time and over TCP, and against the real store,
//! embedded and as a server.
//!
//! Names begin with the case or scenario that they stand for.

mod acquire_cases;
mod cluster_cases;
mod fake_server;
mod hold_cases;
mod machine_store;
mod real_store;
mod release_cases;
mod tcp_cases;
mod two_clients;

use std::sync::Arc;
use std::time::Duration;

use lease_core::wire::LeaseVerb;

use crate::builder::ClientBuilder;
use crate::client::FenceClient;
use crate::testing::{ManualClock, TestKit};
use machine_store::{CountedFrom, Direct, MachineStore};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A client with its own clock and faults.
struct Side {
    client: FenceClient,
    kit: TestKit,
    clock: ManualClock,
}

impl Side {
    fn new(store: &Arc<MachineStore>) -> Self {
        Self::with(store, Duration::ZERO, |builder| builder)
    }

    fn with(
        store: &Arc<MachineStore>,
        latency_max: Duration,
        settings: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        Self::counting(store, CountedFrom::Send, latency_max, settings)
    }

    fn counting(
        store: &Arc<MachineStore>,
        counted_from: CountedFrom,
        latency_max: Duration,
        settings: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        let clock = ManualClock::new();
        let kit = TestKit::with_clock(&clock);
        let builder = settings(FenceClient::builder().test_kit(&kit));
        let shown = builder.clock();
        let direct = Direct {
            store: Arc::clone(store),
            clock: shown.clone(),
            latency_max,
            counted_from,
        };
        let client = builder.assemble(Arc::new(direct), shown).unwrap();
        Self { client, kit, clock }
    }

    fn renewals_sent(&self) -> u64 {
        self.kit.sent(LeaseVerb::RenewMany)
    }
}

/// Waits for what other tasks do; in paused time the clock goes on meanwhile.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(ms(1)).await;
    }
    panic!("never: {what}");
}
