//! Clients that mean harm or know no better: each is told what is wrong, if it can be, and harms nobody else.

use std::io::{Read as _, Write as _};

use lease_core::wire::Reply;
use tests::resp::{encoded, words};
use tests::{Client, Launch, Node};

use crate::overload::raise_own_descriptors;

/// A client that was there before, and must be served as before.
struct Bystander(Client);

impl Bystander {
    fn of(node: &Node) -> Self {
        let mut client = node.client();
        assert_eq!(client.say("SET bystander here NX PX 60000"), "+OK");
        Self(client)
    }

    #[track_caller]
    fn expect_served(&mut self) {
        assert_eq!(self.0.say("GET bystander"), "\"here\"");
    }
}

#[test]
fn every_malformed_frame_is_answered_with_its_error_and_the_end_of_its_connection() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let table: [(&[u8], &str); 18] = [
        (b"*x\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*1x\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*\r\n", "-ERR Protocol error: invalid multibulk length"),
        (
            b"*1000000000\r\n",
            "-ERR Protocol error: invalid multibulk length",
        ),
        (
            b"*2147483648\r\n",
            "-ERR Protocol error: invalid multibulk length",
        ),
        (
            b"*99999999999999999999\r\n",
            "-ERR Protocol error: invalid multibulk length",
        ),
        (b"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'"),
        (b"*1\r\n*1\r\n", "-ERR Protocol error: expected '$', got '*'"),
        (b"*1\r\n\0\r\n", "-ERR Protocol error: expected '$', got '"),
        (b"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length"),
        (
            b"*1\r\n$536870912\r\nab",
            "-ERR Protocol error: invalid bulk length",
        ),
        (
            b"*1\r\n$9223372036854775808\r\n",
            "-ERR Protocol error: invalid bulk length",
        ),
        (b"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: "),
        (
            b"SET \"a\r\n",
            "-ERR Protocol error: unbalanced quotes in request",
        ),
        (
            b"SET 'a'b c\r\n",
            "-ERR Protocol error: unbalanced quotes in request",
        ),
        (b"PING\0\r\n", "-ERR Protocol error: "),
        (b"PING\r\n*x\r\nPING\r\n", "+PONG"),
    ];
    for (bytes, answer) in table {
        let mut client = node.client();
        client.send_raw(bytes);
        let got = client.hear();
        assert!(got.starts_with(answer), "{}: {got}", bytes.escape_ascii());
        if got == "+PONG" {
            assert_eq!(client.hear(), "-ERR Protocol error: invalid multibulk length");
        }
        client.expect_end();
        bystander.expect_served();
    }
}

#[test]
fn a_request_before_a_broken_one_is_done_and_one_behind_it_is_not() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.send_raw(b"SET before 1 NX\r\n*1\r\n$x\r\nSET behind 1 NX\r\n");
    assert_eq!(client.hear(), "+OK");
    assert!(client.hear().starts_with("-ERR Protocol error"));
    client.expect_end();
    assert_eq!(node.client().say("EXISTS before"), ":1");
    assert_eq!(node.client().say("EXISTS behind"), ":0");
}

#[test]
fn two_hundred_thousand_arrays_within_arrays_are_refused_at_the_first() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let mut client = node.client();
    // The server may close while this is still being written.
    let _ = client.try_send_raw(&b"*1\r\n".repeat(200_000));
    if let Ok(reply) = client.try_receive() {
        assert_eq!(
            tests::show::show(&reply),
            "-ERR Protocol error: expected '$', got '*'"
        );
    }
    bystander.expect_served();
}

#[test]
fn a_line_that_never_ends_is_cut_off_at_its_bound() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let before = node.resident_bytes();
    let lines: [(&[u8], &str); 3] = [
        (b"", "-ERR Protocol error: too big inline request"),
        (b"*", "-ERR Protocol error: too big mbulk count string"),
        (b"*1\r\n$", "-ERR Protocol error: too big bulk count string"),
    ];
    for (start, answer) in lines {
        // As long as is taken, and not a byte more: what the server leaves unread would reset the connection, and the
        // reset may overtake the answer.
        let mut client = node.client();
        let line_start = start.len()
            - start
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
        client.send_raw(start);
        client.send_raw(&vec![b'1'; 64 * 1_024 + 1 - line_start]);
        assert_eq!(client.hear(), answer);
        client.expect_end();
        // Eight megabytes: cut off on the way.
        let mut client = node.client();
        client.send_raw(start);
        let _ = client.try_send_raw(&vec![b'1'; 8 * 1_024 * 1_024]);
        if let Ok(reply) = client.try_receive() {
            assert_eq!(tests::show::show(&reply), answer);
        }
        client.expect_end();
        bystander.expect_served();
    }
    let grown = node.resident_bytes().saturating_sub(before);
    assert!(
        grown < 8 * 1_024 * 1_024,
        "{grown} bytes were kept for lines that never end"
    );
}

#[test]
fn huge_announcements_cost_no_memory() {
    let node = Launch::in_memory().start();
    let before = node.resident_bytes();
    let clients: Vec<Client> = (0..50)
        .map(|_| {
            let mut client = node.client();
            client.send_raw(b"*65536\r\n$1048576\r\nx");
            client
        })
        .collect();
    Bystander::of(&node).expect_served();
    let grown = node.resident_bytes().saturating_sub(before);
    assert!(
        grown < 16 * 1_024 * 1_024,
        "{grown} bytes for 50 announcements of 64 GiB"
    );
    drop(clients);
}

#[test]
fn a_request_that_trickles_in_byte_by_byte_is_served_and_holds_up_nobody() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let mut client = node.client();
    let request = encoded(&words("SET trickle drop NX PX 60000"));
    for byte in request.iter() {
        client.send_raw(&[*byte]);
        bystander.expect_served();
    }
    assert_eq!(client.hear(), "+OK");
    // Many arguments in small pieces: the work must not grow with the square of the length.
    let keys: Vec<String> = (0..20_000).map(|number| format!("key:{number}")).collect();
    let mut args = vec!["EXISTS"];
    args.extend(keys.iter().map(String::as_str));
    for piece in encoded(&args).chunks(64) {
        client.send_raw(piece);
    }
    assert_eq!(client.hear(), ":0");
    bystander.expect_served();
}

#[test]
fn a_client_that_never_reads_costs_one_batch_of_answers_and_holds_up_nobody() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let value = vec![b'v'; 500_000];
    assert_eq!(
        bystander.0.call_args(&[b"SET".as_slice(), b"big", &value]),
        Reply::OK
    );
    let before = node.resident_bytes();
    let mut deaf = node.client();
    // A gigabyte of answers, asked for in one write.
    deaf.send_raw(&encoded(&words("GET big")).repeat(2_000));
    for _ in 0..200 {
        bystander.expect_served();
    }
    let grown = node.resident_bytes().saturating_sub(before);
    assert!(
        grown < 32 * 1_024 * 1_024,
        "answers that nobody reads took {grown} bytes"
    );
    // It begins to read after all: it is answered.
    for _ in 0..20 {
        assert_eq!(deaf.receive(), Reply::bulk(&value));
    }
    bystander.expect_served();
}

#[test]
fn random_bytes_end_no_server() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let seed = tests::random::Random::seed(42);
    let mut random = tests::random::Random::new(seed);
    let alphabet = b"*$:+-0123456789\r\n\r\n\r\nSETGETLEASE.ACQUIRE \"'\0\xff";
    for round in 0..200 {
        let len = random.below(400);
        let noise: Vec<u8> = (0..len).map(|_| *random.choose(alphabet)).collect();
        let client = node.client();
        // The server may close at any byte.
        let _ = client.socket().write_all(&noise);
        client.finish_sending();
        let mut answers = Vec::new();
        let read = client.socket().read_to_end(&mut answers);
        let reset = read.is_err_and(|error| error.kind() != std::io::ErrorKind::ConnectionReset);
        assert!(!reset, "seed {seed}, round {round}: {}", noise.escape_ascii());
        bystander.expect_served();
    }
    node.stop();
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_others_are_served() {
    const IDLE: usize = 10_000;
    // Beside them, a process has files and sockets of its own, and of other tests.
    const DESCRIPTORS: u64 = 14_000;
    let limit = raise_own_descriptors();
    let node = Launch::in_memory().args(["--max-connections", "10100"]).start();
    let mut bystander = Bystander::of(&node);
    let before = node.resident_bytes();
    let open: Vec<_> = (0..IDLE)
        .map_while(|_| std::net::TcpStream::connect(node.resp()).ok())
        .collect();
    bystander.expect_served();
    let are_allowed = limit.is_none_or(|limit| limit >= DESCRIPTORS);
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    // Somebody's own machine may allow fewer descriptors.
    let wanted = if are_allowed || is_ci { IDLE } else { 900 };
    assert!(
        open.len() >= wanted,
        "only {} of {wanted} connections; the hard limit of descriptors is {limit:?}, and {DESCRIPTORS} would do",
        open.len()
    );
    for idle in [open.first(), open.last()].into_iter().flatten() {
        let mut idle = idle;
        idle.write_all(b"PING\r\n").unwrap();
        let mut answer = [0; 7];
        idle.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+PONG\r\n");
    }
    bystander.expect_served();
    let each = node.resident_bytes().saturating_sub(before) / open.len() as u64;
    assert!(each < 32 * 1_024, "{each} bytes for an idle connection");
}

#[test]
fn a_value_that_is_read_many_times_in_one_request_is_refused_before_it_is_copied() {
    let node = Launch::in_memory().start();
    let mut bystander = Bystander::of(&node);
    let value = "v".repeat(1_024 * 1_024);
    let mut client = node.client();
    client.call_args(&["SET", "big", &value]);
    let before = node.resident_bytes();
    let read = |times: usize| {
        let mut request = vec!["big"; times + 1];
        request[0] = "MGET";
        request
    };
    let refused = tests::show::show(&client.call_args(&read(65_000)));
    assert!(refused.starts_with("-LIMIT "), "{refused}");
    client.call("MULTI");
    client.call_args(&read(4_097));
    let refused = client.say("EXEC");
    assert!(
        refused.starts_with("-LIMIT ") && refused.contains("4096"),
        "{refused}"
    );
    for also in ["GET small", "SET small s"] {
        client.call("MULTI");
        for _ in 0..20 {
            client.call_args(&read(3));
        }
        client.call(also);
        let Reply::Array(answers) = client.call("EXEC") else {
            panic!("the answers of a transaction")
        };
        let is_refused = |reply: &&Reply| matches!(reply, Reply::Error(_));
        assert_eq!(
            answers.iter().filter(is_refused).count(),
            10,
            "32 of 60 values fit"
        );
    }
    bystander.expect_served();
    let grown = node.resident_bytes().saturating_sub(before);
    assert!(grown < 256 * 1_024 * 1_024, "it took {grown} bytes");
}
