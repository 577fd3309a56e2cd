//! The machine with a million live leases: how long an entry takes, and how much memory a lease.

use std::fmt::Write as _;
use std::time::Duration;

use crate::options::Effort;
use crate::population::{BATCH, Entry, LEASES, Population, Ttls};
use crate::progress::say;
use crate::samples::{Samples, micros, millis};
use crate::stopwatch::Stopwatch;
use crate::{Error, host};

/// What was measured.
#[derive(Debug)]
pub struct MachineTimes {
    /// All of it, in Markdown.
    pub table: String,
    /// Microseconds of one acquire where ttls are mixed, at the median.
    pub acquire_us: f64,
}

/// Measures entries of each kind, with equal and with mixed ttls, and a view.
///
/// # Errors
/// The machine refuses, which would be a bug.
pub fn measure(effort: Effort) -> Result<MachineTimes, Error> {
    let batches = effort.pick(4_000, 1_000);
    let mut table =
        String::from("| command | ttls | apply, median | apply, mean | decode, apply and let go, median |\n");
    table.push_str("|---|---|---|---|---|\n");
    let (equal, _) = Machine::measured(Ttls::Equal, batches)?;
    table.push_str(&equal.rows("equal"));
    drop(equal);
    let (mut mixed, growth) = Machine::measured(Ttls::Mixed, batches)?;
    table.push_str(&mixed.rows("mixed"));
    // Writing to a string cannot fail.
    let _ = writeln!(
        table,
        "\nThe slowest entry while it grew to {LEASES}: {:.1} ms.",
        millis(growth)
    );
    table.push_str(&mixed.view(batches)?);
    Ok(MachineTimes {
        table,
        acquire_us: mixed.acquire.of_one().0,
    })
}

/// By how much this process grows for each live lease. To be asked first, while nothing else was let go that could be
/// used again.
///
/// # Errors
/// The machine refuses, which would be a bug.
pub fn bytes_of_one_lease() -> Result<f64, Error> {
    say("memory of 1,000,000 leases");
    let before = host::resident_bytes();
    let population = Population::of(LEASES, Ttls::Mixed)?;
    let grown = host::resident_bytes().saturating_sub(before);
    let leases = population.machine().stats().leases;
    Ok(as_f64(grown.saturating_sub(population.own_bytes())) / as_f64(leases))
}

/// Times of entries of one kind of command.
#[derive(Default)]
struct Times {
    apply: Samples,
    whole: Samples,
    applied_in: Duration,
}

/// A machine with its times.
struct Machine {
    population: Population,
    acquire: Times,
    contended: Times,
    renew: Times,
    release: Times,
}

impl Times {
    fn add(&mut self, entry: Entry) {
        self.apply.push(entry.apply);
        self.whole.push(entry.whole);
        self.applied_in += entry.apply;
    }

    /// Microseconds of one command: apply at the median and the mean, and the whole at the median.
    fn of_one(&self) -> (f64, f64, f64) {
        let commands = as_f64(BATCH as u64);
        let entries = as_f64(self.apply.len().max(1) as u64);
        (
            micros(self.apply.median()) / commands,
            micros(self.applied_in) / commands / entries,
            micros(self.whole.median()) / commands,
        )
    }
}

impl Machine {
    /// Entries of each kind in turns, and the slowest entry until all leases lived.
    fn measured(ttls: Ttls, batches: usize) -> Result<(Self, Duration), Error> {
        say(format_args!("the machine with 1,000,000 leases, ttls {ttls:?}"));
        let mut population = Population::new(ttls)?;
        let growth = population.grow_to(LEASES)?;
        let mut machine = Self {
            population,
            acquire: Times::default(),
            contended: Times::default(),
            renew: Times::default(),
            release: Times::default(),
        };
        for _ in 0..batches {
            machine.measure_once()?;
        }
        Ok((machine, growth))
    }

    fn measure_once(&mut self) -> Result<(), Error> {
        self.release.add(self.population.release()?);
        self.acquire.add(self.population.acquire()?);
        self.renew.add(self.population.renew()?);
        self.contended.add(self.population.contend()?);
        Ok(())
    }

    fn rows(&self, ttls: &str) -> String {
        let named = [
            ("acquire", &self.acquire),
            ("acquire of a held lease", &self.contended),
            ("renew", &self.renew),
            ("release", &self.release),
        ];
        let row = |(name, times): (&str, &Times)| {
            let (apply, mean, whole) = times.of_one();
            format!("| {name} | {ttls} | {apply:.2} us | {mean:.2} us | {whole:.2} us |\n")
        };
        named.into_iter().map(row).collect()
    }

    /// The time that a view takes, and of entries while it is held, whose chunks must be copied.
    fn view(&mut self, batches: usize) -> Result<String, Error> {
        let watch = Stopwatch::start();
        let view = self.population.machine().view();
        let taken = watch.elapsed();
        let mut after = Samples::default();
        for _ in 0..batches {
            after.push(self.population.renew()?.apply);
        }
        drop(view);
        Ok(format!(
            "A view: {:.2} ms. Entries of {BATCH} renewals anywhere while it is held: {:.2} ms at the most, {:.2} ms at the median.\n",
            millis(taken),
            millis(after.max()),
            millis(after.median())
        ))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts and bytes far below 2^53")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}
