//! C40: tens of thousands of live leases on three nodes: renewed in time, ended in time, and neither is in the way of an
//! election.
//!
//! The usual run has fewer, for a shorter time. In full, with figures and a release build of the server, on a machine to
//! itself: `LEASE_TEST_LEASES=50000 LEASE_TEST_TTL_S=20 cargo test --release -p tests --test cluster -- --nocapture c40`.

use std::time::{Duration, Instant};

use lease_core::wire::{AcquireReply, RenewReply, Reply};
use tests::Client;
use tests::clock::{SOON, now, wait_until};
use tests::resp::encoded;
use tests::show::show;

use crate::kills::number;
use crate::load::has_no_outcome;
use crate::trio::{NODES, Trio, others};

/// `LEASE_TEST_LEASES` for more.
const LEASES: u64 = 2_000;
/// `LEASE_TEST_TTL_S` for longer.
const TTL_S: u64 = 12;
/// Leases that one command renews, and commands that are sent before the first answer is read.
const BATCH: usize = 200;
const PIPELINE: usize = 25;
/// After the end of the last one's time.
const FREED_WITHIN: Duration = Duration::from_secs(5);
/// Far more than an election takes, on a machine that has other things to do.
const GRANTS_WITHIN: Duration = Duration::from_secs(10);

/// A lease, and when the last good word about it was asked for.
struct Held {
    name: String,
    token: u64,
    asked_at: Instant,
}

struct Fleet {
    held: Vec<Held>,
    /// The oldest that a lease was at its renewal.
    oldest: Duration,
    lost: usize,
}

impl Fleet {
    fn acquire(client: &mut Client, prefix: &str, count: usize) -> Self {
        let mut held = Vec::with_capacity(count);
        let names: Vec<String> = (0..count).map(|number| format!("{prefix}-{number}")).collect();
        let ttl_ms = ttl().as_millis().to_string();
        for names in names.chunks(BATCH * PIPELINE / 10) {
            let asked_at = now();
            let requests: Vec<u8> = names
                .iter()
                .flat_map(|name| encoded(&["LEASE.ACQUIRE", name, "me", &ttl_ms, "REQ", name]))
                .collect();
            client.send_raw(&requests);
            for name in names {
                match AcquireReply::from_reply(client.receive()).unwrap() {
                    AcquireReply::Granted { token, .. } => held.push(Held {
                        name: name.clone(),
                        token: token.get(),
                        asked_at,
                    }),
                    other => panic!("{name}: {other:?}"),
                }
            }
        }
        Self {
            held,
            oldest: Duration::ZERO,
            lost: 0,
        }
    }

    /// Renews every lease that is due, and gives how long that took. What has no outcome stays due.
    fn renew_due(&mut self, client: &mut Client) -> Duration {
        let began = now();
        let due = |held: &&mut Held| held.asked_at.elapsed() >= ttl() / 3;
        let mut due: Vec<&mut Held> = self.held.iter_mut().filter(due).collect();
        for group in due.chunks_mut(BATCH * PIPELINE) {
            let asked_at = now();
            for batch in group.chunks(BATCH) {
                client.send_raw(&renewal(batch));
            }
            for batch in group.chunks_mut(BATCH) {
                let (oldest, lost) = take_answer(batch, client.receive(), asked_at);
                self.oldest = self.oldest.max(oldest);
                self.lost += lost;
            }
        }
        began.elapsed()
    }

    /// Renews whatever is due for as long as `condition` does not hold; the longest round.
    fn live_until(&mut self, client: &mut Client, what: &str, condition: impl Fn() -> bool) -> Duration {
        let mut longest = Duration::ZERO;
        let until = now() + ttl() * 10;
        while !condition() {
            assert!(now() < until, "in vain until {what}");
            longest = longest.max(self.renew_due(client));
            breathe();
        }
        longest
    }

    #[track_caller]
    fn expect_all_held(&self) {
        assert_eq!(
            self.lost, 0,
            "lost; the oldest renewal came after {:?}",
            self.oldest
        );
        assert!(self.oldest < ttl(), "{:?}", self.oldest);
    }
}

/// How old the oldest lease was that was renewed, and how many were lost.
fn take_answer(batch: &mut [&mut Held], reply: Reply, asked_at: Instant) -> (Duration, usize) {
    let (mut oldest, mut lost) = (Duration::ZERO, 0);
    if has_no_outcome(&reply) {
        return (oldest, lost);
    }
    let Reply::Array(replies) = reply else {
        panic!("{}", show(&reply));
    };
    let answered = batch.iter_mut().zip(replies);
    for (held, reply) in answered.filter(|(_, reply)| !has_no_outcome(reply)) {
        match RenewReply::from_reply(reply).unwrap() {
            RenewReply::Renewed { .. } => {
                oldest = oldest.max(held.asked_at.elapsed());
                held.asked_at = asked_at;
            }
            RenewReply::Lost { .. } => lost += 1,
        }
    }
    (oldest, lost)
}

fn renewal(batch: &[&mut Held]) -> Vec<u8> {
    let mut words = vec!["LEASE.MRENEW".to_owned()];
    for held in batch {
        words.extend([held.name.clone(), held.token.to_string()]);
    }
    encoded(&words).to_vec()
}

fn leases() -> usize {
    usize::try_from(number("LEASE_TEST_LEASES", LEASES)).unwrap()
}

fn ttl() -> Duration {
    Duration::from_secs(number("LEASE_TEST_TTL_S", TTL_S))
}

/// What a node says how many leases there are.
fn live(trio: &Trio, id: u64) -> usize {
    let metrics = tests::http::get(trio.node(id).admin(), "/metrics").body;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lease_leases_held "));
    line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

/// Lets a moment pass.
fn breathe() {
    let mut looked = false;
    wait_until("a moment has passed", || {
        std::mem::replace(&mut looked, true).then_some(())
    });
}

/// From the last renewal on nobody renews: how long after the end of the last one's time all are gone.
fn freed_after(trio: &Trio, id: u64, fleet: &Fleet) -> Duration {
    let last = fleet.held.iter().map(|held| held.asked_at).max().unwrap();
    let soon = last + ttl() + SOON;
    while live(trio, id) > 0 {
        assert!(now() < soon, "{} leases are still there", live(trio, id));
        breathe();
    }
    last.elapsed().saturating_sub(ttl())
}

#[test]
fn c40_a_fleet_of_leases_is_renewed_in_time_and_freed_in_time_also_through_a_leader_kill() {
    let mut trio = Trio::form(NODES);
    let count = leases();
    let leader = trio.leader();
    let mut client = trio.client(leader);
    let began = now();
    let mut fleet = Fleet::acquire(&mut client, "first", count);
    println!("{count} leases taken in {:?}", began.elapsed());
    let until = now() + ttl() * 3 / 2;
    let longest = fleet.live_until(&mut client, "one and a half ttls have passed", || now() >= until);
    println!(
        "held through one and a half ttls: the longest round of renewals took {longest:?}, the oldest lease was {:?} old",
        fleet.oldest
    );
    fleet.expect_all_held();
    let freed = freed_after(&trio, leader, &fleet);
    println!("all renewals stopped: all are free {freed:?} after the last one's time");
    assert!(freed < FREED_WITHIN, "{freed:?}");

    let mut fleet = Fleet::acquire(&mut client, "second", count);
    fleet.renew_due(&mut client);
    trio.kill(leader);
    let killed_at = now();
    let [one, other] = others(leader);
    let mut client = trio.client(one);
    wait_until("another leader grants", || {
        (client.say("SET probe me NX PX 60000") == "+OK").then_some(())
    });
    let grants_after = killed_at.elapsed();
    let until = now() + ttl();
    let longest = fleet.live_until(&mut client, "a ttl has passed", || now() >= until);
    println!(
        "the leader was killed: another one granted after {grants_after:?}; the longest round took {longest:?}, the oldest \
         lease was {:?} old",
        fleet.oldest
    );
    fleet.expect_all_held();
    assert!(grants_after < GRANTS_WITHIN, "{grants_after:?}");
    assert_eq!(client.say("DEL probe"), ":1");
    trio.leader_among(&[one, other]);
    let freed = freed_after(&trio, one, &fleet);
    println!("all renewals stopped: all are free {freed:?} after the last one's time");
    assert!(freed < FREED_WITHIN, "{freed:?}");
}
