//! The longest acquire while a million leases end, and while a snapshot of a million is built, on both runtimes.
//!
//! `ratios` holds the default runtime to the budgets; this shows the other one too.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::path::PathBuf;

use benches::Error;
use benches::embedded::{Embedded, Flavour};
use benches::options::{Asked, Options};
use benches::population::LEASES;
use benches::samples::millis;
use benches::scratch::Scratch;
use benches::stalls::{Stall, expiry, snapshot};
use benches::{host, progress};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Event = (&'static str, fn(&Embedded, u64) -> Result<Stall, Error>);

const EVENTS: [Event; 2] = [
    ("1,000,000 leases end", expiry),
    ("a snapshot of 1,000,000", snapshot),
];

fn main() -> Result<(), Error> {
    let Asked::Run(options) = Options::read(std::env::args().skip(1))? else {
        return Ok(());
    };
    let below = options
        .dir
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let scratch = Scratch::below(&below)?;
    println!("{}; files on {}\n", host::describe(), scratch.file_system());
    println!(
        "| | runtime | longest | p99.9 | median | acquires | it lasted | kept from running |\n|---|---|---|---|---|---|---|---|"
    );
    for flavour in Flavour::BOTH {
        for (what, event) in EVENTS {
            progress::say(format_args!("{what}, in memory, {}", flavour.name()));
            print(what, "in memory", flavour, Embedded::in_memory(flavour)?, event)?;
            progress::say(format_args!("{what}, on disk, {}", flavour.name()));
            let folder = scratch.child(&format!("{what} {}", flavour.name()));
            print(
                what,
                "on disk",
                flavour,
                Embedded::in_directory(flavour, &folder)?,
                event,
            )?;
        }
    }
    Ok(())
}

fn print(
    what: &str,
    place: &str,
    flavour: Flavour,
    embedded: Embedded,
    event: fn(&Embedded, u64) -> Result<Stall, Error>,
) -> Result<(), Error> {
    let stall = event(&embedded, LEASES)?;
    let acquires = &stall.acquires;
    println!(
        "| {what}, {place} | {} | {:.1} ms | {:.2} ms | {:.3} ms | {} | {:.1} s | {:.0} % |",
        flavour.name(),
        millis(acquires.max()),
        millis(acquires.exceeded_by_one_in(1_000)),
        millis(acquires.median()),
        acquires.len(),
        stall.lasted.as_secs_f64(),
        stall.disturbance() * 100.0,
    );
    embedded.stop()
}
