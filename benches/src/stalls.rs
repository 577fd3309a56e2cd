//! What must not hold up an acquire: a million leases that end at once, and a snapshot of a million.
//!
//! Another caller acquires and releases all the while; its longest acquire is the figure.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lease_core::limits::METADATA_BYTES_MAX;
use lease_core::{Metadata, Ttl};
use lease_store::LeaseStore;
use tokio::task::JoinSet;

use crate::embedded::{Caller, Embedded, acquire, plain_acquire};
use crate::population::{name, owner};
use crate::samples::Samples;
use crate::stopwatch::Stopwatch;
use crate::{Error, host};

/// Callers that fill a store.
const FILLERS: u64 = 256;
/// Callers that write entries until a snapshot is due. Few, so that the probe's time is the store's.
const WRITERS: u64 = 8;
/// How long leases last that shall not end.
const LONG: Duration = Duration::from_secs(3_600);
/// The part of the leases, one in so many, that is filled first to learn how long the rest will take.
const TRIAL_PART: u64 = 20;
/// How long before the moment at which all ends the probe's times count, and how long after the last end.
const MARGIN: Duration = Duration::from_millis(200);
/// Longest run of one measurement.
const AT_MOST: Duration = Duration::from_secs(300);

/// What the probe saw.
#[derive(Debug)]
pub struct Stall {
    /// Times of its acquires.
    pub acquires: Samples,
    /// How long the event lasted.
    pub lasted: Duration,
    /// How long others kept us from running in the time in which these acquires were made.
    pub kept_from_running: Duration,
    /// That time.
    pub watched: Duration,
}

impl Stall {
    /// How far others on the machine disturbed the round: the part of its time for which a thread of ours was kept from
    /// running. Above 1 if several were at once.
    #[must_use]
    pub fn disturbance(&self) -> f64 {
        self.kept_from_running.as_secs_f64() / self.watched.as_secs_f64().max(f64::EPSILON)
    }
}

/// `leases` end at the same moment: within some milliseconds of one second.
///
/// # Errors
/// The store refuses, or is too slow to be filled before they end.
pub fn expiry(embedded: &Embedded, leases: u64) -> Result<Stall, Error> {
    let store = embedded.store().clone();
    embedded.run(async move {
        let trial = leases / TRIAL_PART;
        let watch = Stopwatch::start();
        fill(&store, 0..trial, Ends::After(LONG)).await?;
        let filled_in = watch.elapsed() * u32::try_from(TRIAL_PART)?;
        let mut names = trial..trial + leases;
        for patience in [2, 4, 8] {
            let clock = Stopwatch::start();
            let end = filled_in * patience + Duration::from_secs(2);
            let filled = fill(&store, names.clone(), Ends::At { clock, end }).await?;
            if filled == Filled::All && clock.elapsed() + MARGIN < end {
                return probe_the_end(&store, trial, clock, end).await;
            }
            // Those that were granted end by themselves before the next ones do.
            names = names.end..names.end + leases;
        }
        Err("filling took longer each time than planned: leases ended before all were granted".into())
    })
}

/// Acquires until no more than `stay` leases are left; all others end when `clock` shows `end`.
async fn probe_the_end(
    store: &LeaseStore,
    stay: u64,
    clock: Stopwatch,
    end: Duration,
) -> Result<Stall, Error> {
    let mut probe = Caller::new(store.clone(), 0)?;
    let mut acquires = Samples::default();
    while clock.elapsed() + MARGIN < end {
        probe.round().await?;
    }
    let (kept, watched) = (host::kept_from_running(), Stopwatch::start());
    let mut over = None;
    while over.is_none_or(|over| clock.elapsed() < over + MARGIN) {
        acquires.push(probe.round().await?.0);
        if over.is_none() && store.stats().leases <= stay {
            over = Some(clock.elapsed());
        }
        give_up_after(clock)?;
    }
    Ok(Stall {
        acquires,
        lasted: over.unwrap_or_default().saturating_sub(end),
        kept_from_running: host::kept_from_running().saturating_sub(kept),
        watched: watched.elapsed(),
    })
}

/// A snapshot is built while `leases` live.
///
/// # Errors
/// The store refuses.
pub fn snapshot(embedded: &Embedded, leases: u64) -> Result<Stall, Error> {
    let store = embedded.store().clone();
    embedded.run(async move {
        fill(&store, 0..leases, Ends::After(LONG)).await?;
        // The filling itself made a snapshot due, which may be under way: only one of all the leases counts.
        let all = store.status().applied_index.ok_or("nothing was applied")?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for n in 0..WRITERS {
            let metadata = Metadata::new([0x61; METADATA_BYTES_MAX])?;
            let mut writer = Caller::new(store.clone(), 1 + n)?.with_metadata(metadata);
            let stop = Arc::clone(&stop);
            writers.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    writer.round().await?;
                }
                Ok::<(), Error>(())
            });
        }
        let mut probe = Caller::new(store.clone(), 0)?;
        let mut acquires = Samples::default();
        let kept = host::kept_from_running();
        let clock = Stopwatch::start();
        let mut over = None;
        while over.is_none_or(|over| clock.elapsed() < over + MARGIN) {
            acquires.push(probe.round().await?.0);
            if over.is_none() && store.status().snapshot_index >= Some(all) {
                over = Some(clock.elapsed());
            }
            give_up_after(clock)?;
        }
        let kept_from_running = host::kept_from_running().saturating_sub(kept);
        let watched = clock.elapsed();
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = writers.join_next().await {
            ended??;
        }
        Ok(Stall {
            acquires,
            lasted: over.unwrap_or_default(),
            kept_from_running,
            watched,
        })
    })
}

/// When leases end that a filling grants.
#[derive(Debug, Clone, Copy)]
enum Ends {
    After(Duration),
    /// All at the moment when `clock` shows `end`.
    At {
        clock: Stopwatch,
        end: Duration,
    },
}

impl Ends {
    /// How long a lease that is granted now lasts; `None` if that moment is over.
    fn time_left(self) -> Option<Duration> {
        match self {
            Self::After(time) => Some(time),
            Self::At { clock, end } => end
                .checked_sub(clock.elapsed())
                .filter(|left| left.as_millis() > 0),
        }
    }
}

/// How far a filling came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    All,
    /// The moment at which the leases end came first.
    TooLate,
}

async fn fill(store: &LeaseStore, names: Range<u64>, ends: Ends) -> Result<Filled, Error> {
    let next = Arc::new(AtomicU64::new(names.start));
    let mut fillers = JoinSet::new();
    for _ in 0..FILLERS {
        fillers.spawn(fill_from(store.clone(), Arc::clone(&next), names.end, ends));
    }
    let mut filled = Filled::All;
    while let Some(ended) = fillers.join_next().await {
        if ended?? == Filled::TooLate {
            filled = Filled::TooLate;
        }
    }
    Ok(filled)
}

async fn fill_from(store: LeaseStore, next: Arc<AtomicU64>, last: u64, ends: Ends) -> Result<Filled, Error> {
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= last {
            return Ok(Filled::All);
        }
        let Some(left) = ends.time_left() else {
            return Ok(Filled::TooLate);
        };
        let ttl = Ttl::from_duration(left)?;
        acquire(&store, plain_acquire(name(n)?, owner(n)?, ttl)).await?;
    }
}

fn give_up_after(clock: Stopwatch) -> Result<(), Error> {
    if clock.elapsed() > AT_MOST {
        return Err(format!("not over within {AT_MOST:?}").into());
    }
    Ok(())
}
