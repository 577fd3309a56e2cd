//! The same commands to this server and to Redis: byte for byte the same answers.
//!
//! Redis is Debian's. Where it is not installed the test says so and checks nothing, but not under CI=true.
//!
//! Left out, since this server differs by intent: times within a lifetime of the clock of 2^63 milliseconds, which Redis
//! adds to the wall clock and refuses; what Redis 7.0 does not have (`SET IFEQ`); and, between `WATCH` and `EXEC`, a
//! renewal that changes neither value nor time, and a key that came and went: to Redis it was touched, here it is as it
//! was seen. A time may differ a little.
//!
//! `LEASE_TEST_SEQUENCES=100000 cargo test --release -p tests --test server generated_sequences` runs more of it.

mod author;
mod redis;

use lease_core::wire::Protocol;
use tests::clock::wait_until;
use tests::random::Random;
use tests::resp::encoded;
use tests::{Client, Launch};

use self::author::Author;
pub(crate) use self::redis::Redis;

/// Sequences of commands, each from its own seed.
const SEQUENCES: u64 = 200;
/// How far two answers about a time may be apart: both servers were asked one after the other.
const TOLERANCE_MS: i64 = 20_000;
/// A number above this is a time: no count and no length here is as large.
const LEAST_TIME: i64 = 500;
/// Enough to see what is wrong.
const DISAGREEMENTS_SHOWN: usize = 4;

/// The same, but that a time may differ a little, and that a listing has no order.
fn agree(command: &[String], ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes)
            .split("\r\n")
            .map(str::to_owned)
            .collect()
    };
    let (mut ours, mut theirs) = (lines(ours), lines(theirs));
    if ["KEYS", "SCAN"]
        .iter()
        .any(|name| command[0].eq_ignore_ascii_case(name))
    {
        ours.sort();
        theirs.sort();
    }
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(&theirs)
            .all(|(ours, theirs)| ours == theirs || are_near(ours, theirs))
}

/// Whether both are the same time but for the moment at which they were asked for.
fn are_near(ours: &str, theirs: &str) -> bool {
    let time = |line: &str| {
        let number = line.strip_prefix(':')?.parse::<i64>().ok()?;
        (number > LEAST_TIME).then_some(number)
    };
    match (time(ours), time(theirs)) {
        (Some(ours), Some(theirs)) => ours.abs_diff(theirs) < TOLERANCE_MS.unsigned_abs(),
        _ => false,
    }
}

/// The answers of both to a sequence: asked one by one, or all at once.
fn answers(
    client: &mut Client,
    commands: &[Vec<String>],
    (protocol, pipelined): (Protocol, Pipelined),
) -> Vec<Vec<u8>> {
    match pipelined {
        Pipelined::No => commands.iter().map(|command| client.call_raw(command)).collect(),
        Pipelined::Yes => {
            let bytes: Vec<u8> = commands
                .iter()
                .flat_map(|command| encoded(command).to_vec())
                .collect();
            client.send_raw(&bytes);
            let answer = |_| {
                let mut bytes = bytes::BytesMut::new();
                client.receive().encode(protocol, &mut bytes);
                bytes.to_vec()
            };
            commands.iter().map(answer).collect()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pipelined {
    No,
    Yes,
}

#[test]
fn generated_sequences_are_answered_as_redis_answers_them() {
    let Some(redis) = Redis::start() else { return };
    let node = Launch::in_memory().start();
    let base = Random::seed(1);
    let asked = std::env::var("LEASE_TEST_SEQUENCES").ok();
    let sequences = asked.map_or(SEQUENCES, |asked| asked.parse().unwrap());
    let (mut ours, mut theirs) = (node.client(), Client::connect(redis.address));
    let mut disagreements = Vec::new();
    for sequence in 0..sequences {
        let seed = base.wrapping_mul(1_000_000) + sequence;
        let mut random = Random::new(seed);
        let protocol = if random.percent(50) {
            Protocol::Resp2
        } else {
            Protocol::Resp3
        };
        let pipelined = if random.percent(50) {
            Pipelined::Yes
        } else {
            Pipelined::No
        };
        let way = (protocol, pipelined);
        for client in [&mut ours, &mut theirs] {
            begin_anew(client, protocol);
        }
        let commands = Author::sequence(&mut random);
        let our_answers = answers(&mut ours, &commands, way);
        let their_answers = answers(&mut theirs, &commands, way);
        let compared = commands.iter().zip(our_answers.iter().zip(&their_answers));
        let differs = compared
            .enumerate()
            .find(|(_, (command, (ours, theirs)))| !agree(command, ours, theirs));
        if let Some((at, (_, (ours, theirs)))) = differs {
            let before: Vec<String> = commands[..=at].iter().map(|command| command.join(" ")).collect();
            disagreements.push(format!(
                "LEASE_TEST_SEED={base}, sequence {sequence}, {way:?}\n  {}\n  ours   {}\n  \
                 redis  {}",
                before[before.len().saturating_sub(12)..].join("\n  "),
                ours.escape_ascii(),
                theirs.escape_ascii()
            ));
        }
        assert!(
            disagreements.len() < DISAGREEMENTS_SHOWN,
            "{}",
            disagreements.join("\n\n")
        );
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n\n"));
    node.stop();
}

/// As a new connection to empty databases.
fn begin_anew(client: &mut Client, protocol: Protocol) {
    client.call("RESET");
    client.call(&format!("HELLO {}", protocol.number()));
    for database in ["0", "1", "15"] {
        client.call(&format!("SELECT {database}"));
        client.call_args(&["DEL", "a", "b", "c", ""]);
    }
    client.call("SELECT 0");
}

/// Keys that run out by themselves, at both servers.
#[test]
fn keys_whose_time_runs_out_are_gone_as_with_redis() {
    let Some(redis) = Redis::start() else { return };
    let node = Launch::in_memory().start();
    let (mut ours, mut theirs) = (node.client(), Client::connect(redis.address));
    for end in [
        "PEXPIRE k 2",
        "SET k v PX 2",
        "SET k v XX PX 3",
        "PSETEX k 2 v",
        "SET k v KEEPTTL",
    ] {
        for client in [&mut ours, &mut theirs] {
            client.call("SET k v PX 5");
            client.call(end);
            wait_until("the key is gone", || {
                (client.say("EXISTS k") == ":0").then_some(())
            });
            let after = [
                "GET k",
                "TTL k",
                "PTTL k",
                "PEXPIRETIME k",
                "TYPE k",
                "PERSIST k",
                "EXPIRE k 9",
                "SET k v XX",
                "DBSIZE",
            ];
            let said: Vec<String> = after.iter().map(|command| client.say(command)).collect();
            assert_eq!(
                said,
                ["nil", ":-2", ":-2", ":-2", "+none", ":0", ":0", "nil", ":0"],
                "{end}"
            );
            assert_eq!(client.say("SET k w NX GET"), "nil");
            client.call("DEL k");
        }
    }
}

#[test]
fn the_comparison_sees_a_difference() {
    let command = |text: &str| vec![text.to_owned()];
    assert!(agree(&command("GET"), b"$-1\r\n", b"$-1\r\n"));
    assert!(!agree(&command("GET"), b"$-1\r\n", b"_\r\n"));
    assert!(agree(&command("pttl"), b":59000\r\n", b":60000\r\n"));
    assert!(!agree(&command("pttl"), b":10000\r\n", b":60000\r\n"));
    assert!(!agree(&command("PTTL"), b":-1\r\n", b":-2\r\n"));
    assert!(!agree(&command("PEXPIRE"), b":0\r\n", b":1\r\n"));
    assert!(agree(
        &command("EXEC"),
        b"*2\r\n:59000\r\n:1\r\n",
        b"*2\r\n:60000\r\n:1\r\n"
    ));
    assert!(!agree(
        &command("EXEC"),
        b"*2\r\n:59000\r\n:1\r\n",
        b"*2\r\n:60000\r\n:0\r\n"
    ));
    assert!(agree(
        &command("KEYS"),
        b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"*2\r\n$1\r\nb\r\n$1\r\na\r\n"
    ));
}
