//! Channels among three nodes: what is published on one is heard on all.

use lease_core::wire::Reply;
use tests::Client;
use tests::clock::wait_until;

use crate::trio::{NODES, Trio, others};

/// A client that listens to `channels`.
fn listener(trio: &Trio, id: u64, channels: &str) -> Client {
    let mut client = trio.client(id);
    client.call("HELLO 3");
    client.send(&format!("SUBSCRIBE {channels}"));
    for _ in channels.split(' ') {
        assert!(client.hear().starts_with("(\"subscribe\""));
    }
    client
}

/// The texts of the next messages.
fn heard(client: &mut Client, count: usize) -> Vec<String> {
    let text = |client: &mut Client| match client.receive() {
        Reply::Push(parts) => match parts.as_slice() {
            [_, _, Reply::Bulk(text)] => String::from_utf8_lossy(text).into_owned(),
            other => panic!("no message: {other:?}"),
        },
        other => panic!("no message: {other:?}"),
    };
    (0..count).map(|_| text(client)).collect()
}

#[test]
fn a_message_and_a_grant_are_heard_once_on_every_node_and_in_one_order_across_a_change_of_leaders() {
    let mut trio = Trio::form(NODES);
    let leader = trio.leader();
    let [here, there] = others(leader);
    let mut listeners = [leader, here, there].map(|id| listener(&trio, id, "news lease:lock"));
    let mut speaker = trio.client(here);
    for number in 0..20 {
        // Of subscribers this node knows its own.
        assert_eq!(speaker.say(&format!("PUBLISH news {number}")), ":1");
    }
    assert_eq!(speaker.say("SET lock me NX PX 600000"), "+OK");
    let Reply::Integer(token) = speaker.call("LEASE.TOKEN lock me") else {
        panic!("it is held")
    };
    let mut expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    expected.push(format!("granted {token} 0"));
    for listener in &mut listeners {
        assert_eq!(heard(listener, 21), expected);
    }
    let [_, mut at_here, mut at_there] = listeners;
    trio.kill(leader);
    let mut speaker = trio.client(there);
    // What is not known to have been applied is said again, and may then be heard twice.
    wait_until("it is said", || {
        match speaker.try_call(&["PUBLISH", "news", "after"]) {
            Ok(Reply::Integer(_)) => Some(()),
            _ => None,
        }
    });
    assert_eq!(heard(&mut at_here, 1), ["after"]);
    assert_eq!(heard(&mut at_there, 1), ["after"]);
}
