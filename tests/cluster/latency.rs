//! How long a lock takes to get under 64 connections on three nodes: at the leader, through one follower, and spread over all.
//!
//! The usual run is short and checks the answers alone, since other tests run beside it. In full, with the bounds judged and a
//! release build of the server, on a machine to itself:
//! `LEASE_TEST_ROUNDS=500 cargo test --release -p tests --test cluster -- --nocapture --test-threads 1 sixty_four`

use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use lease_core::wire::Reply;
use tests::Client;
use tests::clock::now;

use crate::kills::number;
use crate::trio::{NODES, Trio, others};

const CONNECTIONS: usize = 64;
/// Locks that each connection takes and gives back. `LEASE_TEST_ROUNDS` for more, which are judged then.
const ROUNDS: u64 = 3;
/// An acquire, at the 99th percentile.
const ACQUIRE_P99_MAX: Duration = Duration::from_millis(50);
/// What redlock-rb waits for an answer, at the most: 999 of 1,000 calls of a run must come in time.
const CLIENT_BUDGET: Duration = Duration::from_millis(100);

/// Takes what is free, or extends what is one's own: the shape that redlock-rb sends.
const TAKE: &str = "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'yes') or redis.call('get', KEYS[1]) == ARGV[1] then \
    return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end";
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/// Times of calls.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    /// The time that so many in a thousand did not exceed.
    fn within(&self, permille: usize) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (self.0.len() * permille / 1_000).min(last);
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// What a connection measured.
#[derive(Default)]
struct Measured {
    acquires: Vec<Duration>,
    scripts: Vec<Duration>,
}

/// Takes locks of its own, by `SET` and by the script in turns, and gives each back by the script.
fn take_and_release(address: SocketAddr, connection: usize, rounds: u64, start: &Barrier) -> Measured {
    let mut client = Client::connect(address);
    let mut load = |text: &str| match client.call_args(&["SCRIPT", "LOAD", text]) {
        Reply::Bulk(digest) => String::from_utf8(digest.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    let (take, release) = (load(TAKE), load(RELEASE));
    let mut measured = Measured::default();
    start.wait();
    for round in 0..rounds {
        let (key, owner) = (
            format!("lock-{connection}-{round}"),
            format!("owner-{connection}-{round}"),
        );
        let mut timed = |args: &[&str], answer: Reply| {
            let asked_at = now();
            assert_eq!(client.call_args(args), answer, "{args:?}");
            asked_at.elapsed()
        };
        measured
            .acquires
            .push(timed(&["SET", &key, &owner, "NX", "PX", "30000"], Reply::OK));
        measured.scripts.push(timed(
            &["EVALSHA", &release, "1", &key, &owner],
            Reply::Integer(1),
        ));
        let taken = timed(&["EVALSHA", &take, "1", &key, &owner, "30000", "yes"], Reply::OK);
        measured.scripts.push(taken);
        measured.acquires.push(taken);
        measured.scripts.push(timed(
            &["EVALSHA", &release, "1", &key, &owner],
            Reply::Integer(1),
        ));
    }
    measured
}

/// The times of all connections, sorted: of acquires, and of scripts.
fn measure(addresses: &[SocketAddr], rounds: u64) -> (Times, Times) {
    let start = Arc::new(Barrier::new(CONNECTIONS));
    let connections = (0..CONNECTIONS).map(|connection| {
        let address = *addresses.get(connection % addresses.len()).unwrap();
        let start = Arc::clone(&start);
        thread::spawn(move || take_and_release(address, connection, rounds, &start))
    });
    let (mut acquires, mut scripts) = (Times::default(), Times::default());
    for connection in connections.collect::<Vec<_>>() {
        let measured = connection.join().unwrap();
        acquires.0.extend(measured.acquires);
        scripts.0.extend(measured.scripts);
    }
    acquires.0.sort_unstable();
    scripts.0.sort_unstable();
    (acquires, scripts)
}

#[test]
fn sixty_four_connections_get_their_locks_within_the_budgets_of_lock_libraries() {
    let is_judged = std::env::var_os("LEASE_TEST_ROUNDS").is_some();
    let rounds = number("LEASE_TEST_ROUNDS", ROUNDS);
    let trio = Trio::form(NODES);
    let leader = trio.leader();
    let [follower, _] = others(leader);
    let ways = [
        ("at the leader", vec![trio.resp(leader)]),
        ("through a follower", vec![trio.resp(follower)]),
        ("over all nodes", trio.addresses()),
    ];
    println!(
        "| {CONNECTIONS} connections | calls | p50 | p99 | p99.9 | longest |\n|---|---|---|---|---|---|"
    );
    let mut late = Vec::new();
    for (way, addresses) in ways {
        let (acquires, scripts) = measure(&addresses, rounds);
        for (what, times) in [("acquire", &acquires), ("script", &scripts)] {
            let [median, most, nearly_all, longest] =
                [500, 990, 999, 1_000].map(|permille| times.within(permille));
            println!(
                "| {way}, {what} | {} | {median:.1?} | {most:.1?} | {nearly_all:.1?} | {longest:.1?} |",
                times.0.len()
            );
            if nearly_all > CLIENT_BUDGET {
                late.push(format!(
                    "{way}: 999 of 1,000 calls ({what}) within {nearly_all:?}"
                ));
            }
        }
        if acquires.within(990) > ACQUIRE_P99_MAX {
            late.push(format!("{way}: acquire p99 {:?}", acquires.within(990)));
        }
    }
    assert!(!is_judged || late.is_empty(), "{late:#?}");
}
