//! Callers that wait: granted in order, given up when they leave, and never granted for nobody.

use lease_core::wire::Reply;
use tests::clock::wait_until;
use tests::resp::{encoded, words};
use tests::{Client, Launch, Node};

/// A node whose lease `a` is held, and the holder's connection.
fn held(ttl_ms: u64) -> (Node, Client) {
    let node = Launch::in_memory().start();
    let mut holder = node.client();
    assert_eq!(holder.say(&format!("SET a holder NX PX {ttl_ms}")), "+OK");
    (node, holder)
}

/// How many stand in the queue for `a`.
fn waiting(client: &mut Client) -> Option<i64> {
    let seen = client.call("LEASE.GET a");
    match seen {
        Reply::Array(fields) => match fields.get(4) {
            Some(Reply::Integer(waiters)) => Some(*waiters),
            _ => None,
        },
        _ => None,
    }
}

fn wait_until_waiting(client: &mut Client, count: i64) {
    wait_until(&format!("{count} wait"), || {
        (waiting(client) == Some(count)).then_some(())
    });
}

fn owner(client: &mut Client) -> String {
    client.say("GET a")
}

#[test]
fn waiters_are_granted_in_the_order_of_their_arrival() {
    let (node, mut holder) = held(60_000);
    let mut waiters: Vec<Client> = Vec::new();
    for number in 0..3 {
        let mut client = node.client();
        client.send(&format!("LEASE.ACQUIRE a w{number} 60000 WAIT 60000"));
        wait_until_waiting(&mut holder, number + 1);
        waiters.push(client);
    }
    for (number, waiter) in waiters.iter_mut().enumerate() {
        assert_eq!(holder.say("DEL a"), ":1");
        assert!(waiter.hear().starts_with("[\"granted\", "));
        assert_eq!(owner(&mut holder), format!("\"w{number}\""));
    }
}

#[test]
fn the_end_of_a_dead_holders_time_wakes_the_first_in_the_queue() {
    let (node, _holder) = held(300);
    let mut waiter = node.client();
    let answer = waiter.call("LEASE.ACQUIRE a next 60000 WAIT 60000");
    let Reply::Array(fields) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(fields[0], Reply::bulk("granted"));
    assert_eq!(
        fields[2],
        Reply::Integer(60_000),
        "its time begins with the grant"
    );
    assert!(matches!(fields[3], Reply::Integer(0..=60_000)), "{fields:?}");
}

#[test]
fn a_wait_that_ends_is_answered_with_who_holds() {
    let (node, _holder) = held(60_000);
    let mut waiter = node.client();
    let answer = waiter.say("LEASE.ACQUIRE a next 60000 WAIT 50");
    assert!(
        answer.starts_with("[\"held\", ") && answer.contains("\"holder\""),
        "{answer}"
    );
    assert_eq!(waiting(&mut waiter), Some(0));
}

#[test]
fn a_waiter_whose_connection_is_cut_is_not_granted_and_the_next_is() {
    let (node, mut holder) = held(60_000);
    let mut dead = node.client();
    dead.send("LEASE.ACQUIRE a dead 60000 WAIT 60000");
    wait_until_waiting(&mut holder, 1);
    let mut alive = node.client();
    alive.send("LEASE.ACQUIRE a alive 60000 WAIT 60000");
    wait_until_waiting(&mut holder, 2);
    drop(dead);
    wait_until_waiting(&mut holder, 1);
    assert_eq!(holder.say("DEL a"), ":1");
    assert!(alive.hear().starts_with("[\"granted\", "));
    assert_eq!(owner(&mut holder), "\"alive\"");
    let history = holder.say("LEASE.HISTORY a");
    assert!(
        !history.contains("\"dead\""),
        "never granted, not for a moment: {history}"
    );
}

#[test]
fn a_waiter_with_a_request_id_comes_back_to_its_place() {
    let (node, mut holder) = held(60_000);
    let mut first = node.client();
    first.send("LEASE.ACQUIRE a first 60000 WAIT 60000 REQ r");
    wait_until_waiting(&mut holder, 1);
    let mut second = node.client();
    second.send("LEASE.ACQUIRE a second 60000 WAIT 60000");
    wait_until_waiting(&mut holder, 2);
    drop(first);
    let mut again = node.client();
    again.send("LEASE.ACQUIRE a first 60000 WAIT 60000 REQ r");
    assert_eq!(
        waiting(&mut holder),
        Some(2),
        "whether it is back already or its place is kept"
    );
    assert_eq!(holder.say("DEL a"), ":1");
    assert!(again.hear().starts_with("[\"granted\", "));
    assert_eq!(owner(&mut holder), "\"first\"");
    drop(second);
}

#[test]
fn a_wait_moves_to_the_connection_that_asked_last() {
    let (node, mut holder) = held(60_000);
    let mut old = node.client();
    old.send("LEASE.ACQUIRE a me 60000 WAIT 60000 REQ r");
    wait_until_waiting(&mut holder, 1);
    let mut new = node.client();
    new.send("LEASE.ACQUIRE a me 60000 WAIT 60000 REQ r");
    let told = old.hear();
    assert!(
        told.starts_with("-UNKNOWN ") && told.contains("another connection"),
        "{told}"
    );
    assert_eq!(waiting(&mut holder), Some(1));
    assert_eq!(holder.say("DEL a"), ":1");
    assert!(new.hear().starts_with("[\"granted\", "));
    assert_eq!(old.say("PING"), "+PONG");
}

#[test]
fn a_wait_can_be_cancelled_from_another_connection() {
    let (node, mut holder) = held(60_000);
    let mut waiter = node.client();
    waiter.send("LEASE.ACQUIRE a me 60000 WAIT 60000 REQ r");
    wait_until_waiting(&mut holder, 1);
    assert_eq!(holder.say("LEASE.CANCEL a me REQ r"), "[\"cancelled\"]");
    assert_eq!(waiter.hear(), "[\"ended\", nil, \"cancelled\"]");
    assert_eq!(
        waiter.say("LEASE.ACQUIRE a me 60000 WAIT 60000 REQ r"),
        "[\"ended\", nil, \"cancelled\"]"
    );
    assert_eq!(waiting(&mut holder), Some(0));
}

#[test]
fn a_caller_that_only_closed_its_sending_half_gets_its_answer() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.send("SET a me NX PX 60000");
    client.send("GET a");
    client.finish_sending();
    assert_eq!(
        (client.hear(), client.hear()),
        ("+OK".to_owned(), "\"me\"".to_owned())
    );
    client.expect_end();
    assert_eq!(
        owner(&mut node.client()),
        "\"me\"",
        "it had its answer, so it keeps its lease"
    );
}

#[test]
fn a_caller_that_got_its_answer_and_left_keeps_its_lease() {
    let node = Launch::in_memory().start();
    assert_eq!(node.client().say("SET a gone NX PX 60000"), "+OK");
    assert!(
        node.client()
            .say("LEASE.ACQUIRE b gone 60000")
            .starts_with("[\"granted\"")
    );
    let mut other = node.client();
    assert_eq!(other.say("EXISTS a b"), ":2");
}

#[test]
fn of_answers_that_were_written_in_part_the_grants_that_were_not_are_undone() {
    let node = Launch::in_memory().start();
    let mut other = node.client();
    let value = "v".repeat(1_000_000);
    for number in 0..32 {
        assert_eq!(other.say(&format!("SET large-{number} {value}")), "+OK");
    }
    let mut gone = node.client();
    // All are changes, so their answers are written together: far more than a socket holds.
    let large = (0..32).map(|number| format!("SET large-{number} small GET"));
    let lock = |name: &str| format!("SET {name} gone NX PX 600000");
    let commands = std::iter::once(lock("first")).chain(large).chain([lock("last")]);
    let bytes = commands.flat_map(|command| encoded(&words(&command)));
    gone.send_raw(&bytes.collect::<Vec<u8>>());
    assert_eq!(
        gone.receive(),
        Reply::OK,
        "the first answer is on its way, with the others behind it"
    );
    assert_eq!(other.say("GET last"), "\"gone\"");
    drop(gone);
    wait_until("what was not written is undone", || {
        (other.say("GET last") == "nil").then_some(())
    });
    assert_eq!(other.say("GET first"), "\"gone\"");
}

#[test]
fn a_waiter_that_closes_its_sending_half_gives_its_place_up() {
    // From here the end of a dead process looks the same, and a dead process must not be granted anything.
    let (node, mut holder) = held(60_000);
    let mut waiter = node.client();
    waiter.send("LEASE.ACQUIRE a half 60000 WAIT 60000");
    wait_until_waiting(&mut holder, 1);
    waiter.finish_sending();
    wait_until_waiting(&mut holder, 0);
    waiter.expect_end();
    assert_eq!(holder.say("DEL a"), ":1");
    assert_eq!(owner(&mut holder), "nil");
}
