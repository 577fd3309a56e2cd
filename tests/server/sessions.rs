//! What a connection is: its greeting, its protocol, its database, its end. Exact bytes, in both protocols.

use tests::resp::{encoded, words};
use tests::{Client, Launch};

/// Asks with a command's words and compares the bytes of the answer.
#[track_caller]
fn expect(client: &mut Client, command: &str, answer: &str) {
    let got = client.call_raw(&words(command));
    let got = got.escape_ascii().to_string();
    assert_eq!(got, answer.escape_default().to_string(), "{command}");
}

const HELLO_FIELDS: [&str; 7] = ["server", "version", "proto", "id", "mode", "role", "modules"];

#[test]
fn hello_greets_in_the_protocol_that_it_asks_for() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let two = client.say("HELLO 2");
    let three = client.say("HELLO 3");
    for field in HELLO_FIELDS {
        assert!(two.contains(&format!("\"{field}\", ")), "{field} of {two}");
        assert!(three.contains(&format!("\"{field}\": ")), "{field} of {three}");
    }
    assert!(
        two.contains("\"proto\", :2") && two.contains("\"modules\", []"),
        "{two}"
    );
    assert!(
        three.contains("\"proto\": :3") && three.contains("\"mode\": \"standalone\""),
        "{three}"
    );
    assert!(
        three.contains("\"role\": \"master\"") && three.contains("\"server\": \"lease-store\""),
        "{three}"
    );
    assert_eq!(client.say("HELLO"), three, "the protocol stays");
    expect(&mut client, "GET none", "_\r\n");
    expect(
        &mut client,
        "HELLO 4",
        "-NOPROTO unsupported protocol version\r\n",
    );
    expect(
        &mut client,
        "HELLO x",
        "-ERR Protocol version is not an integer or out of range\r\n",
    );
    expect(
        &mut client,
        "HELLO 3 WHAT",
        "-ERR Syntax error in HELLO option 'WHAT'\r\n",
    );
    expect(&mut client, "GET none", "_\r\n");
    assert!(client.say("hello 2 setname me").contains("\"proto\", :2"));
    expect(&mut client, "CLIENT GETNAME", "$2\r\nme\r\n");
    expect(&mut client, "GET none", "$-1\r\n");
}

#[test]
fn hello_may_come_as_an_inline_request() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.send_raw(b"HELLO 3\r\n");
    assert!(client.hear().contains("\"proto\": :3"));
    client.send_raw(b"  ping \"a b\"\n");
    assert_eq!(client.hear(), "\"a b\"");
}

#[test]
fn a_pipeline_is_answered_in_the_protocol_of_each_place_in_it() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let mut pipeline = Vec::new();
    for command in [
        "SET a b NX",
        "SET a b NX",
        "HELLO 3",
        "SET a b NX",
        "HELLO 2",
        "SET a b NX",
        "PING",
    ] {
        pipeline.extend_from_slice(&encoded(&words(command)));
    }
    client.send_raw(&pipeline);
    let socket = client.socket();
    let text = read_until(socket, b"+PONG\r\n");
    assert!(text.starts_with("+OK\r\n$-1\r\n%7\r\n"), "{text}");
    assert!(text.contains("*0\r\n_\r\n*14\r\n"), "{text}");
    assert!(text.ends_with("*0\r\n$-1\r\n+PONG\r\n"), "{text}");
}

fn read_until(mut socket: &std::net::TcpStream, end: &[u8]) -> String {
    use std::io::Read as _;
    let mut read = Vec::new();
    let mut bytes = [0; 4_096];
    while !read.ends_with(end) {
        let count = socket.read(&mut bytes).unwrap();
        assert!(count > 0, "{}", read.escape_ascii());
        read.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8(read).unwrap()
}

#[test]
fn the_small_commands_answer_as_redis_does() {
    let node = Launch::in_memory().start();
    for protocol in ["2", "3"] {
        let mut client = node.client();
        client.call(&format!("HELLO {protocol}"));
        let nil = if protocol == "2" { "$-1\r\n" } else { "_\r\n" };
        expect(&mut client, "PING", "+PONG\r\n");
        expect(&mut client, "ping hello", "$5\r\nhello\r\n");
        expect(
            &mut client,
            "PING a b",
            "-ERR wrong number of arguments for 'ping' command\r\n",
        );
        expect(&mut client, "ECHO hello", "$5\r\nhello\r\n");
        expect(
            &mut client,
            "ECHO",
            "-ERR wrong number of arguments for 'echo' command\r\n",
        );
        expect(&mut client, "CLIENT GETNAME", nil);
        expect(&mut client, "CLIENT SETNAME worker-a", "+OK\r\n");
        expect(&mut client, "CLIENT GETNAME", "$8\r\nworker-a\r\n");
        expect(&mut client, "CLIENT SETINFO LIB-NAME redis-py(x,y)", "+OK\r\n");
        expect(&mut client, "CLIENT SETINFO LIB-VER 8.1.0", "+OK\r\n");
        expect(&mut client, "CLIENT TRACKING ON OPTIN", "+OK\r\n");
        expect(&mut client, "client tracking on noloop optin", "+OK\r\n");
        expect(&mut client, "CLIENT TRACKING OFF", "+OK\r\n");
        for followed in [
            "",
            " BCAST",
            " OPTOUT",
            " OPTIN BCAST",
            " OPTIN PREFIX a",
            " NOLOOP",
        ] {
            let refused = client.say(&format!("CLIENT TRACKING ON{followed}"));
            assert!(refused.starts_with("-ERR no key is followed here"), "{refused}");
        }
        expect(
            &mut client,
            "CLIENT TRACKING MAYBE OPTIN",
            "-ERR syntax error\r\n",
        );
        let refused = client.say("CLIENT MAINT_NOTIFICATIONS ON");
        assert!(
            refused.starts_with("-ERR unknown subcommand 'MAINT_NOTIFICATIONS'"),
            "{refused}"
        );
        assert!(client.say("CLIENT ID").starts_with(':'));
        expect(&mut client, "COMMAND", "*0\r\n");
        expect(
            &mut client,
            "COMMAND DOCS",
            if protocol == "2" { "*0\r\n" } else { "%0\r\n" },
        );
        assert!(client.say("COMMAND COUNT").starts_with(':'));
        let text = "-ERR unknown command 'FLY', with args beginning with: 'to' 'the' \r\n";
        expect(&mut client, "FLY to the", text);
        expect(&mut client, "SELECT 3", "+OK\r\n");
        expect(&mut client, "SELECT 16", "-ERR DB index is out of range\r\n");
        expect(&mut client, "SELECT -1", "-ERR DB index is out of range\r\n");
        expect(
            &mut client,
            "SELECT x",
            "-ERR value is not an integer or out of range\r\n",
        );
        expect(&mut client, "RESET", "+RESET\r\n");
        // As a connection starts: RESP2, no name.
        expect(&mut client, "CLIENT GETNAME", "$-1\r\n");
        expect(&mut client, "QUIT", "+OK\r\n");
        client.expect_end();
    }
}

#[test]
fn what_stands_behind_a_quit_is_not_done() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    client.send_raw(b"SET a b NX\r\nQUIT\r\nSET c d NX\r\n");
    assert_eq!(
        (client.hear(), client.hear()),
        ("+OK".to_owned(), "+OK".to_owned())
    );
    client.expect_end();
    assert_eq!(node.client().say("EXISTS a c"), ":1");
}

#[test]
fn info_has_the_fields_that_clients_read() {
    let node = Launch::in_memory().start();
    let mut client = node.client();
    let all = client.say("INFO");
    for field in [
        "redis_version:8.4.0",
        "redis_mode:standalone",
        "arch_bits:64",
        "loading:0",
        "role:master",
        "cluster_enabled:0",
        "number_of_cached_scripts:0",
        "# Server",
        "# Replication",
        "connected_clients:1",
    ] {
        assert!(all.contains(field), "{field} is not in {all}");
    }
    let part = client.say("INFO replication");
    assert!(
        part.contains("role:master") && !part.contains("redis_version"),
        "{part}"
    );
    assert!(client.say("INFO server clients").contains("tcp_port:"));
    assert_eq!(client.say("INFO nonsense"), "\"\"");
    client.call("HELLO 3");
    assert!(
        client.say("INFO server").starts_with("text\"# Server"),
        "verbatim in RESP3"
    );
}

#[test]
fn databases_are_apart_for_keys_and_for_leases() {
    let node = Launch::in_memory().args(["--databases", "3"]).start();
    let (mut zero, mut two) = (node.client(), node.client());
    assert_eq!(two.say("SELECT 3"), "-ERR DB index is out of range");
    assert_eq!(two.say("SELECT 2"), "+OK");
    assert_eq!(zero.say("SET a zero NX"), "+OK");
    assert_eq!(two.say("GET a"), "nil");
    assert_eq!(two.say("LEASE.GET a"), "nil");
    assert!(two.say("LEASE.ACQUIRE a two 60000").starts_with("[\"granted\", "));
    assert_eq!(
        (zero.say("GET a"), two.say("GET a")),
        ("\"zero\"".to_owned(), "\"two\"".to_owned())
    );
    assert!(!zero.say("LEASE.LIST").contains("two"));
    assert_eq!(zero.say("DEL a"), ":1");
    assert_eq!(two.say("EXISTS a"), ":1");
    // In a pipeline the selection holds for what stands behind it.
    zero.send_raw(b"SET p 0\r\nSELECT 1\r\nSET p 1\r\nSELECT 0\r\nGET p\r\n");
    let answers: Vec<_> = (0..5).map(|_| zero.hear()).collect();
    assert_eq!(answers, ["+OK", "+OK", "+OK", "+OK", "\"0\""]);
}
