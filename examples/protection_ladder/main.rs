//! Ten protections of a reward against twelve things that go wrong, each rung on top of those before it, run for real and
//! counted: plain Redis lock, compare-and-delete, longer TTL, watchdog, Redlock, the SQL that is usually published, a
//! token that the ledger checks, unique key, receipts, outbox.
//!
//! `cargo run --release --example protection_ladder -- --html ladder.html`
//!
//! Redis and PostgreSQL are those that are installed, started for this run on ports and in directories of their own; the
//! lease store is our server in this process, the ledger ours on sled. Worker A is a thread with a runtime of its own,
//! which stops as a whole. The table of rungs 1 to 5 is in this process's memory: it takes what it is given, as a table
//! does. Every figure is counted from the tables and the outside servers' books of this run. Times are a tenth of those
//! that users have: `--scale 1` plays them at full length.

#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

mod books;
mod counts;
mod facts;
mod json;
mod ladder;
mod link;
mod lock;
mod matrix;
mod outside;
mod page;
mod pause;
mod rung;
mod scenario;
mod scenes;
mod servers;
mod stage;
#[cfg(test)]
mod tests;
mod timeline;
mod times;
mod worker;

use std::error::Error;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::ladder::{Run, climb};
use crate::rung::Rung;
use crate::scenario::Scenario;
use crate::times::Times;

/// What the ladder fails with where it cannot be run.
type Failure = Box<dyn Error + Send + Sync>;

/// Runs ten protections of a reward against what goes wrong, and counts.
#[derive(Debug, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of a command line"
)]
#[command(name = "protection_ladder")]
struct Arguments {
    /// All times, as a part of those that users have: 0.03 to 1.
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    scale: f64,
    /// Only these rungs and scenarios, such as `1,10` or `S1,S14` or `6,S7`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print JSON instead of the matrix.
    #[arg(long)]
    json: bool,
    /// Print the matrix as Markdown, as docs/choosing.md has it.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write a page with a drawn timeline of each race here.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    if (Times::SCALE_MIN..=Times::SCALE_MAX).contains(&scale) {
        return Ok(scale);
    }
    Err(format!("{} to {}", Times::SCALE_MIN, Times::SCALE_MAX))
}

/// What `--only` asks for.
fn chosen(only: &[String]) -> Result<(Vec<Rung>, Vec<Scenario>), Failure> {
    let (mut rungs, mut scenarios) = (Vec::new(), Vec::new());
    for word in only {
        let rung = Rung::ALL
            .into_iter()
            .find(|rung| rung.number().to_string() == *word);
        let scenario = Scenario::ALL
            .into_iter()
            .find(|scenario| scenario.id().eq_ignore_ascii_case(word));
        if rung.is_none() && scenario.is_none() {
            return Err(format!("--only {word}: rungs are 1 to 10, scenarios S1 to S11 and S14").into());
        }
        rungs.extend(rung);
        scenarios.extend(scenario);
    }
    if rungs.is_empty() {
        rungs.extend(Rung::ALL);
    }
    if scenarios.is_empty() {
        scenarios.extend(Scenario::ALL);
    }
    Ok((rungs, scenarios))
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let arguments = Arguments::parse();
    let (rungs, scenarios) = chosen(&arguments.only)?;
    let times = Times {
        scale: arguments.scale,
    };
    let run = climb(&rungs, &scenarios, times, show_progress).await?;
    if let Some(file) = &arguments.html {
        std::fs::write(file, page::draw(&run)).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if arguments.json {
        println!("{}", json::of(&run));
    } else if arguments.markdown {
        println!("{}", matrix::markdown(&run));
    } else {
        println!("{}", matrix::text(&run));
        if let Some(file) = &arguments.html {
            println!("The timelines: {}", file.display());
        }
    }
    Ok(if surprises(&run).is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where the run did not show what is claimed of a rung.
fn surprises(run: &Run) -> Vec<String> {
    let is_one = |cell: &&ladder::Cell| !facts::fact(cell.rung, cell.scenario).is_shown_by(cell.counts);
    let told = |cell: &ladder::Cell| {
        format!(
            "rung {} in {}: {:?} was expected, and there is: {}",
            cell.rung.number(),
            cell.scenario.id(),
            facts::fact(cell.rung, cell.scenario),
            cell.counts
        )
    };
    run.cells.iter().filter(is_one).map(told).collect()
}

/// A line that is overwritten, where somebody watches.
fn show_progress(done: usize, all: usize) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let end = if done == all { "\r\x1b[K" } else { "" };
        // Nobody misses it.
        let _ = write!(out, "\r{done} of {all}{end}").and_then(|()| out.flush());
    }
}
