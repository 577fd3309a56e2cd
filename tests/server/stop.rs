//! How a node stops: cleanly and at once, whoever is connected.

use rustix::process::Signal;
use tests::Launch;
use tests::clock::{Deadline, wait_until};

use std::time::Duration;

/// Well below the five seconds that connections are given to end: nobody here needs them.
const PROMPTLY: Duration = Duration::from_secs(4);

#[test]
fn both_signals_stop_a_node_cleanly_and_promptly_with_clients_connected() {
    for signal in [Signal::INT, Signal::TERM] {
        let directory = tempfile::tempdir().unwrap();
        let node = Launch::in_directory(directory.path()).start();
        let mut idle = node.client();
        let mut half = node.client();
        let mut busy = node.client();
        assert_eq!(busy.say("SET a b NX PX 60000"), "+OK");
        assert_eq!(idle.say("PING"), "+PONG");
        half.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\n");
        let deadline = Deadline::after(PROMPTLY);
        node.signal(signal);
        let exit = node.wait();
        assert!(deadline.left().is_some(), "it took longer than {PROMPTLY:?}");
        exit.expect_clean();
        for client in [&mut idle, &mut half, &mut busy] {
            client.expect_end();
        }
        let again = Launch::in_directory(directory.path()).start();
        assert_eq!(again.client().say("GET a"), "\"b\"");
        again.stop();
    }
}

#[test]
fn a_waiting_acquire_is_told_that_it_may_try_again() {
    let directory = tempfile::tempdir().unwrap();
    let node = Launch::in_directory(directory.path()).start();
    let mut holder = node.client();
    assert_eq!(holder.say("SET a holder NX PX 60000"), "+OK");
    let mut waiter = node.client();
    waiter.send("LEASE.ACQUIRE a waiter 60000 WAIT 60000 REQ r1");
    wait_until("it waits", || {
        holder.say("LEASE.GET a").contains(", :1, ").then_some(())
    });
    let deadline = Deadline::after(PROMPTLY);
    node.signal(Signal::TERM);
    node.wait().expect_clean();
    assert!(deadline.left().is_some(), "it took longer than {PROMPTLY:?}");
    let told = waiter.hear();
    assert!(
        told.starts_with("-UNKNOWN ") && told.contains("same request id"),
        "{told}"
    );
    waiter.expect_end();
    // What it waited for is still held, and the dead caller is not granted it.
    let again = Launch::in_directory(directory.path()).start();
    let mut client = again.client();
    let seen = client.say("LEASE.ACQUIRE a other 60000");
    assert!(
        seen.starts_with("[\"held\", ") && seen.contains("\"holder\""),
        "{seen}"
    );
    assert_eq!(client.say("DEL a"), ":1");
    let granted = client.say("LEASE.ACQUIRE a other 60000");
    assert!(granted.starts_with("[\"granted\", "), "{granted}");
    again.stop();
}

#[test]
fn a_client_that_does_not_read_its_answers_cannot_hold_up_a_stop() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let value = vec![b'v'; 900_000];
    assert_eq!(
        tests::show::show(&client.call_args(&[b"SET".as_slice(), b"big", &value])),
        "+OK"
    );
    // More than any socket buffers.
    for _ in 0..64 {
        client.send("GET big");
    }
    let deadline = Deadline::after(Duration::from_secs(15));
    node.signal(Signal::TERM);
    node.wait().expect_clean();
    assert!(
        deadline.left().is_some(),
        "a client that does not read held it up"
    );
}
