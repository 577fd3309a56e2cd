//! The same commands to this server and to Redis: byte for byte the same answers.
//!
//! Redis is Debian's. Where it is not installed the test says so and checks nothing, but not under CI=true.
//!
//! Left out, since this server differs by intent: times within a lifetime of the clock of 2^63 milliseconds, which Redis
//! adds to the wall clock and refuses; and what Redis 7.0 does not have (`SET IFEQ`). A remaining time may differ a
//! little, in a `TTL` or a `PTTL`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tests::clock::wait_until;
use tests::random::Random;
use tests::{Client, Launch};

/// Sequences of commands, each from its own seed, and commands in each.
const SEQUENCES: u64 = 40;
const COMMANDS: usize = 100;
/// How far two answers about a remaining time may be apart: both servers were asked one after the other.
const TOLERANCE_MS: i64 = 20_000;

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

/// Commands with few keys, so that they meet; letters of either case, options right and wrong.
fn command(random: &mut Random) -> Vec<String> {
    let key = (*random.choose(&["a", "b", "c", ""])).to_owned();
    let value = (*random.choose(&["x", "y", "", "a longer value"])).to_owned();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut command = match random.below(14) {
        0..=3 => {
            let mut set = words(&["SET", &key, &value]);
            for _ in 0..random.below(4) {
                set.extend(set_option(random));
            }
            set
        }
        4 => words(&["GET", &key]),
        5 => words(&[*random.choose(&["DEL", "UNLINK", "EXISTS"]), &key, "a", "a"]),
        6 => words(&[*random.choose(&["TTL", "PTTL"]), &key]),
        7 | 8 => {
            let mut expire = words(&[*random.choose(&["EXPIRE", "PEXPIRE"]), &key]);
            expire.push(time(random));
            for _ in 0..random.below(3) {
                expire.push((*random.choose(&["NX", "XX", "gt", "LT", "BAD"])).to_owned());
            }
            expire
        }
        9 => words(&["PERSIST", &key]),
        10 => words(&[
            "SELECT",
            *random.choose(&["0", "1", "15", "16", "-1", "x", "", "01", "99999999999"]),
        ]),
        11 => match random.below(4) {
            0 => words(&["PING"]),
            1 => words(&["PING", &value]),
            2 => words(&["ECHO", &value]),
            _ => words(&["CLIENT", "SETNAME", *random.choose(&["me", "", "a b"])]),
        },
        12 => words(&["CLIENT", *random.choose(&["GETNAME", "SETNAME", "getname"])]),
        _ => {
            // Too few and too many arguments.
            let name = *random.choose(&[
                "SET", "GET", "DEL", "EXISTS", "TTL", "PTTL", "EXPIRE", "PEXPIRE", "PERSIST", "ECHO", "PING",
                "SELECT", "AUTH", "UNLINK", "NONSENSE",
            ]);
            let count = usize::try_from(random.below(5)).unwrap();
            std::iter::once(name)
                .chain(std::iter::repeat_n("a", count))
                .map(str::to_owned)
                .collect()
        }
    };
    if random.percent(30) {
        command[0].make_ascii_lowercase();
    }
    command
}

fn set_option(random: &mut Random) -> Vec<String> {
    let option = *random.choose(&["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "px", "nx", "BAD"]);
    let mut words = vec![option.to_owned()];
    if ["EX", "PX", "px"].contains(&option) && random.percent(95) {
        words.push(time(random));
    }
    words
}

/// Times far enough away that none ends while the test runs, and times that cannot be.
fn time(random: &mut Random) -> String {
    let number = *random.choose(&[
        "1000000",
        "2000000",
        "0",
        "-1",
        "-9223372036854775808",
        "9223372036854775808",
        "9223372036854776",
        "-9223372036854776",
        "9007199254740991",
        "2702159776422297",
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

/// The same, but that a remaining time may differ a little.
fn agree(command: &[String], ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    let is_about_time = ["TTL", "PTTL"]
        .iter()
        .any(|name| command[0].eq_ignore_ascii_case(name));
    let number = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok()?;
        text.strip_prefix(':')?
            .trim_end()
            .parse::<i64>()
            .ok()
            .filter(|number| *number > 0)
    };
    match (number(ours), number(theirs)) {
        (Some(ours), Some(theirs)) if is_about_time => ours.abs_diff(theirs) < TOLERANCE_MS.unsigned_abs(),
        _ => false,
    }
}

#[test]
fn generated_sequences_are_answered_as_redis_answers_them() {
    let Some(redis) = Redis::start() else { return };
    let node = Launch::in_memory().start();
    let base = Random::seed(1);
    let mut disagreements = Vec::new();
    for sequence in 0..SEQUENCES {
        let seed = base.wrapping_mul(1_000) + sequence;
        let mut random = Random::new(seed);
        let (mut ours, mut theirs) = (node.client(), Client::connect(redis.address));
        let protocol = if random.percent(50) { "2" } else { "3" };
        for client in [&mut ours, &mut theirs] {
            client.call(&format!("HELLO {protocol}"));
            for database in ["0", "1", "15"] {
                client.call(&format!("SELECT {database}"));
                client.call_args(&["DEL", "a", "b", "c", ""]);
            }
            client.call("SELECT 0");
        }
        let mut before = Vec::new();
        for _ in 0..COMMANDS {
            let command = command(&mut random);
            let (our_answer, their_answer) = (ours.call_raw(&command), theirs.call_raw(&command));
            before.push(command.join(" "));
            if !agree(&command, &our_answer, &their_answer) {
                disagreements.push(format!(
                    "LEASE_TEST_SEED={base}, sequence {sequence}, RESP{protocol}\n  {}\n  ours   {}\n  redis  {}",
                    before[before.len().saturating_sub(4)..].join("\n  "),
                    our_answer.escape_ascii(),
                    their_answer.escape_ascii()
                ));
                // What follows would differ for the same reason.
                break;
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n\n"));
    node.stop();
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
}
