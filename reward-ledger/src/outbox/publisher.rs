//! The publisher: leases due rows, has them delivered, writes what became of them.
//!
//! Owns the rows that it has leased, for as long as their lease lasts. Asks the store and, by a task a player, the target.
//! Asked by its handle. Stops when it is told to or its handle is dropped, and when the store has ended; what is under way
//! is given up then, and leased again by whoever comes next.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tracing::Instrument as _;

use super::policy::PublishPolicy;
use super::run::{Courier, random};
use super::target::Target;
use crate::error::StoreError;
use crate::ledger::Ledger;
use crate::store::{LeaseRequest, SettleRequest, Share};
use crate::types::{Delivery, Partition, PublisherId, Settled, Settlement, Verdict};

/// The wait after a store that did not answer.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// Which partitions a publisher works on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Territory {
    /// These, whoever else does: rows are still one publisher's at a time, by their epoch.
    Fixed(Vec<Partition>),
    /// Those whose lease it holds; the ledger refuses it rows of a partition that has a newer holder.
    #[cfg(feature = "lease-guard")]
    Guarded(super::LeaseGuard),
}

impl Territory {
    /// All partitions.
    #[must_use]
    pub fn everything() -> Self {
        Self::Fixed(Partition::all().collect())
    }

    fn shares(&self) -> Vec<Share> {
        match self {
            Self::Fixed(partitions) => partitions
                .iter()
                .map(|&partition| Share {
                    partition,
                    guard: None,
                })
                .collect(),
            #[cfg(feature = "lease-guard")]
            Self::Guarded(guard) => guard.shares(),
        }
    }

    fn lose(&self, lost: &[Partition]) {
        match self {
            Self::Fixed(_) => {}
            #[cfg(feature = "lease-guard")]
            Self::Guarded(guard) => guard.lose(lost),
        }
        if !lost.is_empty() {
            tracing::info!(partitions = ?lost, "partitions have a newer holder");
        }
    }
}

/// What a publisher has done since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Published {
    /// Rows that the outside did.
    pub delivered: u64,
    /// Rows that will be tried again.
    pub again: u64,
    /// Rows that were given up.
    pub dead: u64,
    /// Verdicts that came after others had taken the row.
    pub superseded: u64,
    /// Rounds in which there was nothing to do.
    pub idle_rounds: u64,
}

/// A running publisher. Dropping it stops it.
#[derive(Debug)]
pub struct Publisher {
    id: PublisherId,
    stop: watch::Sender<Stop>,
    published: watch::Receiver<Published>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    Yes,
}

impl Publisher {
    /// Starts one on the current tokio runtime. Any number may run, in any number of processes.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use = "dropping it stops it"]
    pub fn start(ledger: Ledger, target: impl Target, policy: PublishPolicy, territory: Territory) -> Self {
        let id = PublisherId::new(format!("publisher-{:016x}", random()));
        let (stop, stopping) = watch::channel(Stop::No);
        let (tell, published) = watch::channel(Published::default());
        let span = tracing::info_span!("publisher", %id);
        let task = Task {
            id: id.clone(),
            courier: Courier {
                ledger,
                target: Arc::new(target),
                policy,
            },
            territory,
            under_way: JoinSet::new(),
            rows_of: HashMap::new(),
            rows_in_flight: 0,
            tell,
        };
        spawn(task.run(stopping).instrument(span));
        Self { id, stop, published }
    }

    /// Its name in the rows that it leases.
    #[must_use]
    pub const fn id(&self) -> &PublisherId {
        &self.id
    }

    /// What it has done so far.
    #[must_use]
    pub fn published(&self) -> Published {
        *self.published.borrow()
    }

    /// Waits until `enough` holds of what it has done; `None` if it ended before.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn published_until(&self, enough: impl FnMut(&Published) -> bool) -> Option<Published> {
        let mut published = self.published.clone();
        published.wait_for(enough).await.ok().map(|published| *published)
    }

    /// Stops it, and waits until what it has leased is settled.
    ///
    /// # Cancel safety
    /// Safe: it stops all the same.
    pub async fn stop(self) -> Published {
        self.stop.send_replace(Stop::Yes);
        let mut published = self.published.clone();
        // Ends when the task drops its side.
        while published.changed().await.is_ok() {}
        self.published()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the ledger that starts tasks"
)]
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    // Detached: it ends with its handle.
    drop(tokio::spawn(task));
}

struct Task {
    id: PublisherId,
    courier: Courier,
    territory: Territory,
    under_way: JoinSet<Vec<Settlement>>,
    /// How many rows each task has: one that panics settles none, and they are no longer in flight all the same.
    rows_of: HashMap<task::Id, usize>,
    rows_in_flight: usize,
    tell: watch::Sender<Published>,
}

/// Whether there was anything to lease.
enum Found {
    Rows,
    Nothing,
}

impl Task {
    async fn run(mut self, mut stopping: watch::Receiver<Stop>) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                // A handle that is gone stops it as well.
                () = told_to_stop(&mut stopping) => break,
                Some(done) = self.under_way.join_next_with_id(), if !self.under_way.is_empty() => {
                    let mut settlements = self.on_done(done);
                    while let Some(done) = self.under_way.try_join_next_with_id() {
                        settlements.extend(self.on_done(done));
                    }
                    if self.settle(settlements).await.is_break() {
                        return;
                    }
                    if self.has_room() {
                        pause = Duration::ZERO;
                    }
                }
                () = tokio::time::sleep(pause), if self.has_room() => {
                    pause = match self.lease().await {
                        Ok(Found::Rows) => Duration::ZERO,
                        Ok(Found::Nothing) => self.courier.policy.poll_every,
                        Err(error) if has_ended(&error) => return,
                        Err(_) => STORE_PAUSE,
                    };
                }
            }
        }
        self.finish().await;
    }

    /// Settles what is under way; every delivery ends within its time.
    async fn finish(&mut self) {
        while let Some(done) = self.under_way.join_next_with_id().await {
            let settlements = self.on_done(done);
            if self.settle(settlements).await.is_break() {
                return;
            }
        }
    }

    /// The verdicts of a player's rows; none where their task panicked, and their lease ends by time.
    fn on_done(&mut self, done: Result<(task::Id, Vec<Settlement>), JoinError>) -> Vec<Settlement> {
        let (id, settlements) = match done {
            Ok((id, settlements)) => (id, settlements),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a delivery panicked");
                (error.id(), Vec::new())
            }
        };
        let rows = self.rows_of.remove(&id).unwrap_or_default();
        self.rows_in_flight = self.rows_in_flight.saturating_sub(rows);
        settlements
    }

    /// A lease is worth its commit when it can be for a good part of what may be in flight.
    fn has_room(&self) -> bool {
        self.rows_in_flight <= self.courier.policy.rows_in_flight_max / 2
    }

    async fn lease(&mut self) -> Result<Found, StoreError> {
        let shares = self.territory.shares();
        if shares.is_empty() {
            self.count(|published| published.idle_rounds += 1);
            return Ok(Found::Nothing);
        }
        let policy = &self.courier.policy;
        let at = self.courier.ledger.now();
        let request = LeaseRequest {
            owner: self.id.clone(),
            shares,
            rows_max: policy.rows_in_flight_max.saturating_sub(self.rows_in_flight),
            at,
            until: at.after(policy.lease_for),
        };
        let leased = match self.courier.ledger.store().lease_outbox(request).await {
            Ok(leased) => leased,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the store leased nothing"
                );
                return Err(error);
            }
        };
        self.territory.lose(&leased.lost);
        if leased.deliveries.is_empty() {
            self.count(|published| published.idle_rounds += 1);
            return Ok(Found::Nothing);
        }
        self.rows_in_flight = self.rows_in_flight.saturating_add(leased.deliveries.len());
        let mut players: BTreeMap<_, Vec<Delivery>> = BTreeMap::new();
        for delivery in leased.deliveries {
            players
                .entry(delivery.receipt.player())
                .or_default()
                .push(delivery);
        }
        for deliveries in players.into_values() {
            let rows = deliveries.len();
            let task = self.under_way.spawn(self.courier.clone().deliver_all(deliveries));
            self.rows_of.insert(task.id(), rows);
        }
        Ok(Found::Rows)
    }

    /// Writes verdicts. If that fails the rows stay leased until their time is over, and are tried again by somebody.
    async fn settle(&mut self, settlements: Vec<Settlement>) -> ControlFlow<()> {
        if settlements.is_empty() {
            return ControlFlow::Continue(());
        }
        let request = SettleRequest {
            settlements: settlements.clone(),
            at: self.courier.ledger.now(),
        };
        match self.courier.ledger.store().settle_outbox(request).await {
            Ok(answers) => {
                self.count(|published| {
                    for (settlement, settled) in settlements.iter().zip(answers) {
                        published.note(&settlement.verdict, settled);
                    }
                });
                ControlFlow::Continue(())
            }
            Err(error) if has_ended(&error) => ControlFlow::Break(()),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "verdicts were not written"
                );
                ControlFlow::Continue(())
            }
        }
    }

    fn count(&self, change: impl FnOnce(&mut Published)) {
        self.tell.send_modify(change);
    }
}

impl Published {
    fn note(&mut self, verdict: &Verdict, settled: Settled) {
        match (settled, verdict) {
            (Settled::Superseded | Settled::Missing, _) => self.superseded += 1,
            (Settled::Done, Verdict::Delivered) => self.delivered += 1,
            (Settled::Done, Verdict::Again { .. }) => self.again += 1,
            (Settled::Done, Verdict::Dead { .. }) => self.dead += 1,
            (Settled::Done, Verdict::Released) => {}
        }
    }
}

async fn told_to_stop(stopping: &mut watch::Receiver<Stop>) {
    let _told = stopping.wait_for(|stop| *stop == Stop::Yes).await;
}

const fn has_ended(error: &StoreError) -> bool {
    error.must_stop() || matches!(error, StoreError::Closed)
}
