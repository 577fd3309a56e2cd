//! Every budget in one run: what is compared is measured in turns, side by side, and a miss fails the run.
//!
//! `cargo bench -p benches --bench ratios [-- --quick] [-- --only SECTION] [-- --dir DIR]`; the sections are `memory`,
//! `machine`, `store`, `ledger`, `postgres`, `publisher`, `audit` and `stalls`. Figures go to stdout as Markdown, progress to stderr.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::Error;
use benches::audits::{self, Kept};
use benches::bare_disk::BareDisk;
use benches::budget::{Figure, Findings};
use benches::claims::Claims;
use benches::database::Database;
use benches::deliveries;
use benches::embedded::{Embedded, Flavour};
use benches::hand_written::{HandWritten, Style};
use benches::options::{Asked, Effort, Options};
use benches::population::{BATCH, LEASES};
use benches::progress::say;
use benches::samples::{median, micros, millis};
use benches::scratch::Scratch;
use benches::stalls::{self, Stall};
use benches::{host, machine_times};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Callers at once, wherever many are measured.
const CALLERS: u32 = 256;
/// Leases that end at once, or are in a snapshot, in a quick run: filling a store with a million takes long.
const LEASES_QUICK: u64 = 200_000;

/// Callers of the claims in PostgreSQL, and connections of the transaction that they are compared with.
const CALLERS_OF_DATABASE: u32 = 64;
/// Claims that the budgets of an audit speak of, and those of a quick run.
const AUDITED: (u32, u32) = (1_000_000, 20_000);
/// Rows that a publisher delivers.
const DELIVERED: (u32, u32) = (40_000, 4_000);

fn main() -> Result<ExitCode, Error> {
    if audits::audit_if_asked()? {
        return Ok(ExitCode::SUCCESS);
    }
    let options = match Options::read(std::env::args().skip(1))? {
        Asked::Run(options) => options,
        Asked::NotABenchmark => return Ok(ExitCode::SUCCESS),
    };
    let below = options
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let run = Run {
        effort: options.effort,
        scratch: Scratch::below(&below)?,
    };
    let mut findings = Findings::default();
    println!("{}; files on {}\n", host::describe(), run.scratch.file_system());
    // First of all, while this process is small.
    if options.wants("memory") {
        run.memory(&mut findings)?;
    }
    if options.wants("machine") {
        run.machine(&mut findings)?;
    }
    if options.wants("store") {
        run.one_caller(&mut findings)?;
        run.many_callers(&mut findings)?;
    }
    if options.wants("ledger") {
        run.ledger(&mut findings)?;
    }
    if ["postgres", "publisher", "audit"]
        .iter()
        .any(|name| options.wants(name))
    {
        run.with_a_database(&options, &mut findings)?;
    }
    if options.wants("stalls") {
        run.stalls(&mut findings)?;
    }
    println!("## Budgets\n\n{}", findings.table());
    println!("load at the end {}", host::load());
    Ok(if findings.all_hold() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Run {
    effort: Effort,
    scratch: Scratch,
}

impl Run {
    /// Rounds in turns, and the time of one.
    fn rounds(&self) -> (usize, Duration) {
        self.effort
            .pick((9, Duration::from_millis(1_500)), (5, Duration::from_millis(300)))
    }

    fn memory(&self, findings: &mut Findings) -> Result<(), Error> {
        let each = machine_times::bytes_of_one_lease()?;
        println!("## Memory\n\n{each:.0} bytes a live lease: what the process grew by.\n");
        findings.note(Figure::LeaseBytes, each);
        Ok(())
    }

    fn machine(&self, findings: &mut Findings) -> Result<(), Error> {
        let times = machine_times::measure(self.effort)?;
        println!(
            "## Machine, {LEASES} live leases, entries of {BATCH} commands\n\n{}",
            times.table
        );
        findings.note(Figure::ApplyAcquire, times.acquire_us);
        Ok(())
    }

    fn one_caller(&self, findings: &mut Findings) -> Result<(), Error> {
        println!("## Embedded in memory, one caller\n");
        println!("| runtime | acquire, median | p99 | release, median | p99 |\n|---|---|---|---|---|");
        let (rounds, time) = self.rounds();
        for flavour in Flavour::BOTH {
            say(format_args!("embedded in memory, one caller, {}", flavour.name()));
            let embedded = Embedded::in_memory(flavour)?;
            embedded.one_caller(time)?;
            let seen = embedded.one_caller(time * u32::try_from(rounds)? / 2)?;
            let (acquire, release) = (&seen.acquire, &seen.release);
            println!(
                "| {} | {:.1} us | {:.1} us | {:.1} us | {:.1} us |",
                flavour.name(),
                micros(acquire.median()),
                micros(acquire.exceeded_by_one_in(100)),
                micros(release.median()),
                micros(release.exceeded_by_one_in(100)),
            );
            if flavour == Flavour::CurrentThread {
                findings.note(Figure::MemoryAcquire, micros(acquire.median()));
                findings.note(Figure::MemoryRelease, micros(release.median()));
            }
            embedded.stop()?;
        }
        println!();
        Ok(())
    }

    fn many_callers(&self, findings: &mut Findings) -> Result<(), Error> {
        let (rounds, time) = self.rounds();
        let mut bare = BareDisk::create(&self.scratch.child("bare-beside-store"))?;
        let stores = [
            Embedded::in_directory(Flavour::CurrentThread, &self.scratch.child("store-current"))?,
            Embedded::in_directory(Flavour::MultiThread, &self.scratch.child("store-multi"))?,
        ];
        let [current, multi] = &stores;
        let (mut alone, mut one, mut on_current, mut on_multi) = (vec![], vec![], vec![], vec![]);
        for round in 1..=rounds {
            say(format_args!(
                "embedded on disk beside the bare disk, round {round} of {rounds}"
            ));
            alone.push(bare.rate(time)?);
            on_current.push(current.rate(CALLERS, time)?);
            on_multi.push(multi.rate(CALLERS, time)?);
            one.push(current.rate(1, time)?);
        }
        println!("## Embedded on disk: commands per second, {rounds} rounds in turns, medians\n");
        println!("| | a second | beside the bare loop, median of the rounds' ratios |\n|---|---|---|");
        println!(
            "| bare fdatasync loop, one record of 120 bytes | {:.0} | 1 |",
            median(&alone)
        );
        ratio_line("one caller, current_thread", &one, &alone);
        let ratio = ratio_line("256 callers, current_thread (the default)", &on_current, &alone);
        findings.note(Figure::DiskRate, ratio);
        ratio_line("256 callers, multi_thread, 2 workers", &on_multi, &alone);
        println!();
        stores.into_iter().try_for_each(Embedded::stop)
    }

    fn ledger(&self, findings: &mut Findings) -> Result<(), Error> {
        let (rounds, time) = self.rounds();
        let mut bare = BareDisk::create(&self.scratch.child("bare-beside-ledger"))?;
        let claims = Claims::on_sled(&self.scratch.child("ledger"))?;
        let (mut alone, mut one, mut many) = (vec![], vec![], vec![]);
        for round in 1..=rounds {
            say(format_args!(
                "the ledger beside the bare disk, round {round} of {rounds}"
            ));
            alone.push(bare.rate(time)?);
            many.push(claims.rate(CALLERS, time)?);
            one.push(claims.rate(1, time)?);
        }
        println!("## Ledger on sled: claims per second, {rounds} rounds in turns, medians\n");
        println!("| | a second | beside the bare loop, median of the rounds' ratios |\n|---|---|---|");
        println!(
            "| bare fdatasync loop, one record of 120 bytes | {:.0} | 1 |",
            median(&alone)
        );
        ratio_line("one caller", &one, &alone);
        let ratio = ratio_line("256 callers", &many, &alone);
        findings.note(Figure::ClaimRate, ratio);
        let group = median_ratio(&many, &one);
        println!("\n256 callers beside one: {group:.2}.\n");
        findings.note(Figure::ClaimGroup, group);
        claims.close()
    }

    fn with_a_database(&self, options: &Options, findings: &mut Findings) -> Result<(), Error> {
        let database = Database::start()?;
        println!("PostgreSQL's data on {}\n", database.file_system());
        if options.wants("postgres") {
            self.postgres(&database, findings)?;
        }
        if options.wants("publisher") {
            self.publisher(&database, findings)?;
        }
        if options.wants("audit") {
            self.audit(&database, findings)?;
        }
        Ok(())
    }

    fn postgres(&self, database: &Database, findings: &mut Findings) -> Result<(), Error> {
        let (rounds, time) = self.rounds();
        let open = |style| HandWritten::open(&database.create()?, style, CALLERS_OF_DATABASE);
        let (mut by_hand, mut in_one_call) = (open(Style::Statements)?, open(Style::OneCall)?);
        let claims = Claims::on_postgres(&database.create()?)?;
        let (mut hand, mut call, mut one, mut many) = (vec![], vec![], vec![], vec![]);
        for round in 1..=rounds {
            say(format_args!(
                "the ledger in PostgreSQL beside a transaction of one's own, round {round} of {rounds}"
            ));
            hand.push(by_hand.rate(time)?);
            many.push(claims.rate(CALLERS_OF_DATABASE, time)?);
            call.push(in_one_call.rate(time)?);
            one.push(claims.rate(1, time)?);
        }
        println!("## Ledger in PostgreSQL: claims per second, {rounds} rounds in turns, medians\n");
        println!("| | a second | beside the transaction, median of the rounds' ratios |\n|---|---|---|");
        println!(
            "| hand-written transaction of six statements, 64 connections | {:.0} | 1 |",
            median(&hand)
        );
        ratio_line("one call of the SQL kit's function, 64 connections", &call, &hand);
        ratio_line("the ledger, one caller", &one, &hand);
        let ratio = ratio_line("the ledger, 64 callers", &many, &hand);
        println!();
        findings.note(Figure::ClaimsInPostgres, ratio);
        claims.close()
    }

    fn publisher(&self, database: &Database, findings: &mut Findings) -> Result<(), Error> {
        let rows = self.effort.pick(DELIVERED.0, DELIVERED.1);
        println!("## Publisher: {rows} deliveries over HTTP to an item server of examples/\n");
        println!("| ledger | deliveries a second |\n|---|---|");
        let places = [
            (
                "on sled",
                Kept::Sled(self.scratch.child("published")),
                Figure::DeliveriesOfSled,
            ),
            (
                "in PostgreSQL",
                Kept::Postgres(database.create()?),
                Figure::DeliveriesOfPostgres,
            ),
        ];
        for (what, kept, figure) in places {
            say(format_args!("the publisher of a ledger {what}"));
            let rate = Flavour::CurrentThread.runtime()?.block_on(async {
                let ledger = kept.open().await?;
                let rate = deliveries::rate(&ledger, rows).await?;
                ledger.close().await?;
                Ok::<_, Error>(rate)
            })?;
            println!("| {what} | {rate:.0} |");
            findings.note(figure, rate);
        }
        println!();
        Ok(())
    }

    fn audit(&self, database: &Database, findings: &mut Findings) -> Result<(), Error> {
        let claims = self.effort.pick(AUDITED.0, AUDITED.1);
        println!("## Audit: in a process of its own\n");
        println!("| ledger | claims | time | memory at the most |\n|---|---|---|---|");
        let (sled, postgres) = (
            Kept::Sled(self.scratch.child("audited")),
            Kept::Postgres(database.create()?),
        );
        let places = [
            ("on sled", sled, Figure::AuditOfSled, Figure::AuditBytesOfSled),
            (
                "in PostgreSQL",
                postgres,
                Figure::AuditOfPostgres,
                Figure::AuditBytesOfPostgres,
            ),
        ];
        for (what, kept, time, memory) in places {
            say(format_args!("{claims} claims {what}, to be audited"));
            kept.fill(claims)?;
            say(format_args!("the audit {what}"));
            let audit = kept.audit(claims)?;
            let (seconds, mib) = (audit.lasted.as_secs_f64(), mebibytes(audit.bytes_at_most));
            println!("| {what} | {claims} | {seconds:.1} s | {mib:.0} MiB |");
            // The budgets speak of a million.
            if claims == AUDITED.0 {
                findings.note(time, seconds);
                findings.note(memory, mib);
            }
        }
        println!();
        Ok(())
    }

    fn stalls(&self, findings: &mut Findings) -> Result<(), Error> {
        println!("## Stalls: acquires of another caller meanwhile, current_thread\n");
        let (rounds, leases) = self.effort.pick((5, LEASES), (1, LEASES_QUICK));
        if leases != LEASES {
            println!("A quick run: {leases} leases in place of 1,000,000.\n");
        }
        println!(
            "| | longest | p99.9 | median | acquires | it lasted | kept from running |\n|---|---|---|---|---|---|---|"
        );
        let events: [(&str, Event, Place, Figure); 4] = [
            (
                "all leases end, in memory",
                stalls::expiry,
                Place::Memory,
                Figure::ExpiryInMemory,
            ),
            (
                "all leases end, on disk",
                stalls::expiry,
                Place::Disk,
                Figure::ExpiryOnDisk,
            ),
            (
                "a snapshot of all, in memory",
                stalls::snapshot,
                Place::Memory,
                Figure::SnapshotInMemory,
            ),
            (
                "a snapshot of all, on disk",
                stalls::snapshot,
                Place::Disk,
                Figure::SnapshotOnDisk,
            ),
        ];
        for (at, (what, event, place, figure)) in events.into_iter().enumerate() {
            let mut calmest: Option<Stall> = None;
            for round in 1..=rounds {
                say(format_args!("{what}, round {round} of {rounds}"));
                let embedded = match place {
                    Place::Memory => Embedded::in_memory(Flavour::CurrentThread)?,
                    Place::Disk => {
                        let directory = self.scratch.child(&format!("stall-{at}-{round}"));
                        Embedded::in_directory(Flavour::CurrentThread, &directory)?
                    }
                };
                let stall = event(&embedded, leases)?;
                embedded.stop()?;
                print_stall(what, &stall);
                if calmest
                    .as_ref()
                    .is_none_or(|calmest| stall.disturbance() < calmest.disturbance())
                {
                    calmest = Some(stall);
                }
            }
            if let Some(stall) = calmest {
                findings.note(figure, millis(stall.acquires.max()));
            }
        }
        println!("\nThe budget is held to the calmest round of each: the one that others disturbed least.");
        println!();
        Ok(())
    }
}

type Event = fn(&Embedded, u64) -> Result<Stall, Error>;

#[derive(Clone, Copy)]
enum Place {
    Memory,
    Disk,
}

fn print_stall(what: &str, stall: &Stall) {
    let acquires = &stall.acquires;
    println!(
        "| {what} | {:.1} ms | {:.2} ms | {:.3} ms | {} | {:.1} s | {:.0} % |",
        millis(acquires.max()),
        millis(acquires.exceeded_by_one_in(1_000)),
        millis(acquires.median()),
        acquires.len(),
        stall.lasted.as_secs_f64(),
        stall.disturbance() * 100.0,
    );
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1_024.0 * 1_024.0)
}

/// Prints one line of a comparison; answers with its ratio.
fn ratio_line(what: &str, rates: &[f64], beside: &[f64]) -> f64 {
    let ratio = median_ratio(rates, beside);
    println!("| {what} | {:.0} | {ratio:.2} |", median(rates));
    ratio
}

/// The middle one of the ratios of each round: what the machine does meanwhile hits both sides of one round alike.
fn median_ratio(rates: &[f64], beside: &[f64]) -> f64 {
    let ratios: Vec<f64> = rates
        .iter()
        .zip(beside)
        .map(|(rate, beside)| rate / beside)
        .collect();
    median(&ratios)
}
