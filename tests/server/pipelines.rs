//! Many requests in one write: answered in order, each seeing those before it.

use lease_core::wire::Reply;
use tests::Launch;
use tests::resp::{encoded, words};

fn pipeline(commands: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        bytes.extend_from_slice(&encoded(&words(&command)));
    }
    bytes
}

#[test]
fn a_thousand_sets_each_with_its_token_are_answered_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let node = Launch::in_directory(directory.path()).start();
    let mut client = node.client();
    let commands = (0..1_000).flat_map(|number| {
        [
            format!("SET lock:{number} owner-{number} NX PX 60000"),
            format!("LEASE.TOKEN lock:{number} owner-{number}"),
        ]
    });
    client.send_raw(&pipeline(commands));
    let mut last = 0;
    for number in 0..1_000 {
        assert_eq!(client.receive(), Reply::OK, "SET {number}");
        let Reply::Integer(token) = client.receive() else {
            panic!("no token of {number}")
        };
        assert!(token > last, "{number}: {token} after {last}");
        last = token;
    }
    node.stop();
}

#[test]
fn changes_are_grouped_and_still_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let node = Launch::in_directory(directory.path()).start();
    let mut client = node.client();
    let sets = (0..1_000).map(|number| format!("SET lock:{number} me NX PX 60000"));
    let tokens = (0..1_000).map(|number| format!("LEASE.TOKEN lock:{number} me"));
    client.send_raw(&pipeline(sets.chain(tokens)));
    for _ in 0..1_000 {
        assert_eq!(client.receive(), Reply::OK);
    }
    let tokens: Vec<_> = (0..1_000).map(|_| client.receive()).collect();
    let Reply::Integer(first) = tokens[0] else {
        panic!()
    };
    let expected: Vec<_> = (first..first + 1_000).map(Reply::Integer).collect();
    assert_eq!(
        tokens, expected,
        "granted in the order in which they were asked for"
    );
    let entries = tests::http::get(node.admin(), "/metrics").body;
    let entries = entries
        .lines()
        .find_map(|line| line.strip_prefix("lease_entries_proposed_total "))
        .unwrap();
    let entries: u64 = entries.parse().unwrap();
    assert!(
        entries < 100,
        "a thousand changes of one pipeline took {entries} entries"
    );
    node.stop();
}

#[test]
fn changes_of_one_key_take_effect_in_their_order_however_many_there_are() {
    for workers in ["1", "4"] {
        let node = Launch::in_memory().args(["--workers", workers]).start();
        let mut client = node.client();
        let changes = (0..500).flat_map(|number| {
            [
                format!("SET a {number} NX"),
                "SET a other NX".to_owned(),
                "DEL a a".to_owned(),
                "DEL a".to_owned(),
            ]
        });
        client.send_raw(&pipeline(changes));
        for number in 0..500 {
            let answers: Vec<_> = (0..4).map(|_| client.hear()).collect();
            assert_eq!(
                answers,
                ["+OK", "nil", ":1", ":0"],
                "round {number}, {workers} workers"
            );
        }
    }
}

#[test]
fn a_mistake_within_a_pipeline_is_answered_in_its_place() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let commands = [
        "SET a 1 NX",
        "SET a",
        "GET a",
        "DEL a",
        "WHAT",
        "EXISTS a",
        "SET a 2 XX",
        "SET a 2 NX",
        "PEXPIRE a 60000",
        "LEASE.RENEW a nonsense",
        "GET a",
        "PING",
    ];
    client.send_raw(&pipeline(commands.map(str::to_owned)));
    let answers: Vec<_> = commands.iter().map(|_| client.hear()).collect();
    assert_eq!(answers[0], "+OK");
    assert_eq!(answers[1], "-ERR wrong number of arguments for 'set' command");
    assert_eq!(answers[2..4], ["\"1\"", ":1"]);
    assert!(answers[4].starts_with("-ERR unknown command 'WHAT'"));
    assert_eq!(answers[5..9], [":0", "nil", "+OK", ":1"]);
    assert!(answers[9].starts_with("-ERR token"));
    assert_eq!(answers[10..], ["\"2\"", "+PONG"]);
}

#[test]
fn a_wait_holds_up_what_stands_behind_it_and_not_what_stands_before() {
    let node = Launch::in_memory().start();
    let mut holder = node.client();
    assert_eq!(holder.say("SET a holder NX PX 60000"), "+OK");
    let mut client = node.client();
    client.send_raw(&pipeline(
        [
            "SET b 1 NX",
            "LEASE.ACQUIRE a me 60000 WAIT 60000 REQ r",
            "GET b",
            "PING",
        ]
        .map(str::to_owned),
    ));
    assert_eq!(client.hear(), "+OK", "what stands before is answered at once");
    tests::clock::wait_until("it waits", || {
        holder.say("LEASE.GET a").contains(", :1, ").then_some(())
    });
    assert_eq!(holder.say("DEL a"), ":1");
    assert!(client.hear().starts_with("[\"granted\", "));
    assert_eq!(
        (client.hear(), client.hear()),
        ("\"1\"".to_owned(), "+PONG".to_owned())
    );
}
