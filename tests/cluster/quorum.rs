//! C16: a node that has lost its quorum says so in time, grants nothing, confirms nothing and reads nothing.

use std::time::{Duration, Instant};

use tests::Client;
use tests::clock::{now, wait_until};
use tests::resp::{encoded, words};
use tests::show::show;

use crate::load::has_no_outcome;
use crate::trio::{NODES, Trio, others};

/// A node answers after 2 s at the latest; the rest is the machine's, which may be busy.
const ANSWERED_WITHIN: Duration = Duration::from_millis(2_500);

#[test]
fn c16_a_node_without_a_quorum_says_so_in_time_and_goes_on_when_the_others_are_back() {
    let trio = Trio::form(NODES);
    assert_eq!(trio.client(1).say("SET held me NX PX 600000"), "+OK");
    let mut token = trio.client(2).say("LEASE.TOKEN held me");
    // First the leader is left alone, then a follower.
    for follows in [false, true] {
        let leader = trio.leader();
        let [follower, _] = others(leader);
        let alone = if follows { follower } else { leader };
        for id in others(alone) {
            trio.pause(id);
        }
        let number = token.trim_start_matches(':');
        let new = format!("new-{alone}-{follows}");
        let plain = format!("plain-{alone}-{follows}");
        let commands = [
            format!("LEASE.ACQUIRE {new} me 600000 REQ r"),
            format!("SET {plain} me NX PX 600000"),
            format!("LEASE.RENEW held {number} 600000"),
            format!("LEASE.RELEASE held {number}"),
            "LEASE.GET held".to_owned(),
            "LEASE.TOKEN held me".to_owned(),
            "GET held".to_owned(),
            "PTTL held".to_owned(),
            "LEASE.LIST".to_owned(),
            "LEASE.ACQUIRE held other 600000 WAIT 60000".to_owned(),
        ];
        // By the time of the second call Raft does not even take a proposal. The leadership is not over for that: once
        // the others are back it goes on, since nobody else has so long a log.
        nothing_is_done(&trio, alone, &["DEL nothing".to_owned()]);
        nothing_is_done(&trio, alone, &commands);
        for id in others(alone) {
            trio.resume(id);
        }
        trio.leader();
        goes_on(&mut trio.client(alone), &new, &plain);
        // The release may have been applied: nobody knew.
        let mut client = trio.client(alone);
        assert_eq!(answered(&mut client, "SET held me PX 600000"), "+OK");
        token = answered(&mut client, "LEASE.TOKEN held me");
    }
}

/// Changes of one connection that are under way at once.
const UNDER_WAY_MAX: usize = 256;
/// How long each of them waits for a leader.
const WAITS_FOR: Duration = Duration::from_millis(1_400);

#[test]
fn a_long_pipeline_takes_no_more_of_a_node_at_once_than_its_bound() {
    let trio = Trio::form(NODES);
    let [alone, _] = others(trio.leader());
    for id in others(alone) {
        trio.pause(id);
    }
    let mut client = trio.client(alone);
    let sets = (0..2 * UNDER_WAY_MAX).flat_map(|number| {
        let set = format!("SET lock-{number} me NX PX 60000");
        encoded(&words(&set))
    });
    client.send_raw(&sets.collect::<Vec<u8>>());
    let mut answer = || assert!(has_no_outcome(&client.receive()));
    (0..UNDER_WAY_MAX).for_each(|_| answer());
    let first_part = now();
    answer();
    // Those behind the bound were not even asked for while the first ones waited.
    assert!(first_part.elapsed() >= WAITS_FOR, "{:?}", first_part.elapsed());
    for id in others(alone) {
        trio.resume(id);
    }
}

/// All at once, each on a connection of its own.
fn nothing_is_done(trio: &Trio, alone: u64, commands: &[String]) {
    let asked: Vec<(&String, Client, Instant)> = commands
        .iter()
        .map(|command| {
            let mut client = trio.client(alone);
            client.send(command);
            (command, client, now())
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for (command, mut client, sent) in asked {
        let reply = client.receive();
        assert!(has_no_outcome(&reply), "{command}: {reply:?}");
        slowest = slowest.max(sent.elapsed());
    }
    println!(
        "alone, a node has answered everything after {} ms",
        slowest.as_millis()
    );
    assert!(slowest < ANSWERED_WITHIN, "{slowest:?}");
}

fn goes_on(client: &mut Client, new: &str, plain: &str) {
    // Under its request id an acquire has one grant, whether the first attempt was applied or not.
    let mut granted = || {
        let answer = answered(client, &format!("LEASE.ACQUIRE {new} me 600000 REQ r"));
        assert!(answer.starts_with("[\"granted\", "), "{answer}");
        answer.split(", ").nth(1).unwrap().to_owned()
    };
    assert_eq!(granted(), granted());
    // A grant without one that nobody heard of is undone.
    wait_until("nobody holds what nobody was told of", || {
        (client.say(&format!("SET {plain} another NX PX 600000")) == "+OK").then_some(())
    });
}

/// The answer, once there is a leader to give it.
fn answered(client: &mut Client, command: &str) -> String {
    wait_until("the cluster goes on", || {
        let reply = client.call(command);
        (!has_no_outcome(&reply)).then(|| show(&reply))
    })
}
