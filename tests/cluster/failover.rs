//! The client library among three nodes: its lease outlives the node that it talks to, which leads.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fence_client::FenceClient;
use tests::clock::{SOON, now, wait_until};
use tokio::sync::oneshot;

use crate::trio::{NODES, Trio, others};
use crate::waits::wait_until_waiting;

const TTL: Duration = Duration::from_secs(6);
/// How long the lease is held after a kill: longer than it stands without a renewal.
const HELD_FOR: Duration = Duration::from_secs(7);

/// A client on a runtime and a thread of its own: it takes the lease `job`, and holds it until it is told to release it.
struct Holder {
    token: Receiver<u64>,
    release: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Holder {
    fn start(endpoints: String) -> Self {
        let (release, released) = oneshot::channel();
        let (granted, token) = channel();
        let running = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(hold(&endpoints, &granted, released));
        });
        Self {
            token,
            release,
            running,
        }
    }

    fn token(&self) -> u64 {
        self.token.recv_timeout(SOON).unwrap()
    }

    fn release(self) {
        self.release.send(()).unwrap();
        self.running.join().unwrap();
    }
}

async fn hold(endpoints: &str, granted: &Sender<u64>, released: oneshot::Receiver<()>) {
    let client = FenceClient::connect(endpoints).await.unwrap();
    let asked = client.lease("job").ttl(TTL).wait(Duration::from_secs(120));
    let lease = asked.acquire().await.unwrap();
    granted.send(lease.token().get()).unwrap();
    // Lost, it is dropped, and the test fails.
    lease.run(released).await.unwrap().unwrap();
    lease.release().await.unwrap();
}

#[test]
fn a_lease_of_the_client_outlives_the_leader_that_it_talks_to_and_so_does_a_wait() {
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [second, third] = others(leader);
    let endpoints = [leader, second, third]
        .map(|id| trio.resp(id).to_string())
        .join(",");
    let holder = Holder::start(endpoints.clone());
    let token = holder.token();
    let waiter = Holder::start(endpoints);
    wait_until_waiting(&mut trio.client(second), "job", 1);

    // Twice: the second time the clients may be anywhere.
    for _ in 0..2 {
        let leader = trio.leader();
        trio.kill(leader);
        let [one, other] = others(leader);
        trio.leader_among(&[one, other]);
        let (mut watcher, killed_at) = (trio.client(one), now());
        wait_until("the lease was held for longer than its ttl", || {
            let holds = watcher.say("LEASE.GET job");
            let down = holds.starts_with("-CLUSTERDOWN");
            assert!(down || holds.contains(&format!(":{token}")), "{holds}");
            (killed_at.elapsed() > HELD_FOR).then_some(())
        });
        trio.start(leader);
    }
    holder.release();
    let next = waiter.token();
    assert!(next > token);
    waiter.release();
}
