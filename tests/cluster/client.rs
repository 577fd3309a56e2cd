//! The client library among three nodes while they change: what it holds, what it waits for, and what it is asking for.

use std::time::Duration;

use fence_client::testing::TestKit;
use fence_client::{AcquireError, FenceClient, Lease, OwnerId};
use lease_core::wire::{LeaseVerb, Reply};
use tests::Client;
use tests::clock::{now, wait_until};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::trio::{NODES, Trio, others};
use crate::waits::wait_until_waiting;

const TTL: Duration = Duration::from_secs(6);
/// Longer than a lease stands without a renewal.
const HELD_FOR: Duration = Duration::from_secs(7);
const WAIT: Duration = Duration::from_secs(120);

/// The clients of one test run here, while the test itself kills nodes.
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// All nodes, this one first.
fn endpoints(trio: &Trio, first: u64) -> String {
    let [second, third] = others(first);
    let addresses = [first, second, third].map(|id| trio.resp(id).to_string());
    addresses.join(",")
}

type Acquired = JoinHandle<Result<Lease, AcquireError>>;

struct Clients {
    runtime: Runtime,
}

impl Clients {
    fn connect(&self, owner: &str, endpoints: &str, kit: &TestKit) -> FenceClient {
        let builder = FenceClient::builder()
            .owner(OwnerId::new(owner).unwrap())
            .test_kit(kit);
        self.runtime.block_on(builder.connect(endpoints)).unwrap()
    }

    fn ask(&self, client: &FenceClient, name: &str, wait: Duration) -> Acquired {
        let asked = client.lease(name).ttl(TTL).wait(wait);
        self.runtime.spawn(asked.acquire())
    }

    fn granted(&self, acquired: Acquired) -> Lease {
        let limited = async { tokio::time::timeout(WAIT, acquired).await };
        self.runtime.block_on(limited).unwrap().unwrap().unwrap()
    }

    fn release(&self, lease: &Lease) {
        self.runtime.block_on(lease.release()).unwrap();
    }
}

/// The token of whoever holds a lease; nothing if nobody does, or if it cannot be said now.
fn token_of(watcher: &mut Client, name: &str) -> Option<u64> {
    match watcher.call(&format!("LEASE.GET {name}")) {
        Reply::Array(fields) => match fields.get(1) {
            Some(Reply::Integer(token)) => u64::try_from(*token).ok(),
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn a_killed_leader_costs_a_holder_nothing_a_waiter_no_place_and_a_request_under_way_no_second_token() {
    let clients = Clients { runtime: runtime() };
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, _] = others(leader);
    let all = endpoints(&trio, leader);
    let kit = TestKit::new();
    let holder = clients.connect("holder", &all, &TestKit::new());
    let held = clients.granted(clients.ask(&holder, "job", Duration::ZERO));
    let mut watcher = trio.client(here);
    let waiter = clients.connect("waiter", &all, &TestKit::new());
    let first = clients.ask(&waiter, "job", WAIT);
    wait_until_waiting(&mut watcher, "job", 1);
    let behind = clients.connect("behind", &trio.resp(here).to_string(), &TestKit::new());
    let second = clients.ask(&behind, "job", WAIT);
    wait_until_waiting(&mut watcher, "job", 2);
    // Granted by the leader, and it dies before the answer is in.
    let asking = clients.connect("asking", &all, &kit);
    let gate = kit.hold_next_answer(LeaseVerb::Acquire);
    let under_way = clients.ask(&asking, "other", Duration::ZERO);
    clients.runtime.block_on(gate.reached());
    let granted = wait_until("it is granted", || token_of(&mut watcher, "other"));

    let killed_at = now();
    trio.kill(leader);
    kit.lose_leader();
    gate.open();
    kit.elect_leader();
    let answered = clients.granted(under_way);
    assert_eq!(
        answered.token().get(),
        granted,
        "the same grant, at the new leader"
    );
    wait_until("the lease was held for longer than its ttl", || {
        assert!(held.is_valid(), "lost: {:?}", held.renewal_failure());
        (killed_at.elapsed() > HELD_FOR).then_some(())
    });
    wait_until_waiting(&mut watcher, "job", 2);
    assert_eq!(token_of(&mut watcher, "job"), Some(held.token().get()));

    clients.release(&held);
    let next = clients.granted(first);
    assert!(next.token() > held.token());
    clients.release(&next);
    let last = clients.granted(second);
    assert!(last.token() > next.token());
    clients.release(&last);
    clients.release(&answered);
}

#[test]
fn a_wait_at_a_leader_that_stands_still_goes_on_in_its_place_elsewhere() {
    let clients = Clients { runtime: runtime() };
    let trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, there] = others(leader);
    let mut watcher = trio.client(here);
    let holder = clients.connect("holder", &endpoints(&trio, here), &TestKit::new());
    let held = clients.granted(clients.ask(&holder, "job", Duration::ZERO));
    let waiter = clients.connect("waiter", &endpoints(&trio, leader), &TestKit::new());
    let first = clients.ask(&waiter, "job", WAIT);
    wait_until_waiting(&mut watcher, "job", 1);
    let behind = clients.connect("behind", &trio.resp(there).to_string(), &TestKit::new());
    let second = clients.ask(&behind, "job", WAIT);
    wait_until_waiting(&mut watcher, "job", 2);

    trio.pause(leader);
    let stopped_at = now();
    trio.leader_among(&[here, there]);
    // Longer than a cluster keeps the places of a node that it hears nothing of.
    wait_until("the lease was held meanwhile", || {
        assert!(held.is_valid(), "lost: {:?}", held.renewal_failure());
        (stopped_at.elapsed() > Duration::from_secs(9)).then_some(())
    });
    wait_until_waiting(&mut watcher, "job", 2);
    clients.release(&held);
    let next = clients.granted(first);
    assert!(!second.is_finished(), "out of turn");
    clients.release(&next);
    let last = clients.granted(second);
    assert!(last.token() > next.token() && next.token() > held.token());
    trio.resume(leader);
    clients.release(&last);
}
