//! A leader that is told to stop hands over first: clients of the others see a short gap and no error.

use std::time::Duration;

use rustix::process::Signal;
use tests::Client;
use tests::clock::{now, wait_until};
use tests::show::show;

use crate::callers::{Callers, GoesOn};
use crate::trio::{NODES, Trio, others};

const CLIENTS: usize = 4;
const STOPS: usize = 3;
/// A follower that finds nobody led at once would wait for an election, of at least half a second. The handover itself takes
/// some round trips; the rest is the machine's, which may be busy.
const GAP_MAX: Duration = Duration::from_millis(1_500);

#[test]
fn a_leader_that_is_stopped_hands_over_and_nobody_sees_more_than_a_short_gap() {
    let mut trio = Trio::form(NODES);
    let mut gaps = Vec::new();
    for round in 0..STOPS {
        let leader = trio.leader();
        let followers = others(leader);
        let callers = Callers::of(&trio, (&followers, CLIENTS), round, slowest_call);
        let stopped = trio.take(leader);
        stopped.signal(Signal::TERM);
        let exit = stopped.wait();
        assert!(exit.stderr.contains("the leadership is handed over"), "{exit:#?}");
        exit.expect_clean();
        trio.leader_among(&followers);
        wait_until("the others go on", || {
            let set = |id| trio.client(id).say(&format!("SET after-{round}-{id} v PX 60000")) == "+OK";
            followers.into_iter().all(set).then_some(())
        });
        gaps.extend(callers.stop());
        trio.start(leader);
    }
    let worst = gaps.iter().max().unwrap();
    println!(
        "{STOPS} stops of the leader: the slowest call of {} clients took {} ms",
        gaps.len(),
        worst.as_millis()
    );
    assert!(*worst < GAP_MAX, "{gaps:?}");
}

/// Sets, reads and deletes keys of its own, one after the other, and answers with the longest that a call took. None fails.
fn slowest_call(goes_on: &GoesOn, mut client: Client, name: &str) -> Duration {
    let mut slowest = Duration::ZERO;
    let mut number = 0_u64;
    while goes_on.yet() {
        number += 1;
        let key = format!("{name}-{number}");
        for (command, expected) in [
            (format!("SET {key} me NX PX 60000"), "+OK"),
            (format!("GET {key}"), "\"me\""),
            (format!("DEL {key}"), ":1"),
        ] {
            let asked_at = now();
            assert_eq!(show(&client.call(&command)), expected, "{command}");
            slowest = slowest.max(asked_at.elapsed());
        }
    }
    slowest
}
