//! Channels: messages, and what becomes of leases.

use lease_core::wire::Reply;
use tests::clock::wait_until;
use tests::{Client, Launch};

fn push(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("({})", words.join(", "))
}

#[track_caller]
fn token(client: &mut Client, command: &str) -> i64 {
    match client.call(command) {
        Reply::Integer(token) => token,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_reaches_who_listens_by_name_or_by_pattern_and_nobody_else() {
    let node = Launch::in_memory().start();
    let (mut by_name, mut by_pattern, mut speaker) = (node.client(), node.client(), node.client());
    by_name.call("HELLO 3");
    by_pattern.call("HELLO 3");
    assert_eq!(by_name.say("SUBSCRIBE news"), "(\"subscribe\", \"news\", :1)");
    assert_eq!(by_pattern.say("PSUBSCRIBE n*"), "(\"psubscribe\", \"n*\", :1)");
    assert_eq!(speaker.say("PUBLISH news first"), ":2");
    assert_eq!(speaker.say("PUBLISH other second"), ":0");
    assert_eq!(speaker.say("PUBLISH new third"), ":1");
    assert_eq!(by_name.hear(), push(&["message", "news", "first"]));
    assert_eq!(by_pattern.hear(), push(&["pmessage", "n*", "news", "first"]));
    assert_eq!(by_pattern.hear(), push(&["pmessage", "n*", "new", "third"]));
    assert_eq!(
        speaker.say("PUBSUB NUMSUB news other"),
        "[\"news\", :1, \"other\", :0]"
    );
    assert_eq!(speaker.say("PUBSUB NUMPAT"), ":1");
    assert_eq!(speaker.say("PUBSUB CHANNELS"), "[\"news\"]");
    // In RESP3 a subscribed connection goes on to serve commands.
    assert_eq!(by_name.say("SET a b"), "+OK");
    assert_eq!(by_name.say("UNSUBSCRIBE"), "(\"unsubscribe\", \"news\", :0)");
    assert_eq!(speaker.say("PUBLISH news last"), ":1");
    assert_eq!(by_name.say("PING"), "+PONG", "it hears nothing any more");
}

#[test]
fn a_resp2_connection_that_listens_takes_only_what_cannot_be_mistaken() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    assert_eq!(client.say("SUBSCRIBE a"), "[\"subscribe\", \"a\", :1]");
    assert_eq!(
        client.say("GET a"),
        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    );
    assert_eq!(client.say("PING"), "[\"pong\", \"\"]");
    assert_eq!(client.say("PING hi"), "[\"pong\", \"hi\"]");
    assert_eq!(client.say("UNSUBSCRIBE a"), "[\"unsubscribe\", \"a\", :0]");
    assert_eq!(client.say("UNSUBSCRIBE"), "[\"unsubscribe\", nil, :0]");
    assert_eq!(client.say("GET a"), "nil");
    client.call("PSUBSCRIBE x*");
    assert_eq!(client.say("RESET"), "+RESET");
    assert_eq!(client.say("GET a"), "nil");
}

#[test]
fn grants_and_losses_are_told_with_their_reasons() {
    let node = Launch::in_memory().start();
    let (mut listener, mut client) = (node.client(), node.client());
    listener.call("HELLO 3");
    listener.call("SUBSCRIBE lease:lock");
    let mut expect = |what: String| assert_eq!(listener.hear(), push(&["message", "lease:lock", &what]));
    client.call("SET lock me NX PX 60000");
    let first = token(&mut client, "LEASE.TOKEN lock me");
    expect(format!("granted {first} 0"));
    client.call("DELIFEQ lock me");
    expect(format!("ended {first} 0 released"));
    client.call("SELECT 2");
    client.call("SET lock you");
    let second = token(&mut client, "LEASE.TOKEN lock you");
    expect(format!("granted {second} 2"));
    client.call("SET lock me");
    let third = token(&mut client, "LEASE.TOKEN lock me");
    expect(format!("ended {second} 2 superseded"));
    expect(format!("granted {third} 2"));
    client.call("LEASE.FORCE lock stuck");
    expect(format!("ended {third} 2 forced:stuck"));
    client.call("SET lock me PX 30");
    let Reply::Array(granted) = client.call("LEASE.HISTORY lock COUNT 1") else {
        panic!("a history")
    };
    let Reply::Array(newest) = &granted[0] else {
        panic!("an event")
    };
    let Reply::Integer(fourth) = newest[1] else {
        panic!("a token")
    };
    expect(format!("granted {fourth} 2"));
    expect(format!("ended {fourth} 2 expired"));
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_off_and_holds_up_nobody() {
    let node = Launch::in_memory().start();
    let (mut deaf, mut speaker) = (node.client(), node.client());
    deaf.call("SUBSCRIBE news");
    let message = vec![b'm'; 256 * 1_024];
    let before = node.resident_bytes();
    // What fits the sockets' buffers and the mailbox goes through; then the subscriber is gone.
    wait_until("it is cut off", || {
        let heard = speaker.call_args(&[b"PUBLISH".as_slice(), b"news", &message]);
        (heard == Reply::Integer(0)).then_some(())
    });
    assert_eq!(speaker.say("PING"), "+PONG");
    let grown = node.resident_bytes().saturating_sub(before);
    assert!(
        grown < 256 * 1_024 * 1_024,
        "{grown} bytes for a client that does not read"
    );
}

#[test]
fn subscriptions_are_bounded() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.call("HELLO 3");
    for pattern in 0..1_024 {
        let answer = client.say(&format!("PSUBSCRIBE {pattern}*"));
        assert!(answer.starts_with("("), "{answer}");
    }
    assert!(client.say("PSUBSCRIBE more*").starts_with("-LIMIT "));
    let long = "x".repeat(1_025);
    for with_pattern in ["PSUBSCRIBE", "PUBSUB CHANNELS", "KEYS", "SCAN 0 MATCH"] {
        let refused = node.client().say(&format!("{with_pattern} {long}"));
        assert_eq!(
            refused,
            "-LIMIT a pattern has at most 1024 bytes, this one has 1025"
        );
    }
    assert!(
        node.client()
            .say(&format!("SUBSCRIBE {long}"))
            .starts_with("[\"subscribe\"")
    );
}
