//! More than a server has room for: refused with a clear word, and everybody admitted is served.

use std::net::TcpStream;

use tests::clock::wait_until;
use tests::{Client, Launch, Node, http};

#[test]
fn one_client_too_many_is_told_so_and_has_room_again_later() {
    let node = Launch::in_memory().args(["--max-connections", "3"]).start();
    let mut admitted: Vec<Client> = (0..3).map(|_| node.client()).collect();
    for client in &mut admitted {
        assert_eq!(client.say("PING"), "+PONG");
    }
    let mut refused = node.client();
    assert_eq!(refused.hear(), "-ERR max number of clients reached");
    refused.expect_end();
    for client in &mut admitted {
        assert_eq!(client.say("PING"), "+PONG");
    }
    drop(admitted.pop());
    wait_until("there is room again", || {
        let mut client = node.client();
        client
            .try_call(&["PING"])
            .is_ok_and(|reply| tests::show::show(&reply) == "+PONG")
            .then_some(())
    });
    let metrics = http::get(node.admin(), "/metrics").body;
    let refused = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lease_connections_refused_total "));
    assert!(refused.unwrap().parse::<u64>().unwrap() >= 1, "{metrics}");
    node.stop();
}

#[test]
fn twelve_hundred_idle_connections_are_held_for_little_memory() {
    const IDLE: usize = 1_200;
    raise_own_descriptors();
    let node = Launch::in_memory().start();
    assert_eq!(node.client().say("SET a b NX"), "+OK");
    let before = node.resident_bytes();
    let idle: Vec<TcpStream> = (0..IDLE)
        .map(|_| TcpStream::connect(node.resp()).unwrap())
        .collect();
    wait_until("all are admitted", || (connections(&node) >= IDLE).then_some(()));
    let mut client = node.client();
    for _ in 0..100 {
        assert_eq!(client.say("GET a"), "\"b\"");
    }
    let each = node.resident_bytes().saturating_sub(before) / IDLE as u64;
    // One read's buffer (16 KiB) and the task.
    assert!(each < 32 * 1_024, "an idle connection takes {each} bytes");
    drop(idle);
    wait_until("all are gone", || (connections(&node) <= 1).then_some(()));
    node.stop();
}

fn connections(node: &Node) -> usize {
    let metrics = http::get(node.admin(), "/metrics").body;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lease_connections "));
    line.unwrap().parse().unwrap()
}

/// Raises the descriptors of this process, and of the servers that it starts, as far as it may. Says how far: `None` is
/// without a limit. Both ends of each connection may count against one limit.
pub(crate) fn raise_own_descriptors() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    maximum
}

#[test]
fn a_server_without_descriptors_goes_on_with_those_it_has() {
    let node = Launch::in_memory().descriptors_max(40).start();
    let mut client = node.client();
    assert_eq!(client.say("SET a b NX"), "+OK");
    let crowd: Vec<TcpStream> = (0..100)
        .filter_map(|_| TcpStream::connect(node.resp()).ok())
        .collect();
    for _ in 0..100 {
        assert_eq!(client.say("GET a"), "\"b\"");
    }
    drop(crowd);
    assert_eq!(
        node.client().say("GET a"),
        "\"b\"",
        "whoever comes later waits for a place"
    );
    node.stop();
}
