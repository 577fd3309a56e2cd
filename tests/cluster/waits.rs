//! Callers that wait while nodes die: their own, the leader's, or somebody else's.

use std::time::Duration;

use lease_core::wire::Reply;
use tests::Client;
use tests::clock::{now, wait_until};

use crate::trio::{NODES, Trio, others};

/// How many stand in the queue of a lease; nothing if that cannot be said at the moment.
fn waiting(client: &mut Client, name: &str) -> Option<i64> {
    match client.call(&format!("LEASE.GET {name}")) {
        Reply::Array(fields) => match fields.get(4) {
            Some(Reply::Integer(waiters)) => Some(*waiters),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn wait_until_waiting(client: &mut Client, name: &str, count: i64) {
    wait_until(&format!("{count} wait for {name}"), || {
        (waiting(client, name) == Some(count)).then_some(())
    });
}

fn token(client: &mut Client, name: &str, owner: &str) -> i64 {
    match client.call(&format!("LEASE.TOKEN {name} {owner}")) {
        Reply::Integer(token) => token,
        other => panic!("{other:?}"),
    }
}

/// The token of a grant.
#[track_caller]
fn granted(client: &mut Client) -> i64 {
    match client.receive() {
        Reply::Array(fields) => match fields.as_slice() {
            [Reply::Bulk(word), Reply::Integer(token), ..] if *word == "granted" => *token,
            other => panic!("not granted: {other:?}"),
        },
        other => panic!("not granted: {other:?}"),
    }
}

/// Asks for a lease and does not wait for the answer, but until it stands in the queue.
fn queue(trio: &Trio, id: u64, arguments: &str, count: i64, watcher: &mut Client) -> Client {
    let name = arguments.split(' ').next().unwrap();
    let mut client = trio.client(id);
    client.send(&format!("LEASE.ACQUIRE {arguments}"));
    wait_until_waiting(watcher, name, count);
    client
}

#[test]
fn c24_a_wait_at_a_follower_outlives_the_leader_and_is_granted_when_the_lease_ends() {
    const TTL: Duration = Duration::from_secs(5);
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, there] = others(leader);
    let mut watcher = trio.client(there);
    assert_eq!(watcher.say("SET released holder NX PX 600000"), "+OK");
    let mut on_release = queue(&trio, here, "released next 60000 WAIT 60000", 1, &mut watcher);
    let set_at = now();
    assert_eq!(watcher.say("SET ending holder NX PX 5000"), "+OK");
    let first = token(&mut watcher, "ending", "holder");
    let mut on_end = queue(&trio, here, "ending next 60000 WAIT 60000", 1, &mut watcher);

    trio.kill(leader);
    let second = granted(&mut on_end);
    let after = set_at.elapsed();
    println!("a lease of {TTL:?} was granted anew after {after:?}, across a change of leaders");
    assert!(second > first);
    // No clock differs from another one by more than one in a thousand.
    assert!(after >= TTL - TTL / 1_000, "before its time: {after:?}");
    assert_eq!(token(&mut watcher, "ending", "next"), second);

    let holder = token(&mut watcher, "released", "holder");
    assert_eq!(
        waiting(&mut watcher, "released"),
        Some(1),
        "it still stands there"
    );
    assert!(
        watcher
            .say(&format!("LEASE.RELEASE released {holder}"))
            .contains("released")
    );
    let next = granted(&mut on_release);
    assert!(next > second && next > holder);
    assert_eq!(token(&mut watcher, "released", "next"), next);
}

#[test]
fn a_waiter_of_the_killed_leader_comes_back_to_its_place_under_its_request_id() {
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, there] = others(leader);
    let mut watcher = trio.client(there);
    assert_eq!(watcher.say("SET job holder NX PX 600000"), "+OK");
    let holder = token(&mut watcher, "job", "holder");
    let mut first = queue(&trio, leader, "job first 60000 WAIT 60000 REQ r", 1, &mut watcher);
    let mut second = queue(&trio, here, "job second 60000 WAIT 60000", 2, &mut watcher);

    trio.kill(leader);
    first.expect_end();
    trio.leader();
    let mut first = trio.client(there);
    first.send("LEASE.ACQUIRE job first 60000 WAIT 60000 REQ r");
    // Its place is kept for as long as its node is not known to be lost; whoever comes back later stands at the end.
    wait_until_waiting(&mut watcher, "job", 2);
    wait_until("it waits at the other node", || {
        (parked(&trio, there) == 1).then_some(())
    });
    assert!(
        watcher
            .say(&format!("LEASE.RELEASE job {holder}"))
            .contains("released")
    );
    let token_of_first = granted(&mut first);
    assert!(
        watcher
            .say(&format!("LEASE.RELEASE job {token_of_first}"))
            .contains("released")
    );
    assert!(granted(&mut second) > token_of_first);
}

#[test]
fn c23_a_waiter_whose_node_is_lost_holds_nobody_up() {
    /// A node counts as lost after 5 s of silence, and is looked for every second.
    const NOTICED_WITHIN: Duration = Duration::from_secs(15);
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [lost, here] = others(leader);
    let mut watcher = trio.client(leader);
    assert_eq!(watcher.say("SET job holder NX PX 600000"), "+OK");
    let holder = token(&mut watcher, "job", "holder");
    let mut ghost = queue(&trio, lost, "job ghost 600000 WAIT 600000", 1, &mut watcher);
    let mut behind = queue(&trio, here, "job behind 60000 WAIT 60000", 2, &mut watcher);

    let killed_at = now();
    trio.kill(lost);
    ghost.expect_end();
    wait_until_waiting(&mut watcher, "job", 1);
    println!(
        "the waiters of a killed node were struck after {:?}",
        killed_at.elapsed()
    );
    assert!(killed_at.elapsed() < NOTICED_WITHIN);
    assert!(
        watcher
            .say(&format!("LEASE.RELEASE job {holder}"))
            .contains("released")
    );
    assert!(granted(&mut behind) > holder);
    let history = watcher.say("LEASE.HISTORY job");
    assert!(!history.contains("\"ghost\""), "never granted: {history}");

    // A restart ends the waits of the life before it, too, and at once.
    let mut next = queue(&trio, here, "job next 600000 WAIT 600000", 1, &mut watcher);
    trio.kill(here);
    next.expect_end();
    trio.start(here);
    wait_until_waiting(&mut watcher, "job", 0);
}

/// The callers that wait at a node.
fn parked(trio: &Trio, id: u64) -> u64 {
    let metrics = tests::http::get(trio.node(id).admin(), "/metrics").body;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lease_parked_callers "));
    line.unwrap().parse().unwrap()
}
