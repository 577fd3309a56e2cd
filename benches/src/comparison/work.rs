//! The work that all systems do, and the one generator that has them do it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::Error;
use crate::samples::{Samples, micros};
use crate::stopwatch::Stopwatch;

/// For how long leases are asked for: none ends while it is measured.
pub const TTL_MS: u64 = 30_000;

/// For how long whoever has let a contended name go leaves it to others.
pub const REST: Duration = Duration::from_millis(5);

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// `SET name value NX PX`, a new name each time: what lock libraries send.
    Set,
    /// A lease by the system's own means, a new name each time.
    Acquire,
    /// A lease, and its end by whoever holds it; both count as one.
    AcquireRelease,
    /// One lease for each caller, renewed again and again.
    Renew,
    /// All callers want one name: from the moment when a release is sent to the moment when another caller knows that it
    /// holds it. Whoever has released it rests for [`REST`] before it asks again.
    HandOver,
    /// Of ten commands: five renewals, two acquires, two releases, one read.
    Mixed,
}

impl Work {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 6] = [
        Self::Set,
        Self::Acquire,
        Self::AcquireRelease,
        Self::Renew,
        Self::HandOver,
        Self::Mixed,
    ];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Acquire => "acquire",
            Self::AcquireRelease => "acquire-release",
            Self::Renew => "renew",
            Self::HandOver => "hand-over",
            Self::Mixed => "mixed",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Set => "acquire by SET NX PX",
            Self::Acquire => "acquire by the system's own means",
            Self::AcquireRelease => "acquire and release (pairs)",
            Self::Renew => "renew",
            Self::HandOver => "contended hand-over, release to next grant",
            Self::Mixed => "mixed: 5 renewals, 2 acquires, 2 releases, 1 read",
        }
    }
}

/// A lease that a caller holds.
#[derive(Debug, Clone)]
pub struct Held {
    /// The name.
    pub name: String,
    /// What its system knows it by: a token, a lease, nothing.
    pub number: u64,
}

/// One caller with a connection of its own. Every answer other than the one that the work needs is an error.
pub trait Caller: Send + Sized + 'static {
    /// `SET name value NX PX` of a name that nobody holds.
    fn set(&mut self, name: String) -> impl Future<Output = Result<(), Error>> + Send;
    /// Takes a name that nobody holds.
    fn acquire(&mut self, name: String) -> impl Future<Output = Result<Held, Error>> + Send;
    /// Ends a lease that it holds.
    fn release(&mut self, held: Held) -> impl Future<Output = Result<(), Error>> + Send;
    /// Renews a lease that it holds.
    fn renew(&mut self, held: &Held) -> impl Future<Output = Result<(), Error>> + Send;
    /// Reads who holds a name, and finds itself.
    fn look(&mut self, held: &Held) -> impl Future<Output = Result<(), Error>> + Send;
    /// Takes a name that others want, however long it takes.
    fn acquire_in_turn(&mut self, name: String) -> impl Future<Output = Result<Held, Error>> + Send;
    /// Ends a lease that was taken in turn.
    fn release_in_turn(&mut self, held: Held) -> impl Future<Output = Result<(), Error>> + Send;
}

/// What came of one turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Operations a second.
    pub rate: f64,
    /// The middle one of their times, in microseconds.
    pub median_us: f64,
    /// The time that one in a hundred exceeds, in microseconds.
    pub p99_us: f64,
    /// Operations that were measured.
    pub operations: usize,
}

/// Has these callers do this work, each again as soon as it is answered, for about `time`. No other turn may have the same
/// round and number of callers: its names would be taken.
///
/// # Errors
/// An answer is not the one that the work needs.
pub async fn drive<C: Caller>(
    callers: Vec<C>,
    work: Work,
    turn: (usize, usize),
    time: Duration,
) -> Result<Turn, Error> {
    let (round, of) = turn;
    let released: Released = Arc::default();
    let mut running = JoinSet::new();
    let watch = Stopwatch::start();
    for (number, caller) in callers.into_iter().enumerate() {
        let worker = Worker {
            caller,
            prefix: format!("bench:{}:{round}:{of}:{number}", work.key()),
            contended: format!("bench:{}:{round}:{of}", work.key()),
            number,
            names: 0,
            watch,
            time,
            seen: Samples::default(),
        };
        let released = Arc::clone(&released);
        running.spawn(async move {
            match work {
                Work::Set => worker.set().await,
                Work::Acquire => worker.acquire().await,
                Work::AcquireRelease => worker.acquire_release().await,
                Work::Renew => worker.renew().await,
                Work::HandOver => worker.hand_over(released).await,
                Work::Mixed => worker.mixed().await,
            }
        });
    }
    let mut seen = Samples::default();
    while let Some(ended) = running.join_next().await {
        seen.append(ended??);
    }
    let seconds = watch.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a count of some seconds")]
    let rate = seen.len() as f64 / seconds;
    Ok(Turn {
        rate,
        median_us: micros(seen.median()),
        p99_us: micros(seen.exceeded_by_one_in(100)),
        operations: seen.len(),
    })
}

/// When the contended name was let go, and by whom.
type Released = Arc<Mutex<Option<(Stopwatch, usize)>>>;

struct Worker<C> {
    caller: C,
    prefix: String,
    contended: String,
    number: usize,
    names: u64,
    watch: Stopwatch,
    time: Duration,
    seen: Samples,
}

impl<C: Caller> Worker<C> {
    fn goes_on(&self) -> bool {
        self.watch.elapsed() < self.time
    }

    /// A name that nobody has had.
    fn name(&mut self) -> String {
        self.names += 1;
        format!("{}:{}", self.prefix, self.names)
    }

    async fn set(mut self) -> Result<Samples, Error> {
        while self.goes_on() {
            let name = self.name();
            let asked = Stopwatch::start();
            self.caller.set(name).await?;
            self.seen.push(asked.elapsed());
        }
        Ok(self.seen)
    }

    async fn acquire(mut self) -> Result<Samples, Error> {
        while self.goes_on() {
            let name = self.name();
            let asked = Stopwatch::start();
            self.caller.acquire(name).await?;
            self.seen.push(asked.elapsed());
        }
        Ok(self.seen)
    }

    async fn acquire_release(mut self) -> Result<Samples, Error> {
        while self.goes_on() {
            let name = self.name();
            let asked = Stopwatch::start();
            let held = self.caller.acquire(name).await?;
            self.caller.release(held).await?;
            self.seen.push(asked.elapsed());
        }
        Ok(self.seen)
    }

    async fn renew(mut self) -> Result<Samples, Error> {
        let name = self.name();
        let held = self.caller.acquire(name).await?;
        while self.goes_on() {
            let asked = Stopwatch::start();
            self.caller.renew(&held).await?;
            self.seen.push(asked.elapsed());
        }
        self.caller.release(held).await?;
        Ok(self.seen)
    }

    async fn mixed(mut self) -> Result<Samples, Error> {
        let name = self.name();
        let held = self.caller.acquire(name).await?;
        'work: loop {
            for step in 0..10_u8 {
                if !self.goes_on() {
                    break 'work;
                }
                match step {
                    0 | 5 => {
                        let name = self.name();
                        let asked = Stopwatch::start();
                        let other = self.caller.acquire(name).await?;
                        self.seen.push(asked.elapsed());
                        let asked = Stopwatch::start();
                        self.caller.release(other).await?;
                        self.seen.push(asked.elapsed());
                    }
                    // The release that step 0 or 5 has done.
                    1 | 6 => {}
                    2 => {
                        let asked = Stopwatch::start();
                        self.caller.look(&held).await?;
                        self.seen.push(asked.elapsed());
                    }
                    _ => {
                        let asked = Stopwatch::start();
                        self.caller.renew(&held).await?;
                        self.seen.push(asked.elapsed());
                    }
                }
            }
        }
        self.caller.release(held).await?;
        Ok(self.seen)
    }

    async fn hand_over(mut self, released: Released) -> Result<Samples, Error> {
        while self.goes_on() {
            let held = self.caller.acquire_in_turn(self.contended.clone()).await?;
            // A grant to whoever has just let it go hands nothing over.
            if let Some((since, by)) = take(&released)
                && by != self.number
            {
                self.seen.push(since.elapsed());
            }
            put(&released, self.number);
            self.caller.release_in_turn(held).await?;
            tokio::time::sleep(REST).await;
        }
        Ok(self.seen)
    }
}

fn take(released: &Released) -> Option<(Stopwatch, usize)> {
    released.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put(released: &Released, by: usize) {
    *released.lock().unwrap_or_else(PoisonError::into_inner) = Some((Stopwatch::start(), by));
}
