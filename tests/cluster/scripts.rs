//! Scripts among three nodes: known to all, done once, and asked for through followers while leaders die.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lease_core::wire::Reply;
use tests::clock::{now, wait_until};
use tests::show::show;
use tests::{Client, http};

use crate::trio::{NODES, Trio, others};

/// Raises a number that is kept under a key, and keeps the key for long: what is done twice shows.
const RAISE: &str = "local seen = redis.call('get', KEYS[1]) if not seen then seen = 0 end \
    redis.call('set', KEYS[1], seen + 1, 'PX', ARGV[1]) return seen + 1";
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
const EXTEND: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
const UNKNOWN: &str = "ffffffffffffffffffffffffffffffffffffffff";
const NO_SCRIPT: &str = "-NOSCRIPT No matching script. Please use EVAL.";

/// Clients of each follower, and leaders that are killed.
const CLIENTS: usize = 6;
const KILLS: usize = 2;
/// Scripts that only look.
const LOOKS: usize = 200;

fn load(client: &mut Client, text: &str) -> String {
    match client.call_args(&["SCRIPT", "LOAD", text]) {
        Reply::Bulk(digest) => String::from_utf8(digest.to_vec()).unwrap(),
        other => panic!("{}", show(&other)),
    }
}

/// Entries that the log was given by any node.
fn entries(trio: &Trio) -> u64 {
    let proposed = |id: &u64| {
        let metrics = http::get(trio.node(*id).admin(), "/metrics").body;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("lease_entries_proposed_total "));
        line.unwrap_or_else(|| panic!("{metrics}"))
            .parse::<u64>()
            .unwrap()
    };
    NODES.iter().map(proposed).sum()
}

#[test]
fn a_script_that_one_node_was_given_is_known_to_all_and_outlives_the_leader() {
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, there] = others(leader);
    let (mut one, mut other) = (trio.client(here), trio.client(there));
    let release = load(&mut one, RELEASE);
    let extend = load(&mut one, EXTEND);
    assert_eq!(other.say("SET lock me NX PX 600000"), "+OK");
    assert_eq!(
        other.say(&format!("SCRIPT EXISTS {release} {UNKNOWN} {extend}")),
        "[:1, :0, :1]"
    );
    assert_eq!(other.say(&format!("EVALSHA {extend} 1 lock me 700000")), ":1");
    assert_eq!(other.say(&format!("EVALSHA {UNKNOWN} 1 lock me")), NO_SCRIPT);

    trio.kill(leader);
    // What was loaded is in the log: nobody has to load it again, as one would after a failover of Redis.
    for client in [&mut one, &mut other] {
        wait_until("there is a leader", || {
            let said = client.say(&format!("EVALSHA {extend} 1 lock me 600000"));
            assert!(!said.starts_with("-NOSCRIPT"), "{said}");
            (said == ":1").then_some(())
        });
        assert_eq!(client.say(&format!("EVALSHA {UNKNOWN} 1 lock me")), NO_SCRIPT);
    }
    assert_eq!(one.say(&format!("EVALSHA {release} 1 lock another")), ":0");
    assert_eq!(one.say(&format!("EVALSHA {release} 1 lock me")), ":1");
    assert_eq!(other.say("EXISTS lock"), ":0");

    // Forgotten at one node is forgotten at all, and those who know the text give it again.
    assert_eq!(one.say("SCRIPT FLUSH"), "+OK");
    for client in [&mut one, &mut other] {
        assert_eq!(client.say(&format!("EVALSHA {release} 1 lock me")), NO_SCRIPT);
    }
    assert_eq!(
        other.call_args(&["EVAL", RELEASE, "1", "lock", "me"]),
        Reply::Integer(0)
    );
    trio.start(leader);
    assert_eq!(
        trio.client(leader).say(&format!("EVALSHA {extend} 1 lock me 1")),
        NO_SCRIPT
    );
}

#[test]
fn a_script_through_a_follower_that_changes_nothing_costs_no_entry() {
    let trio = Trio::form(NODES);
    let [here, there] = others(trio.leader());
    let (mut one, mut other) = (trio.client(here), trio.client(there));
    assert_eq!(one.say("SET lock me NX PX 600000"), "+OK");
    let release = load(&mut one, RELEASE);
    let (before, began) = (entries(&trio), now());
    for _ in 0..LOOKS / 2 {
        // As lock libraries release what they did not get, and through the node that did not see the SET.
        assert_eq!(one.say(&format!("EVALSHA {release} 1 lock another")), ":0");
        assert_eq!(
            other.call_args(&["EVAL_RO", "return redis.call('get', KEYS[1])", "1", "lock"]),
            Reply::bulk("me")
        );
    }
    let more = entries(&trio) - before;
    // A tick a second is the leader's own, and the text of the second script is stored once.
    let own = 2 * (began.elapsed().as_secs() + 1);
    assert!(more < LOOKS as u64 / 8 + own, "{more} entries for {LOOKS} looks");
    assert_eq!(other.say(&format!("EVALSHA {release} 1 lock me")), ":1");
    assert_eq!(
        one.say("EXISTS lock"),
        ":0",
        "a look through any node sees what was done through another"
    );
}

/// What a client of its own key was answered, in order.
fn raise_until(stop: &AtomicBool, mut client: Client, key: &str) -> Vec<String> {
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        answers.push(show(&client.call_args(&["EVAL", RAISE, "1", key, "600000"])));
    }
    answers
}

/// Each answered call has raised the number by one; one whose outcome is unknown has, or has not; no other has.
#[track_caller]
fn expect_each_once(answers: &[String], key: &str) -> (u64, u64) {
    let (mut last, mut unknown, mut unknown_in_all) = (0, 0, 0);
    for answer in answers {
        if answer.starts_with("-UNKNOWN ") {
            unknown += 1;
            unknown_in_all += 1;
        } else if !answer.starts_with("-CLUSTERDOWN ") {
            let number = answer
                .strip_prefix(':')
                .and_then(|number| number.parse::<u64>().ok());
            let number = number.unwrap_or_else(|| panic!("{key}: {answer}"));
            assert!(
                (last + 1..=last + 1 + unknown).contains(&number),
                "{key}: {number} after {last}, with {unknown} unknown in between"
            );
            (last, unknown) = (number, 0);
        }
    }
    (last, unknown_in_all)
}

#[test]
fn scripts_through_followers_are_done_once_while_leaders_are_killed() {
    let mut trio = Trio::form(NODES);
    let (mut raised, mut unknown) = (0, 0);
    for round in 0..KILLS {
        let leader = trio.leader();
        let followers = others(leader);
        let stop = Arc::new(AtomicBool::new(false));
        let clients = (0..CLIENTS * followers.len()).map(|number| {
            let client = trio.client(*followers.get(number % followers.len()).unwrap());
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let key = format!("{round}-{number}");
                (raise_until(&stop, client, &key), key)
            })
        });
        let clients: Vec<_> = clients.collect();
        trio.kill(leader);
        for id in followers {
            let mut client = trio.client(id);
            wait_until("the others are served again", || {
                let key = format!("after-{round}-{id}");
                let said = client.call_args(&["EVAL", RAISE, "1", &key, "600000"]);
                matches!(said, Reply::Integer(_)).then_some(())
            });
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            let (answers, key) = client.join().unwrap();
            let (last, of_client) = expect_each_once(&answers, &key);
            let stands = trio.client(followers[0]).say(&format!("GET {key}"));
            let stands = stands.trim_matches('"').parse::<u64>().unwrap_or_default();
            assert!(
                stands >= last && stands <= last + of_client,
                "{key}: {stands}, answered {last}"
            );
            raised += last;
            unknown += of_client;
        }
        trio.start(leader);
    }
    println!("{KILLS} kills: raised {raised} times, {unknown} without an answer");
    assert!(raised > 0);
}
