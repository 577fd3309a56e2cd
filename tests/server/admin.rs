//! The admin address: health, readiness, metrics and the state of the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tests::clock::{Deadline, SOON, wait_until};
use tests::{Launch, Node, http};

pub(crate) fn metrics(node: &Node) -> BTreeMap<String, f64> {
    let answer = http::get(node.admin(), "/metrics");
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    parse_prometheus(&answer.body)
}

/// Reads Prometheus's text format, strictly: every sample has its help and type before it, and no name comes twice.
fn parse_prometheus(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with('\n'));
    let (mut helped, mut typed, mut samples) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty() && !helped.contains(&name), "{line}");
            helped.push(name);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            typed.insert(name, kind);
        } else {
            let (name, value) = line.split_once(' ').unwrap();
            assert!(
                name.chars()
                    .all(|letter| letter.is_ascii_lowercase() || "_:".contains(letter)),
                "{line}"
            );
            assert!(helped.contains(&name) && typed.contains_key(name), "{line}");
            assert_eq!(
                samples.insert(name.to_owned(), value.parse().unwrap()),
                None,
                "{line}"
            );
        }
    }
    samples
}

#[test]
fn a_node_that_serves_is_healthy_and_ready() {
    let node = Launch::in_memory().start();
    for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let answer = http::get(node.admin(), path);
        assert_eq!((answer.status, answer.body.as_str()), (200, body));
    }
    assert_eq!(http::get(node.admin(), "/no-such-thing").status, 404);
    assert_eq!(http::get(node.admin(), "/").status, 404);
    assert_eq!(http::request(node.admin(), "POST", "/healthz").status, 405);
    node.stop();
}

#[test]
fn counters_move_with_what_is_asked() {
    let node = Launch::in_memory().start();
    let before = metrics(&node);
    let mut client = node.client();
    assert_eq!(client.say("SET a b NX"), "+OK");
    assert!(
        client
            .say("LEASE.ACQUIRE c d 60000 REQ r")
            .starts_with("[\"granted\"")
    );
    assert!(client.say("NONSENSE").starts_with("-ERR"));
    let mut waiter = node.client();
    waiter.send("LEASE.ACQUIRE a w 60000 WAIT 60000");
    let after = wait_until("somebody waits", || {
        let now = metrics(&node);
        (now["lease_waiters"] == 1.0).then_some(now)
    });
    assert_eq!(after["lease_leases_held"], 2.0);
    assert_eq!(after["lease_parked_callers"], 1.0);
    assert_eq!(after["lease_requests_remembered"], 1.0);
    assert_eq!(after["lease_raft_leading"], 1.0);
    assert_eq!(after["lease_connections"], 2.0);
    let grew = |name: &str| after[name] - before[name];
    assert_eq!(grew("lease_connections_accepted_total"), 2.0);
    assert!(grew("lease_commands_proposed_total") >= 3.0, "{after:#?}");
    assert!(grew("lease_raft_applied_index") >= 3.0, "{after:#?}");
    assert_eq!(grew("lease_last_token"), 2.0);
    assert_eq!(
        grew("lease_requests_total"),
        3.0,
        "also those of a connection that is still open"
    );
    assert_eq!(grew("lease_request_errors_total"), 1.0);
    node.stop();
}

#[test]
fn the_cluster_is_shown_with_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let node = Launch::in_directory(directory.path())
        .args(["--node-id", "3"])
        .start();
    let answer = http::get(node.admin(), "/v1/cluster");
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json"))
    );
    let cluster: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(cluster["node"], 3);
    assert_eq!(cluster["leader"], 3);
    assert!(cluster["term"].as_u64().unwrap() >= 1, "{cluster}");
    assert!(cluster["applied_index"].as_u64().unwrap() >= 1, "{cluster}");
    let members = cluster["members"].as_array().unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(
        (&members[0]["node"], &members[0]["role"]),
        (&Value::from(3), &Value::from("voter"))
    );
    node.stop();
}

#[test]
fn peers_that_send_nothing_take_few_connections_and_hold_up_no_shutdown() {
    use std::io::{Read as _, Write as _};
    let node = Launch::in_memory().start();
    let connect = || std::net::TcpStream::connect(node.admin()).unwrap();
    let mut half: Vec<_> = (0..32).map(|_| connect()).collect();
    for socket in &mut half {
        socket.write_all(b"GET /healthz HT").unwrap();
    }
    let silent: Vec<_> = (0..32).map(|_| connect()).collect();
    // There is no room for another one, which is closed unanswered.
    wait_until("the connections are full", || {
        let mut socket = connect();
        let _ = socket.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
        let mut answer = Vec::new();
        matches!(socket.read_to_end(&mut answer), Ok(0) | Err(_)).then_some(())
    });
    drop(silent);
    wait_until("there is room again", || {
        let mut socket = connect();
        socket
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        let read = socket.read_to_string(&mut answer);
        (read.is_ok() && answer.starts_with("HTTP/1.1 200 ")).then_some(())
    });
    let deadline = Deadline::after(Duration::from_secs(4));
    node.stop();
    assert!(deadline.left().is_some(), "half a request holds the shutdown up");
}

#[test]
fn half_a_request_is_cut_off_in_time() {
    use std::io::{Read as _, Write as _};
    let node = Launch::in_memory().start();
    let mut socket = std::net::TcpStream::connect(node.admin()).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket.write_all(b"GET /healthz HT").unwrap();
    let mut rest = Vec::new();
    // An answer that says so, or none; but an end.
    socket.read_to_end(&mut rest).unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    node.stop();
}

#[test]
fn a_request_that_is_no_http_harms_nobody() {
    use std::io::Write as _;
    let node = Launch::in_memory().start();
    for bytes in [
        &b"*1\r\n$4\r\nPING\r\n"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n",
    ] {
        let mut socket = std::net::TcpStream::connect(node.admin()).unwrap();
        socket.write_all(bytes).unwrap();
    }
    assert_eq!(http::get(node.admin(), "/healthz").status, 200);
    node.stop();
}
