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

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use lease_core::wire::Protocol;
use tests::clock::wait_until;
use tests::random::Random;
use tests::resp::encoded;
use tests::{Client, Launch};

/// Sequences of commands, each from its own seed, and commands in each at least.
const SEQUENCES: u64 = 200;
const COMMANDS: usize = 20;
/// Few keys and values, so that they meet.
const KEYS: [&str; 4] = ["a", "b", "c", ""];
const VALUES: [&str; 4] = ["x", "y", "", "a longer value"];
/// How far two answers about a time may be apart: both servers were asked one after the other.
const TOLERANCE_MS: i64 = 20_000;
/// A number above this is a time: no count and no length here is as large.
const LEAST_TIME: i64 = 500;
/// Enough to see what is wrong.
const DISAGREEMENTS_SHOWN: usize = 4;

struct Redis {
    child: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Redis {
    /// Starts one, if there is one.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        // A port that was free a moment ago: Redis has none of its own choice.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new("redis-server")
            .args([
                "--port",
                &address.port().to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                assert!(
                    std::env::var("CI").as_deref() != Ok("true"),
                    "CI skips nothing, and redis-server does not start: {error}"
                );
                skipped(&error);
                return None;
            }
        };
        let redis = Self {
            child,
            address,
            _directory: directory,
        };
        wait_until("redis-server serves", || {
            let mut client = Client::try_connect(address).ok()?;
            client.try_call(&["PING"]).ok().map(drop)
        });
        Some(redis)
    }
}

/// Past the capture of the test harness: a check that is left out must be seen.
fn skipped(why: &std::io::Error) {
    let text = format!("\n!!! SKIPPED: the comparison with Redis (redis-server does not start: {why})\n");
    let _ = std::io::stderr().write_all(text.as_bytes());
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words of a sequence: each command draws from few keys and values, so that they meet.
struct Author<'a> {
    random: &'a mut Random,
    /// Times that were used up: any two lie so far apart that a busy machine does not swap them.
    times: u64,
    commands: Vec<Vec<String>>,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Author<'_> {
    fn sequence(random: &mut Random) -> Vec<Vec<String>> {
        let mut author = Author {
            random,
            times: 0,
            commands: Vec::new(),
        };
        while author.commands.len() < COMMANDS {
            match author.random.below(12) {
                0 => author.transaction(),
                1 => author.passed_expiry(),
                _ => {
                    let command = author.command();
                    author.write(command);
                }
            }
        }
        author.commands
    }

    fn write(&mut self, mut command: Vec<String>) {
        if self.random.percent(30) {
            command[0].make_ascii_lowercase();
        }
        self.commands.push(command);
    }

    fn key(&mut self) -> &'static str {
        self.random.choose::<&str>(&KEYS)
    }

    fn value(&mut self) -> &'static str {
        self.random.choose::<&str>(&VALUES)
    }

    fn command(&mut self) -> Vec<String> {
        let (key, value) = (self.key(), self.value());
        match self.random.below(20) {
            0..=4 => self.set(),
            5 => words(&["GET", key]),
            6 => words(&[
                *self.random.choose(&["DEL", "UNLINK", "EXISTS", "MGET"]),
                key,
                "a",
                "a",
            ]),
            7 => words(&[
                *self.random.choose(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]),
                key,
            ]),
            8 | 9 => self.expire(),
            10 => words(&[*self.random.choose(&["PERSIST", "TYPE", "STRLEN", "GETDEL"]), key]),
            11 => words(&["SETNX", key, value]),
            12 => {
                let time = self.time();
                words(&[*self.random.choose(&["SETEX", "PSETEX"]), key, &time, value])
            }
            13 => {
                let other = self.key();
                let mut many = words(&[*self.random.choose(&["MSET", "MSETNX"]), key, value, other, "z"]);
                if self.random.percent(10) {
                    many.pop();
                }
                many
            }
            14 => {
                let (start, end) = (self.index(), self.index());
                words(&["GETRANGE", key, &start, &end])
            }
            15 => match self.random.below(3) {
                0 => words(&["KEYS", *self.random.choose(&["*", "a", "[ab]", "?", "", "[^a]*"])]),
                1 => words(&["DBSIZE"]),
                _ => words(&[
                    "SCAN",
                    "0",
                    "COUNT",
                    "1000",
                    "MATCH",
                    *self.random.choose(&["*", "b"]),
                ]),
            },
            16 => words(&[
                "SELECT",
                *self
                    .random
                    .choose(&["0", "1", "15", "16", "-1", "x", "", "01", "99999999999"]),
            ]),
            17 => self.session(),
            _ => self.wrong(),
        }
    }

    fn session(&mut self) -> Vec<String> {
        let value = self.value();
        match self.random.below(9) {
            0 => words(&["PING"]),
            1 => words(&["PING", value]),
            2 => words(&["ECHO", value]),
            3 => words(&["CLIENT", "SETNAME", *self.random.choose(&["me", "", "a b"])]),
            4 => words(&["CLIENT", *self.random.choose(&["GETNAME", "SETNAME", "getname"])]),
            5 => words(&["PUBLISH", "nobody", value]),
            6 => words(&[
                "PUBSUB",
                *self.random.choose(&["CHANNELS", "NUMPAT", "NUMSUB", "NONSENSE"]),
            ]),
            7 => words(&[*self.random.choose(&["EXEC", "DISCARD", "UNWATCH"])]),
            _ => words(&[
                *self.random.choose(&["WAIT"]),
                *self.random.choose(&["x", "0"]),
                *self.random.choose(&["-1", "x", "0"]),
            ]),
        }
    }

    /// Too few and too many arguments, and no command at all.
    fn wrong(&mut self) -> Vec<String> {
        let name = *self.random.choose(&[
            "SET",
            "GET",
            "DEL",
            "EXISTS",
            "TTL",
            "PTTL",
            "EXPIRE",
            "PEXPIRE",
            "PERSIST",
            "ECHO",
            "PING",
            "SELECT",
            "AUTH",
            "UNLINK",
            "MGET",
            "MSET",
            "MSETNX",
            "SETNX",
            "SETEX",
            "PSETEX",
            "GETDEL",
            "STRLEN",
            "TYPE",
            "GETRANGE",
            "EXPIREAT",
            "PEXPIRETIME",
            "SCAN",
            "KEYS",
            "DBSIZE",
            "WATCH",
            "SUBSCRIBE",
            "PUBLISH",
            "NONSENSE",
        ]);
        let count = usize::try_from(self.random.below(5)).unwrap();
        if ["SUBSCRIBE", "WATCH", "SCAN"].contains(&name) && count > 0 {
            return words(&["PING"]);
        }
        std::iter::once(name)
            .chain(std::iter::repeat_n("a", count))
            .map(str::to_owned)
            .collect()
    }

    fn set(&mut self) -> Vec<String> {
        let mut set = words(&["SET", self.key(), self.value()]);
        for _ in 0..self.random.below(4) {
            let option = *self.random.choose(&[
                "NX", "XX", "GET", "KEEPTTL", "EX", "PX", "px", "nx", "EXAT", "PXAT", "BAD",
            ]);
            set.push(option.to_owned());
            if ["EX", "PX", "px"].contains(&option) && self.random.percent(95) {
                set.push(self.time());
            }
            if ["EXAT", "PXAT"].contains(&option) && self.random.percent(95) {
                set.push(self.point());
            }
        }
        set
    }

    fn expire(&mut self) -> Vec<String> {
        let name = *self
            .random
            .choose(&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]);
        let mut expire = words(&[name, self.key()]);
        let time = if name.ends_with("AT") {
            self.point()
        } else {
            self.time()
        };
        expire.push(time);
        for _ in 0..self.random.below(3) {
            expire.push((*self.random.choose(&["NX", "XX", "gt", "LT", "BAD"])).to_owned());
        }
        expire
    }

    /// A key whose time is over is gone for every later command.
    fn passed_expiry(&mut self) {
        let (key, value) = (self.key(), self.value());
        let set = *self.random.choose(&["PXAT", "EXAT"]);
        self.write(words(&["SET", key, value, set, "1"]));
        self.write(words(&["GET", key]));
    }

    /// Between `WATCH` and `EXEC` nothing is renewed and nothing comes and goes: see the head of this file.
    fn transaction(&mut self) {
        if self.random.percent(40) {
            self.write(words(&["WATCH", "a", "b"]));
            match self.random.below(4) {
                0 => self.write(words(&["SET", "a", "1"])),
                1 => self.write(words(&["SET", "c", "1"])),
                2 => self.write(words(&["UNWATCH"])),
                _ => {}
            }
        }
        self.write(words(&["MULTI"]));
        for _ in 0..self.random.below(6) {
            let command = match self.random.below(12) {
                0 => words(&["MULTI"]),
                1 => words(&["WATCH", "a"]),
                2 => words(&["SELECT", *self.random.choose(&["0", "1", "x"])]),
                3 => words(&["PING"]),
                4 if self.random.percent(30) => self.wrong_arguments(),
                _ => self.on_keys(),
            };
            self.write(command);
        }
        let end = if self.random.percent(85) {
            "EXEC"
        } else {
            "DISCARD"
        };
        self.write(words(&[end]));
    }

    fn wrong_arguments(&mut self) -> Vec<String> {
        words(&[*self.random.choose(&["SET", "NONSENSE", "GET"])])
    }

    fn on_keys(&mut self) -> Vec<String> {
        let (key, value) = (self.key(), self.value());
        match self.random.below(8) {
            0 | 1 => self.set(),
            2 => self.expire(),
            3 => words(&["GET", key]),
            4 => words(&["DEL", key, "a"]),
            5 => words(&["MSETNX", key, value, "b", value]),
            6 => words(&[*self.random.choose(&["PTTL", "TTL", "EXISTS", "GETDEL"]), key]),
            _ => words(&["PERSIST", key]),
        }
    }

    fn index(&mut self) -> String {
        (*self
            .random
            .choose(&["0", "1", "-1", "-3", "100", "-100", "x", "9223372036854775807"]))
        .to_owned()
    }

    /// Times far enough away that none ends while the test runs, and times that cannot be.
    fn time(&mut self) -> String {
        if self.random.percent(50) {
            self.times += 1;
            return (1_000_000 + self.times * 100_000).to_string();
        }
        let number = *self.random.choose(&[
            "0",
            "-1",
            "-9223372036854775808",
            "9223372036854775808",
            "-9223372036854776",
            "x",
            "",
            "1.5",
            "+5000000",
            " 5000000",
            "05000000",
            "-0",
        ]);
        number.to_owned()
    }

    /// Points of the wall clock: long past, and in the next centuries in seconds as well as in milliseconds.
    fn point(&mut self) -> String {
        if self.random.percent(60) {
            self.times += 1;
            return (9_000_000_000_000 + self.times * 100_000).to_string();
        }
        (*self
            .random
            .choose(&["0", "-1", "1.5", "x", "9223372036854775808"]))
        .to_owned()
    }
}

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
