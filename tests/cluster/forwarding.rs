//! What followers forward: a leader that is killed meanwhile is seen by nobody, or leaves nothing behind.

use lease_core::wire::Reply;
use tests::Client;
use tests::clock::wait_until;
use tests::show::show;

use crate::callers::{Callers, GoesOn};
use crate::trio::{NODES, Trio, others};

/// Clients of each follower: enough that some of them wait for an answer whenever the leader is killed.
const CLIENTS: usize = 8;
const KILLS: usize = 3;
/// Flushes, each right behind a change: enough that a follower lags behind some.
const FLUSHES: usize = 100;

#[test]
fn plain_sets_through_followers_survive_the_leader_and_leave_no_orphan() {
    let mut trio = Trio::form(NODES);
    let mut sets = Vec::new();
    for round in 0..KILLS {
        let leader = trio.leader();
        let followers = others(leader);
        let callers = Callers::of(&trio, (&followers, CLIENTS), round, set_keys);
        trio.kill(leader);
        let [one, other] = followers;
        wait_until("the others set again", || {
            let set = |id| {
                trio.client(id)
                    .say(&format!("SET after-{round}-{id} v PX 600000"))
                    == "+OK"
            };
            (set(one) && set(other)).then_some(())
        });
        sets.extend(callers.stop().into_iter().flatten());
        trio.start(leader);
    }
    let counted = |word: &str| sets.iter().filter(|(_, answer)| answer.starts_with(word)).count();
    let (set, unknown, refused) = (counted("+OK"), counted("-UNKNOWN"), counted("-CLUSTERDOWN"));
    println!("{KILLS} kills: {set} sets, {unknown} without an answer, {refused} refused");
    assert!(
        set > 0 && set + unknown + refused == sets.len(),
        "every other answer is wrong: a key is set once"
    );
    let mut client = trio.client(trio.leader());
    for (key, answer) in sets {
        if answer == "+OK" {
            assert_eq!(client.say(&format!("GET {key}")), "\"me\"");
        } else {
            wait_until("nobody holds what nobody was told of", || {
                (client.call(&format!("EXISTS {key}")) == Reply::Integer(0)).then_some(())
            });
        }
    }
}

/// Sets keys of its own, one after the other, each for far longer than the test takes.
fn set_keys(goes_on: &GoesOn, mut client: Client, name: &str) -> Vec<(String, String)> {
    let mut sets = Vec::new();
    while goes_on.yet() {
        let key = format!("{name}-{}", sets.len());
        let reply = client.call(&format!("SET {key} me NX PX 600000"));
        sets.push((key, show(&reply)));
    }
    sets
}

#[test]
fn a_flush_through_a_follower_ends_what_was_set_before_it() {
    let spawn = |trio: &mut Trio, id| {
        let launch = trio.launch(id).args(["--allow-flush"]);
        trio.spawn_as(id, launch);
    };
    let trio = Trio::form_by(NODES, spawn);
    let leader = trio.leader();
    let mut setter = trio.client(leader);
    for (round, follower) in others(leader).into_iter().cycle().take(FLUSHES).enumerate() {
        assert_eq!(setter.say(&format!("SET key-{round} v")), "+OK");
        // This follower may not have applied the SET yet.
        assert_eq!(trio.client(follower).say("FLUSHDB"), "+OK");
        assert_eq!(
            setter.say("DBSIZE"),
            ":0",
            "after flush {round}, by node {follower}"
        );
    }
}
