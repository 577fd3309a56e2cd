//! Redis clients and lock libraries that are written in Rust: each takes locks, contends for them, extends, loses and
//! gives them back, at one node and through a follower of three, whose leader is killed while they hold some.
//!
//! Those of other languages: `scripts/clients`.

mod fred;
mod redis_rs;
mod rslock;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lease_core::wire::Reply;
use tests::Launch;
use tests::clock::{Deadline, SOON, wait_until};
use tokio::runtime::Runtime;

use crate::trio::{NODES, Trio, others};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);
/// So short that it runs out while one waits for it.
const SHORT: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_millis(5);

const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const EXTEND: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// A key that nobody else uses.
fn key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("lock:{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap()
}

/// Looks again and again until there is something.
async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = Deadline::after(SOON);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(deadline.left().is_some(), "waited in vain until {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Everything that does not need a leader to die.
async fn use_locks(address: SocketAddr) {
    for protocol in redis_rs::PROTOCOLS {
        redis_rs::use_locks(address, protocol).await;
    }
    for version in fred::VERSIONS {
        fred::use_locks(address, version).await;
    }
    rslock::use_locks(address).await;
}

#[test]
fn redis_rs_fred_and_rslock_take_extend_lose_and_release_locks_at_one_node() {
    let node = Launch::in_memory().start();
    runtime().block_on(use_locks(node.resp()));
}

#[test]
fn locks_of_redis_rs_fred_and_rslock_through_a_follower_outlive_the_leader() {
    let runtime = runtime();
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, _] = others(leader);
    let address = trio.resp(here);
    let (of_redis_rs, of_fred, of_rslock) = runtime.block_on(async {
        use_locks(address).await;
        (
            redis_rs::Held::take(address).await,
            fred::Held::take(address).await,
            rslock::Held::take(address).await,
        )
    });
    trio.kill(leader);
    let mut watcher = trio.client(here);
    wait_until("somebody leads again", || {
        let set = watcher.call("SET after the-kill PX 600000");
        (set == Reply::OK).then_some(())
    });
    runtime.block_on(async {
        of_redis_rs.goes_on().await;
        of_fred.goes_on().await;
        of_rslock.goes_on().await;
        use_locks(address).await;
    });
}
