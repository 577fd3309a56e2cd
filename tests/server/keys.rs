//! Redis's string keys: the README's story, and what a SET does to a lease.

use lease_core::wire::Reply;
use tests::{Client, Launch};

#[track_caller]
fn token(client: &mut Client, name: &str, owner: &str) -> i64 {
    match client.call(&format!("LEASE.TOKEN {name} {owner}")) {
        Reply::Integer(token) => token,
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_redis_client_takes_a_lock_and_asks_for_its_token() {
    let directory = tempfile::tempdir().unwrap();
    let node = Launch::in_directory(directory.path()).start();
    let mut client = node.client();
    assert_eq!(client.say("SET lock:reward:player-42 worker-a NX PX 5000"), "+OK");
    assert_eq!(client.say("SET lock:reward:player-42 worker-b NX PX 5000"), "nil");
    assert_eq!(
        client.say("SET lock:reward:player-42 worker-a NX PX 5000"),
        "nil",
        "by the same value, too"
    );
    let token = token(&mut client, "lock:reward:player-42", "worker-a");
    assert!(token > 0);
    assert_eq!(client.say("LEASE.TOKEN lock:reward:player-42 worker-b"), "nil");
    let Reply::Array(held) = client.call("LEASE.ACQUIRE lock:reward:player-42 worker-b 5000") else {
        panic!("held is an array");
    };
    assert_eq!(held[0], Reply::bulk("held"));
    assert_eq!(held[1], Reply::Integer(token));
    assert!(matches!(held[2], Reply::Integer(1..=5_000)), "{held:?}");
    assert_eq!(held[3], Reply::bulk("worker-a"));
    assert!(matches!(held[4], Reply::Integer(0..=5_000)), "{held:?}");
    assert_eq!(held[5], Reply::Integer(0));
    assert_eq!(held.len(), 6);
    assert_eq!(
        client.say(&format!("LEASE.RELEASE lock:reward:player-42 {token}")),
        "[\"released\"]"
    );
    assert_eq!(client.say("SET lock:reward:player-42 worker-b NX PX 5000"), "+OK");
    node.stop();
}

#[test]
fn a_set_that_proves_ownership_is_a_renewal_and_any_other_supersedes() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert_eq!(client.say("SET a me NX PX 60000"), "+OK");
    let first = token(&mut client, "a", "me");
    for renewal in [
        "SET a me XX PX 90000",
        "SET a me IFEQ me PX 90000",
        "SET a me XX KEEPTTL",
    ] {
        assert_eq!(client.say(renewal), "+OK", "{renewal}");
        assert_eq!(token(&mut client, "a", "me"), first, "{renewal}");
    }
    let Reply::Integer(left) = client.call("PTTL a") else {
        panic!()
    };
    assert!((60_001..=90_000).contains(&left), "{left}");
    for refused in ["SET a you NX", "SET a you IFEQ you", "SET a you IFNE me"] {
        assert_eq!(client.say(refused), "nil", "{refused}");
        assert_eq!(token(&mut client, "a", "me"), first, "{refused}");
    }
    let mut last = first;
    for taken in [
        "SET a me",
        "SET a me PX 60000",
        "SET a you XX",
        "SET a me IFEQ you",
        "SET a me IFNE you",
    ] {
        assert_eq!(client.say(taken), "+OK", "{taken}");
        let owner = if taken.contains("a you") { "you" } else { "me" };
        let next = token(&mut client, "a", owner);
        assert!(next > last, "{taken}: {next} after {last}");
        last = next;
    }
    assert_eq!(
        client.say(&format!("LEASE.RENEW a {first} 1000")),
        "[\"lost\", \"superseded\"]"
    );
    assert_eq!(client.say("SET none me IFEQ me"), "nil");
    assert_eq!(client.say("EXISTS none"), ":0");
    assert_eq!(
        client.say("SET none me IFNE me"),
        "+OK",
        "a missing key has another value"
    );
    for mixed in ["SET a b NX IFEQ c", "SET a b IFEQ c IFNE d", "SET a b IFEQ"] {
        assert_eq!(client.say(mixed), "-ERR syntax error", "{mixed}");
    }
}

#[test]
fn del_and_expiry_free_a_lock_and_tell_its_holder() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert_eq!(client.say("SET a me NX PX 60000"), "+OK");
    let token_ = token(&mut client, "a", "me");
    assert_eq!(client.say("DEL a"), ":1");
    assert_eq!(
        client.say(&format!("LEASE.RENEW a {token_}")),
        "[\"lost\", \"overridden\"]"
    );
    let granted = client.say("LEASE.ACQUIRE a you 60000");
    assert!(granted.starts_with("[\"granted\", :"), "{granted}");
    assert_eq!(client.say("PEXPIRE a 1"), ":1");
    let freed = client.say("LEASE.ACQUIRE a third 60000 WAIT 60000");
    assert!(freed.starts_with("[\"granted\", :"), "{freed}");
    assert_eq!(client.say("GET a"), "\"third\"");
}

#[test]
fn values_and_keys_are_bytes() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let odd: Vec<u8> = (0..=255).collect();
    assert_eq!(
        client.call_args(&[b"SET".as_slice(), &odd, &odd, b"NX"]),
        Reply::OK
    );
    assert_eq!(client.call_args(&[b"GET".as_slice(), &odd]), Reply::bulk(&odd));
    assert_eq!(
        client.call_args(&[b"LEASE.TOKEN".as_slice(), &odd, b"x"]),
        Reply::Nil
    );
    let token = client.call_args(&[b"LEASE.TOKEN".as_slice(), &odd, &odd]);
    assert!(matches!(token, Reply::Integer(_)));
    // Redis takes empty keys and values.
    assert_eq!(client.call_args(&["SET", "", "", "NX"]), Reply::OK);
    assert_eq!(client.call_args(&["GET", ""]), Reply::bulk(""));
    assert_eq!(client.call_args(&["DEL", ""]), Reply::Integer(1));
}

#[test]
fn a_value_beyond_the_bound_is_refused_and_the_connection_goes_on() {
    let node = Launch::in_memory().args(["--max-value", "100"]).start();
    let mut client = node.client();
    let (fits, long) = (vec![b'v'; 100], vec![b'v'; 101]);
    assert_eq!(client.call_args(&[b"SET".as_slice(), b"a", &fits]), Reply::OK);
    let refused = client.call_args(&[b"SET".as_slice(), b"a", &long]);
    let refused = tests::show::show(&refused);
    assert!(
        refused.starts_with("-LIMIT ") && refused.contains("--max-value"),
        "{refused}"
    );
    for command in [&b"GET"[..], b"DEL", b"PTTL", b"EXISTS"] {
        let refused = tests::show::show(&client.call_args(&[command, &long]));
        assert!(refused.starts_with("-LIMIT "), "{refused}");
    }
    assert_eq!(client.call("GET a"), Reply::bulk(&fits));
    // Far above it, the length alone ends the connection, before anything is buffered.
    client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\n");
    assert_eq!(client.hear(), "-ERR Protocol error: invalid bulk length");
    client.expect_end();
}

#[test]
fn times_without_end_and_beyond_reason_are_kept() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert_eq!(client.say("SET a b NX"), "+OK");
    assert_eq!(
        (client.say("TTL a"), client.say("PTTL a")),
        (":-1".to_owned(), ":-1".to_owned())
    );
    assert!(client.say("LEASE.GET a").contains(", :-1, "));
    assert_eq!(client.say("SET c d PX 2702159776422297"), "+OK");
    let Reply::Integer(left) = client.call("PTTL c") else {
        panic!()
    };
    assert!(
        (2_702_159_776_422_297 - 10_000..=2_702_159_776_422_297).contains(&left),
        "{left}"
    );
}
