//! `MULTI`, `EXEC` and `WATCH`: commands with nothing in between.

use lease_core::wire::Reply;
use tests::Launch;
use tests::clock::wait_until;

#[test]
fn a_transaction_takes_a_lock_and_its_token_at_once() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert_eq!(client.say("MULTI"), "+OK");
    for queued in ["SET lock me NX PX 60000", "LEASE.TOKEN lock me", "PTTL lock"] {
        assert_eq!(client.say(queued), "+QUEUED");
    }
    let Reply::Array(answers) = client.call("EXEC") else {
        panic!("an array")
    };
    assert_eq!(answers[0], Reply::OK);
    assert!(matches!(answers[1], Reply::Integer(1..)), "{answers:?}");
    assert_eq!(answers[2], Reply::Integer(60_000));
    assert_eq!(client.call("LEASE.TOKEN lock me"), answers[1]);
}

#[test]
fn nobody_who_waits_is_granted_a_key_between_two_commands() {
    let node = Launch::in_memory().start();
    let (mut holder, mut waiter) = (node.client(), node.client());
    assert_eq!(holder.say("SET lock me"), "+OK");
    waiter.send("LEASE.ACQUIRE lock other 60000 WAIT 60000");
    wait_until("somebody waits", || {
        let Reply::Array(seen) = holder.call("LEASE.GET lock") else {
            panic!("it is held")
        };
        (seen[4] == Reply::Integer(1)).then_some(())
    });
    for command in ["MULTI", "DEL lock", "SET lock me NX PX 60000"] {
        holder.call(command);
    }
    assert_eq!(holder.say("EXEC"), "[:1, +OK]");
    assert_eq!(holder.say("GET lock"), "\"me\"");
    assert_eq!(holder.say("DEL lock"), ":1");
    assert!(waiter.hear().starts_with("[\"granted\""));
}

#[test]
fn a_watched_key_that_somebody_changed_undoes_all_of_it() {
    let node = Launch::in_memory().start();
    let (mut client, mut other) = (node.client(), node.client());
    for change in [
        "SET k other",
        "DEL k",
        "PEXPIRE k 70000",
        "SET k other XX KEEPTTL",
        "MSET k x z y",
    ] {
        client.call("SET k v PX 60000");
        assert_eq!(client.say("WATCH k"), "+OK");
        other.call(change);
        client.call("MULTI");
        client.call("SET done yes");
        client.call("SELECT 3");
        assert_eq!(client.say("EXEC"), "nil", "{change}");
        assert_eq!(
            client.say("EXISTS done"),
            ":0",
            "{change}: nothing was done, not even SELECT"
        );
    }
    client.call("SET k v");
    assert_eq!(client.say("WATCH k"), "+OK");
    other.call("GET k");
    client.call("MULTI");
    client.call("SET done yes");
    assert_eq!(client.say("EXEC"), "[+OK]");
}

#[test]
fn what_cannot_be_queued_spoils_the_transaction() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    for refused in [
        "LEASE.ACQUIRE a b 5000 WAIT 5000",
        "SUBSCRIBE a",
        "KEYS *",
        "FLUSHALL",
        "NONSENSE",
        "GET",
    ] {
        client.call("MULTI");
        client.call("SET done yes");
        assert!(client.say(refused).starts_with("-ERR "), "{refused}");
        assert!(client.say("EXEC").starts_with("-EXECABORT "), "{refused}");
    }
    assert_eq!(client.say("EXISTS done"), ":0");
    client.call("MULTI");
    assert_eq!(client.say("RESET"), "+RESET");
    assert_eq!(client.say("EXEC"), "-ERR EXEC without MULTI");
}

#[test]
fn a_transaction_is_bounded() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.call("MULTI");
    for _ in 0..1_024 {
        assert_eq!(client.say("GET a"), "+QUEUED");
    }
    assert!(client.say("GET a").starts_with("-LIMIT "));
    assert!(client.say("EXEC").starts_with("-EXECABORT "));
    let many: Vec<String> = (0..4_097).map(|key| key.to_string()).collect();
    let del: Vec<&str> = std::iter::once("DEL")
        .chain(many.iter().map(String::as_str))
        .collect();
    let refused = tests::show::show(&client.call_args(&del));
    assert!(
        refused.starts_with("-LIMIT ") && refused.contains("4096"),
        "{refused}"
    );
}
