//! The worst that scripts can do to one log entry: how long the lease machine applies an entry full of them.
//!
//! Each kind of script takes all the steps that it may; the last column is what bounds how long others wait.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::sync::Arc;

use benches::samples::millis;
use benches::stopwatch::Stopwatch;
use benches::{Error, host};
use lease_core::limits::BATCH_COMMANDS_MAX;
use lease_core::machine::{Command, LeaseMachine, RunScript, ScriptSource};
use lease_core::script::{Program, ScriptDigest};
use lease_core::{Database, SharedBytes, Timestamp};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Entries of each kind, of which the slowest counts.
const ENTRIES: usize = 5;

/// What scripts do that take all they may. The first ends by itself.
const KINDS: [(&str, &str); 14] = [
    (
        "releases what is its own, as lock libraries do",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
    ),
    ("counts", "for i = 1, 1e9 do end"),
    ("loops", "while true do end"),
    (
        "calls functions",
        "local function f(a) return a end while true do f(1) end",
    ),
    (
        "shows numbers",
        "local s for i = 1, 1e9 do s = tostring(i / 7) end",
    ),
    (
        "reads numbers",
        "local s for i = 1, 1e9 do s = tonumber('123456.789') end",
    ),
    (
        "makes texts",
        "local s = ARGV[2] for i = 1, 1e9 do local t = s .. i end",
    ),
    ("makes tables", "local t = {} for i = 1, 1e9 do t[i] = {} end"),
    (
        "fills a table by names",
        "local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
    ),
    ("looks", "for i = 1, 1e9 do redis.call('get', KEYS[1]) end"),
    (
        "looks at many keys",
        "for i = 1, 1e9 do redis.call('exists', unpack(KEYS)) end",
    ),
    (
        "renews",
        "for i = 1, 1900 do redis.call('pexpire', KEYS[1], 600000 + i) end",
    ),
    (
        "takes keys",
        "for i = 1, 1900 do redis.call('set', 'k' .. i, ARGV[1], 'PX', 600000) end",
    ),
    (
        "takes and deletes",
        "for i = 1, 900 do redis.call('set', 'k', ARGV[1] .. i) redis.call('del', 'k') end",
    ),
];

fn main() -> Result<(), Error> {
    println!("{}\n", host::describe());
    println!(
        "| each script | one alone | {BATCH_COMMANDS_MAX} in one entry, the slowest of {ENTRIES} |\n|---|---|---|"
    );
    for (what, text) in KINDS {
        let alone = slowest(text, 1)?;
        let full = slowest(text, BATCH_COMMANDS_MAX)?;
        println!("| {what} | {alone:.2} ms | {full:.1} ms |");
    }
    Ok(())
}

/// Milliseconds of the slowest entry of so many such scripts.
fn slowest(text: &str, scripts: usize) -> Result<f64, Error> {
    let program = Arc::new(Program::parse(text.as_bytes())?);
    let command = |number: usize| {
        let keys = (0..16).map(|key| SharedBytes::from(format!("key-{number}-{key}").as_str()));
        Command::RunScript(RunScript {
            source: ScriptSource::Given {
                digest: ScriptDigest::new([7; 20]),
                program: Arc::clone(&program),
            },
            database: Database::ZERO,
            databases: 16,
            value_bytes_max: 1_048_576,
            keys: keys.collect(),
            arguments: vec![
                SharedBytes::from("owner-1"),
                SharedBytes::from("a text of some length"),
            ],
        })
    };
    let commands: Vec<Command> = (0..scripts).map(command).collect();
    let mut machine = LeaseMachine::new();
    machine.apply(Timestamp::ZERO, &[Command::RaiseTokenFloor { floor: 0 }])?;
    let mut longest = 0.0_f64;
    for entry in 1..=ENTRIES {
        let watch = Stopwatch::start();
        let applied = machine.apply(Timestamp::from_millis(entry as u64), &commands)?;
        longest = longest.max(millis(watch.elapsed()));
        drop(applied);
    }
    Ok(longest)
}
