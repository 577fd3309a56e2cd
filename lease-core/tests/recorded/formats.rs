//! The bytes of the log's entries and of snapshots, one example of everything that they can hold.
//!
//! A node must read what it or another build has written: these files are what was written.

use std::fmt::Write as _;

use lease_core::Timestamp;
use lease_core::machine::codec::{BODY_FORMAT, EncodedCommand, join, split};
use lease_core::machine::{Command, LeaseMachine, Limits, Submission};

use crate::{parse, record};

/// Every kind of command, and every kind of field in it.
const COMMANDS: &[&str] = &[
    "tick",
    "acquire lock:a worker-a 5000",
    "acquire 3/lock:a worker-a 9223372036854775807 wait 10000 1.2.300 req r-1 meta host-1",
    "renew lock:a 9007199254740991",
    "renew lock:a 1 5000",
    "renew-many lock:a 1 5000 63/lock:b 70000",
    "release lock:a 300",
    "release lock:a 300 orphaned",
    "release-by lock:a worker-a",
    "pexpire lock:a 5000",
    "pexpire lock:a 5000 nx",
    "pexpire lock:a 5000 xx",
    "pexpire lock:a 5000 gt",
    "pexpire lock:a 5000 lt",
    "persist lock:a",
    "force lock:a host-1 does not answer",
    "cancel lock:a worker-a r-1",
    "detach 1.2.300",
    "node-started 1 2",
    "node-lost 3 70000",
    "floor 1099511627776",
    "activate 1",
    "limit endings 77",
    "set lock:a worker-a",
    "set lock:a worker-a px 5000 nx",
    "set lock:a worker-a px 5000 xx",
    "set lock:a worker-a keepttl ifeq worker-b",
    "set lock:a worker-a px 5000 ifne worker-b",
    "delete lock:a",
    "touch lock:a",
    "del lock:a 3/lock:b",
    "delex lock:a ifeq worker-a",
    "delex lock:a ifne worker-a",
    "delex lock:a ifdeq 3244421341483603138",
    "delex lock:a ifdne 3244421341483603138",
    "take lock:a",
    "mset lock:a worker-a 3/lock:b worker-b",
    "msetnx lock:a worker-a",
    "expire-now lock:a",
    "expire-now lock:a xxlt",
    "look lock:a lock:b",
    "publish news it has happened",
    "multi exec",
    "multi lock:a 300 70000 lock:b none exec set lock:a worker-a over ifdeq 7 , persist lock:b , pexpire lock:b 5 nx",
    "withdraw 3.2.70000 300 lock:a",
    "once 3.2.70000 300 set lock:a worker-a px 5000 nx",
    EVERY_CONSTRUCT,
    "eval 8 3 keys lock:a lock:b args worker-a : return redis.call('del', KEYS[1])",
    "evalsha 8 0 keys args :",
    "script-flush",
];

/// A script that holds every kind of node.
const EVERY_CONSTRUCT: &str = "script-load 7 \
    local function own(key) return redis.call('get', key) == ARGV[1] end \
    local count, step, list, say = 0, 1.5, {1, 'two', named = true, [3] = false; nil}, nil \
    for i, key in ipairs(KEYS) do if own(key) then count = count + redis.call('del', key) \
    elseif not own(key) and #key > 2 or -1 < i then list[i], say = redis.pcall('pttl', key), i .. key else break end end \
    for i = 1, 10, 2 do count = count - i * 2 / 3 % 4 end \
    while count >= 7 do count = count - 1 end \
    repeat local done = count ~= 8 until done or count <= 9 \
    do local sub = string.sub end \
    table.insert(list, (unpack(list))) \
    if count > 10 then return end \
    return {count, redis.status_reply('OK')}";

/// A history that leaves every kind of item in a snapshot.
const HISTORY: &[(u64, &str)] = &[
    (0, "floor 4096"),
    (0, "node-started 1 2"),
    (0, "limit request-memory 70000"),
    (1, "acquire lock:plain worker-a 5000"),
    (2, "acquire 3/lock:rich worker-a 60000 req r-1 meta host-1"),
    (3, "set lock:ever value-1"),
    (4, "acquire lock:short worker-b 60000"),
    (5, "pexpire lock:short 700"),
    (6, "acquire 3/lock:rich worker-b 100 wait 9000 1.2.300"),
    (
        7,
        "acquire 3/lock:rich worker-c 100 wait 9000 2.1.1 req r-2 meta host-2",
    ),
    (8, "detach 2.1.1"),
    (9, "acquire lock:gone worker-d 5000 req r-3"),
    (10, "release lock:gone 4101"),
    (11, "acquire lock:gone worker-d 5000 req r-4"),
    (12, "force lock:gone stuck"),
    (13, "cancel lock:gone worker-d r-5"),
    (14, "acquire lock:gone worker-e 5000"),
    (15, "release lock:gone 4103 orphaned"),
    (16, "set lock:gone value-2"),
    (17, "set lock:gone value-3 px 5"),
    (18, "delete lock:gone"),
    (19, "acquire lock:gone worker-f 1"),
    (20, "acquire lock:gone worker-g 1 req r-6"),
    (20, "cancel lock:gone worker-g r-6"),
    (20, "acquire lock:left worker-h 1000 req r-7"),
    (21, "acquire lock:left worker-i 1000 wait 9000 2.1.2 req r-8"),
    (22, "detach 2.1.2"),
    (23, "release lock:left 4108"),
    (24, "once 2.1.5 5 set lock:ever value-4"),
    (24, "once 2.1.6 5 acquire lock:ever worker-j 1000"),
    (24, "withdraw 2.1.7 5 lock:ever"),
    (24, "script-load 1 return 1"),
    (24, "script-load 2 return 2"),
    (25, "evalsha 1 0 keys args :"),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn commands() -> Vec<Submission> {
    let parsed = |text: &&str| parse::submission(text, Limits::default());
    COMMANDS.iter().map(parsed).collect()
}

/// The body of an entry that holds this alone.
fn body(submission: &Submission) -> Vec<u8> {
    let command = EncodedCommand::new(&submission.command).unwrap();
    let command = match &submission.once {
        Some(once) => command.numbered(once).unwrap(),
        None => command,
    };
    join(&[command]).unwrap().to_vec()
}

fn body_file() -> String {
    format!("formats/entry-body-{BODY_FORMAT}.txt")
}

const BODY_ADVICE: &str = "The bytes of the log have changed: a node could not read the log that it wrote before this \
    change.\nIf a command was changed or moved, add a new one at the end instead. If a command was added at the end, \
    raise the machine version with it, add it to COMMANDS and record with UPDATE=1: no line but the new one may \
    change.\nIf the format itself must change, raise BODY_FORMAT, record the new file with UPDATE=1 and keep the old \
    one as a test that it is still read, or is refused as an unknown format.";

#[test]
fn every_command_is_written_as_recorded_and_what_was_recorded_is_read() {
    let mut text = format!(
        "# One command a line: its words, then the body of an entry that holds it alone, in format {BODY_FORMAT}.\n"
    );
    for (words, command) in COMMANDS.iter().zip(commands()) {
        let body = body(&command);
        writeln!(text, "{words}\n    {}", hex(&body)).unwrap();
    }
    record::compare(&body_file(), &text, BODY_ADVICE);
    let recorded = record::read(&body_file()).unwrap();
    let bodies = recorded.lines().filter(|line| line.starts_with(' '));
    let read: Vec<Submission> = bodies.flat_map(|body| split(&from_hex(body)).unwrap()).collect();
    assert_eq!(read, commands(), "{BODY_ADVICE}");
}

#[test]
fn every_kind_of_command_is_among_those_that_are_recorded() {
    let kind = |command: &Command| match command {
        Command::Tick => 0,
        Command::Acquire(_) => 1,
        Command::Renew(_) => 2,
        Command::RenewMany(_) => 3,
        Command::Release { .. } => 4,
        Command::ReleaseByOwner { .. } => 5,
        Command::SetTtl { .. } => 6,
        Command::Force { .. } => 7,
        Command::Cancel { .. } => 8,
        Command::Detach { .. } => 9,
        Command::NodeStarted { .. } => 10,
        Command::NodeLost { .. } => 11,
        Command::RaiseTokenFloor { .. } => 12,
        Command::Activate { .. } => 13,
        Command::SetLimits(_) => 14,
        Command::Set(_) => 15,
        Command::Delete { .. } => 16,
        Command::Touch { .. } => 17,
        Command::Key(_) => 18,
        Command::Transaction { .. } => 19,
        Command::Withdraw { .. } => 20,
        Command::LoadScript { .. } => 21,
        Command::RunScript(_) => 22,
        Command::FlushScripts => 23,
    };
    // A new kind does not compile until it stands here: record it above as well. Tags are the numbers here.
    let last = 23;
    let commands = commands();
    for expected in 0..=last {
        let command = commands
            .iter()
            .find(|submission| kind(&submission.command) == expected);
        let body = body(command.unwrap());
        assert_eq!(body.get(5), Some(&expected), "the tag of {command:?}");
    }
}

fn snapshot() -> Vec<u8> {
    let mut machine = LeaseMachine::new();
    for (at, words) in HISTORY {
        let submission = parse::submission(words, machine.limits());
        machine
            .apply_entry(Timestamp::from_millis(*at), &[submission])
            .unwrap();
    }
    written(&machine)
}

fn written(machine: &LeaseMachine) -> Vec<u8> {
    let mut bytes = Vec::new();
    machine.view().encode(&mut bytes).unwrap();
    bytes
}

/// The file of the format that this build writes: the byte after the magic number.
fn snapshot_file() -> String {
    format!("formats/snapshot-{}.txt", snapshot().get(4).unwrap())
}

const SNAPSHOT_ADVICE: &str = "The bytes of a snapshot have changed: a node could not read the snapshot that it, or a \
    node of another build, wrote before this change.\nIf that is meant, raise FORMAT in machine/snapshot.rs, record \
    the new file with UPDATE=1, and keep the old one as a test that it is still read, or is refused as an unknown \
    format.\nIf only HISTORY here was changed, or what the machine answers to it, record with UPDATE=1.";

#[test]
fn a_snapshot_is_written_as_recorded_and_what_was_recorded_is_read() {
    let snapshot = snapshot();
    let mut text =
        String::from("# The magic number and the format, then one item a line: its length and its bytes.\n");
    let (start, mut rest) = snapshot.split_at(5);
    writeln!(text, "{}", hex(start)).unwrap();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (item, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        writeln!(text, "{} {}", hex(length), hex(item)).unwrap();
        rest = after;
    }
    record::compare(&snapshot_file(), &text, SNAPSHOT_ADVICE);
    let recorded = record::read(&snapshot_file()).unwrap();
    let lines: String = recorded.lines().filter(|line| !line.starts_with('#')).collect();
    let bytes = from_hex(&lines);
    let machine = LeaseMachine::decode(&mut bytes.as_slice()).expect(SNAPSHOT_ADVICE);
    assert_eq!(written(&machine), bytes, "{SNAPSHOT_ADVICE}");
    let stats = machine.stats();
    assert_eq!(
        (stats.leases, stats.waiters, stats.requests, stats.endings),
        (4, 3, 8, 9)
    );
    assert_eq!(stats.last_token, 4_109);
}
