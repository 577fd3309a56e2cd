//! A lease machine with many live leases, and entries for it as the proposer makes them.

use std::hint::black_box;
use std::time::Duration;

use lease_core::machine::codec::{self, EncodedCommand};
use lease_core::machine::{Acquire, Command, LeaseKey, LeaseMachine, Outcome, ReleaseCause, Renewal};
use lease_core::{Database, FenceToken, LeaseName, OwnerId, Timestamp, Ttl};

use crate::Error;
use crate::stopwatch::Stopwatch;

/// Live leases that the budgets speak of.
pub const LEASES: u64 = 1_000_000;
/// Commands of one entry: half of 256 callers, since two entries are in flight.
pub const BATCH: usize = 128;
/// Leases last this long at the least, in milliseconds of cluster time: none ends while it is measured.
const TTL_MS_MIN: u64 = 600_000;
/// How much longer they last at the most where their lengths differ.
const TTL_MS_SPREAD: u64 = 600_000;

/// The name of lease `n`, 24 bytes long.
///
/// # Errors
/// None for numbers below 10^12.
pub fn name(n: u64) -> Result<LeaseName, Error> {
    Ok(LeaseName::new(format!("lock:reward:{n:012}"))?)
}

/// The owner of lease `n`, 24 bytes long.
///
/// # Errors
/// None for numbers below 10^17.
pub fn owner(n: u64) -> Result<OwnerId, Error> {
    Ok(OwnerId::new(format!("worker-{n:017}"))?)
}

/// How long the leases of a population last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttls {
    /// All equally long, as those of one service: a new deadline is the last one.
    Equal,
    /// Of any length, as those of many services: a new deadline falls anywhere among those that stand, which costs the
    /// order of deadlines the most.
    Mixed,
}

/// A lease that lives.
#[derive(Debug, Clone, Copy)]
struct Live {
    n: u64,
    token: FenceToken,
}

/// How long one entry took.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// `LeaseMachine::apply` alone.
    pub apply: Duration,
    /// With the decoding before it, and letting go of commands, outcomes and effects after it.
    pub whole: Duration,
}

/// The machine, and what lives in it.
#[derive(Debug)]
pub struct Population {
    machine: LeaseMachine,
    live: Vec<Live>,
    next: u64,
    at: Timestamp,
    ttls: Ttls,
    random: Random,
}

impl Population {
    /// An open machine without a lease.
    ///
    /// # Errors
    /// The machine refuses, which would be a bug.
    pub fn new(ttls: Ttls) -> Result<Self, Error> {
        let mut population = Self {
            machine: LeaseMachine::new(),
            live: Vec::new(),
            next: 0,
            at: Timestamp::ZERO,
            ttls,
            random: Random(1),
        };
        population.apply(&[Command::RaiseTokenFloor { floor: 1 << 40 }])?;
        Ok(population)
    }

    /// A machine with `leases` live leases.
    ///
    /// # Errors
    /// As [`Population::new`].
    pub fn of(leases: u64, ttls: Ttls) -> Result<Self, Error> {
        let mut population = Self::new(ttls)?;
        population.grow_to(leases)?;
        Ok(population)
    }

    /// Grants new names until `leases` live; answers with the longest time that one entry took.
    ///
    /// # Errors
    /// As [`Population::new`].
    pub fn grow_to(&mut self, leases: u64) -> Result<Duration, Error> {
        self.live
            .reserve_exact(usize::try_from(leases)?.saturating_add(BATCH));
        let mut longest = Duration::ZERO;
        while (self.live.len() as u64) < leases {
            longest = longest.max(self.acquire()?.apply);
        }
        Ok(longest)
    }

    /// One entry of acquires of names that nobody holds.
    ///
    /// # Errors
    /// As [`Population::new`].
    pub fn acquire(&mut self) -> Result<Entry, Error> {
        let first = self.next;
        let names = first..first + BATCH as u64;
        self.next = names.end;
        let commands: Vec<Command> = names
            .clone()
            .map(|n| self.acquire_of(n))
            .collect::<Result<_, _>>()?;
        let (entry, outcomes) = self.apply(&commands)?;
        for (n, outcome) in names.zip(outcomes) {
            let Outcome::Granted { token, .. } = outcome else {
                return Err(format!("not granted: {outcome:?}").into());
            };
            self.live.push(Live { n, token });
        }
        Ok(entry)
    }

    /// One entry of releases of leases picked anywhere.
    ///
    /// # Errors
    /// As [`Population::new`].
    pub fn release(&mut self) -> Result<Entry, Error> {
        let mut commands = Vec::with_capacity(BATCH);
        for _ in 0..BATCH.min(self.live.len()) {
            let at = self.random.below(self.live.len());
            let Live { n, token } = self.live.swap_remove(at);
            let key = key(n)?;
            let cause = ReleaseCause::Holder;
            commands.push(Command::Release { key, token, cause });
        }
        let (entry, outcomes) = self.apply(&commands)?;
        expect_all(&outcomes, |outcome| matches!(outcome, Outcome::Released { .. }))?;
        Ok(entry)
    }

    /// One entry of renewals of leases picked anywhere.
    ///
    /// # Errors
    /// As [`Population::new`].
    pub fn renew(&mut self) -> Result<Entry, Error> {
        let mut commands = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let Live { n, token } = self.any()?;
            let (key, ttl) = (key(n)?, Some(self.ttl()?));
            commands.push(Command::Renew(Renewal { key, token, ttl }));
        }
        let (entry, outcomes) = self.apply(&commands)?;
        expect_all(&outcomes, |outcome| matches!(outcome, Outcome::Renewed { .. }))?;
        Ok(entry)
    }

    /// One entry of acquires of names that somebody holds.
    ///
    /// # Errors
    /// As [`Population::new`].
    pub fn contend(&mut self) -> Result<Entry, Error> {
        let mut commands = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let Live { n, .. } = self.any()?;
            commands.push(self.acquire_of(n)?);
        }
        let (entry, outcomes) = self.apply(&commands)?;
        expect_all(&outcomes, |outcome| matches!(outcome, Outcome::Held(_)))?;
        Ok(entry)
    }

    /// The machine.
    #[must_use]
    pub const fn machine(&self) -> &LeaseMachine {
        &self.machine
    }

    /// Bytes that this holds beside the machine.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        (self.live.len() as u64).saturating_mul(size_of::<Live>() as u64)
    }

    /// Commands go through the log's encoding, so that every name is memory of its own, as in a store.
    fn apply(&mut self, commands: &[Command]) -> Result<(Entry, Vec<Outcome>), Error> {
        let encoded: Vec<EncodedCommand> = commands
            .iter()
            .map(EncodedCommand::new)
            .collect::<Result<_, _>>()?;
        let body = codec::join(&encoded)?;
        self.at = self.at.after_millis(1);
        let whole = Stopwatch::start();
        let commands = codec::split(&body)?;
        let watch = Stopwatch::start();
        let applied = black_box(self.machine.apply_entry(self.at, &commands)?);
        let apply = watch.elapsed();
        drop(commands);
        drop(applied.effects);
        let whole = whole.elapsed();
        Ok((Entry { apply, whole }, applied.outcomes))
    }

    fn acquire_of(&mut self, n: u64) -> Result<Command, Error> {
        Ok(Command::Acquire(Acquire {
            key: key(n)?,
            owner: owner(n)?,
            ttl: self.ttl()?,
            wait: None,
            request: None,
            metadata: None,
        }))
    }

    fn any(&mut self) -> Result<Live, Error> {
        let at = self.random.below(self.live.len());
        Ok(*self.live.get(at).ok_or("nothing lives")?)
    }

    fn ttl(&mut self) -> Result<Ttl, Error> {
        let longer = match self.ttls {
            Ttls::Equal => 0,
            Ttls::Mixed => self.random.next() % TTL_MS_SPREAD,
        };
        Ok(Ttl::from_millis(TTL_MS_MIN + longer)?)
    }
}

fn key(n: u64) -> Result<LeaseKey, Error> {
    Ok(LeaseKey::new(Database::ZERO, name(n)?))
}

fn expect_all(outcomes: &[Outcome], is_right: impl Fn(&Outcome) -> bool) -> Result<(), Error> {
    match outcomes.iter().find(|outcome| !is_right(outcome)) {
        None => Ok(()),
        Some(other) => Err(format!("another answer than measured for: {other:?}").into()),
    }
}

/// `SplitMix64`: the same picks in every run.
#[derive(Debug)]
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = (end as u64).max(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_owners_have_the_length_that_the_budget_names() {
        assert_eq!(name(7).unwrap().as_bytes().len(), 24);
        assert_eq!(owner(7).unwrap().as_bytes().len(), 24);
    }

    #[test]
    fn every_kind_of_entry_is_answered_as_measured() {
        let mut population = Population::of(1_024, Ttls::Mixed).unwrap();
        population.renew().unwrap();
        population.contend().unwrap();
        population.release().unwrap();
        assert_eq!(population.machine().stats().leases, 1_024 - BATCH as u64);
        population.acquire().unwrap();
        assert_eq!(population.machine().stats().leases, 1_024);
    }
}
