//! Runs seeds of the simulation, and tells how to have a failing one again.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line: its answer goes to the one, its progress to the other"
)]

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde_json::json;
use tests::clock::now;
use tests::sim::{Coverage, Plan, Run, Trouble, missing, run, run_recorded};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Seeds after which what was never met counts as a fault of the simulation.
const COVERED_AFTER: u64 = 100;
/// Failing seeds after which a run ends.
const FAILED_MAX: usize = 10;

#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(about = "Three nodes, clients, faults and a judge in virtual time, from a seed")]
struct Arguments {
    /// The seeds to run: A..B, without B, or one seed.
    #[arg(long, default_value = "0..100", value_parser = read_seeds)]
    seeds: (u64, u64),
    /// Virtual seconds in which faults are on.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Clients.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// Lease names that clients contend for.
    #[arg(long, default_value_t = 4)]
    names: u32,
    /// How far each clock's rate may be off, in parts per million. Above 500 the assumption of the client is broken.
    #[arg(long, default_value_t = 500)]
    skew_ppm: u32,
    /// No faults at all.
    #[arg(long)]
    calm: bool,
    /// Runs each seed twice, and compares every step.
    #[arg(long)]
    check_determinism: bool,
    /// One line of JSON at the end, and no progress.
    #[arg(long)]
    json: bool,
    /// Where the trace of a failing seed is written.
    #[arg(long, default_value = "target/sim")]
    traces: PathBuf,
    /// Writes the trace of every seed.
    #[arg(long)]
    trace: bool,
    /// What the nodes log goes to the standard error, with virtual time: a filter such as `openraft=info,lease_store=debug`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// Goes on after this many failing seeds.
    #[arg(long, default_value_t = FAILED_MAX)]
    failures: usize,
}

fn read_seeds(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    match text.split_once("..") {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(text).map(|seed| (seed, seed + 1)),
    }
}

fn log_to_standard_error(filter: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .with_timer(VirtualTime)
        .init();
}

/// The true time of the simulation in microseconds, as in the traces.
struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        write!(to, "{:>10}", lease_store::simulation::true_time().as_micros())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A task that panics is counted and told with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(filter) = &arguments.log {
        log_to_standard_error(filter);
    }
    let plan = Plan {
        safety: Duration::from_secs(arguments.seconds),
        clients: arguments.clients,
        names: arguments.names,
        skew_ppm: arguments.skew_ppm,
        trouble: if arguments.calm {
            Trouble::None
        } else {
            Trouble::Faults
        },
    };
    let (from, to) = arguments.seeds;
    let began = now();
    let (mut coverage, mut attempts, mut failed) = (Coverage::default(), 0, Vec::new());
    let mut ran = 0_u32;
    for seed in from..to {
        let ended = run_one(seed, &plan, &arguments);
        ran += 1;
        attempts += ended.attempts;
        coverage.merge(&ended.coverage);
        if arguments.trace {
            write_trace(&ended, &arguments);
        }
        if !ended.wrong.is_empty() {
            tell_failed(&ended, &arguments);
            failed.push(seed);
            if failed.len() >= arguments.failures {
                break;
            }
        }
        if !arguments.json && ran.is_multiple_of(20) {
            let rate = f64::from(ran) / began.elapsed().as_secs_f64();
            eprintln!(
                "{ran} seeds, {rate:.1}/s, {attempts} attempts, {} failed",
                failed.len()
            );
        }
    }
    let unmet = if u64::from(ran) >= COVERED_AFTER && !arguments.calm {
        missing(&coverage)
    } else {
        Vec::new()
    };
    let seconds = began.elapsed().as_secs_f64();
    report(
        &arguments,
        &coverage,
        &json!({
            "seeds": ran,
            "seconds": seconds,
            "seeds_per_second": f64::from(ran) / seconds,
            "attempts": attempts,
            "failed": failed,
            "never_met": unmet,
        }),
    );
    if failed.is_empty() && unmet.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_one(seed: u64, plan: &Plan, arguments: &Arguments) -> Run {
    if !arguments.check_determinism {
        return run(seed, plan);
    }
    let mut first = run_recorded(seed, plan);
    let second = run_recorded(seed, plan);
    if first.hash != second.hash {
        let line = first
            .trace
            .iter()
            .zip(&second.trace)
            .position(|(one, other)| one != other);
        first
            .wrong
            .push(format!("two runs differ, first in line {line:?} of their traces"));
    }
    first
}

fn tell_failed(ended: &Run, arguments: &Arguments) {
    let seed = ended.seed;
    let path = write_trace(ended, arguments);
    println!("seed {seed} fails:");
    for wrong in &ended.wrong {
        println!("  {wrong}");
    }
    println!("  trace: {path}");
    println!(
        "  again: cargo run --release -p tests --bin sim -- --seeds {seed} --seconds {} --clients {} --names {} --skew-ppm {}{}",
        arguments.seconds,
        arguments.clients,
        arguments.names,
        arguments.skew_ppm,
        if arguments.calm { " --calm" } else { "" }
    );
}

fn write_trace(ended: &Run, arguments: &Arguments) -> String {
    let path = arguments.traces.join(format!("seed-{}.txt", ended.seed));
    let text = format!("{}\n\n{}\n", ended.wrong.join("\n"), ended.trace.join("\n"));
    let written = fs::create_dir_all(&arguments.traces).and_then(|()| fs::write(&path, text));
    match written {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("cannot be written: {error}"),
    }
}

fn report(arguments: &Arguments, coverage: &Coverage, told: &serde_json::Value) {
    let counts: serde_json::Map<String, serde_json::Value> = coverage
        .counts()
        .map(|(kind, count)| (kind.to_owned(), count.into()))
        .collect();
    if arguments.json {
        println!("{}", json!({ "run": told, "met": counts }));
        return;
    }
    for (kind, count) in coverage.counts() {
        println!("{count:>10}  {kind}");
    }
    println!("{told}");
}
