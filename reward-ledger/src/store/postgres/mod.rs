//! The shared store: PostgreSQL, for any number of processes at once.
//!
//! ```text
//! Ledger clones ──claims, by resource──────────────▶ lanes (a mailbox is one group, one transaction) ──▶ server
//!        ├────────outbox, payments, corrections────▶ a lane of their own ───────────────────────────▶ server
//!        └────────reads, pages─────────────────────▶ the lane that reads ───────────────────────────▶ server
//! ```
//! Each lane is a task with a connection of its own. A group runs over rows that were not read yet, what it missed is read
//! and locked, and it runs again until it misses nothing; so the transaction is the one that every store runs. The server orders
//! processes: a fence is locked from the first look at it to the commit; what two sessions write under different fences
//! meets at a unique key, whereupon the later one decides anew; whatever changes rows that are there already is done by one
//! session at a time. So no process has to know of any other.
//!
//! A statement waits for the answer to the one before it only where it needs it. New claims take four round trips, however
//! many they are: beginning and reads, numbers, writes, commit.

mod changes;
mod columns;
mod config;
#[cfg(test)]
mod crash_tests;
mod fetch;
mod group;
#[cfg(test)]
mod hazard_tests;
mod lane;
mod link;
mod mailbox;
mod migrations;
mod open_error;
mod rows;
mod scans;
#[cfg(any(test, feature = "test-util"))]
pub mod server;
mod stage;
mod statements;
#[cfg(test)]
mod tests;
mod tls;
#[cfg(test)]
mod tls_tests;
mod trouble;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use config::{PostgresConfig, PostgresConfigBuilder};
pub use open_error::OpenPostgresError;
#[cfg(any(test, feature = "test-util"))]
pub use stage::PostgresStage;

use super::row_store::{RowStore, Scope};
use super::transaction::Transaction;
use super::{Health, Sealed, Standing, StoreFuture};
use crate::error::StorageFailure;
use crate::limits::DATABASE_PAGE_ROWS_MAX;
use crate::types::{ClaimId, Partition, PlayerId, UnixMillis};
use group::{Purpose, Wait};
use lane::Lane;
use mailbox::{Lanes, LastWord, MAILBOX_DEPTH, Mailboxes, Message};

/// The advisory lock between transactions that draw numbers of claims (shared) and an audit that asks for the last one (alone).
const READERS_LOCK: i64 = 0x7265_7761_7264_0001;
/// The advisory lock of whoever changes rows that are there already.
const WRITERS_LOCK: i64 = 0x7265_7761_7264_0004;
/// The advisory lock for as long as numbers are drawn.
const DRAWING_LOCK: i64 = 0x7265_7761_7264_0002;

/// Keeps claims in a PostgreSQL database, which any number of processes may use at once.
///
/// It runs on the tokio runtime that it was opened on, with time and I/O enabled, and stops with it.
#[derive(Debug)]
pub struct PostgresStore {
    lanes: Lanes,
    /// Ends the lanes with the store.
    _tasks: JoinSet<()>,
}

impl PostgresStore {
    /// Opens the ledger in the database at `url`, and makes its tables if there are none.
    ///
    /// # Errors
    /// As [`PostgresStore::open_with`], and [`OpenPostgresError::Config`] for a URL that does not parse.
    ///
    /// # Cancel safety
    /// Safe: tables are made by one transaction.
    pub async fn open(url: impl Into<String>) -> Result<Self, OpenPostgresError> {
        let config = PostgresConfig::builder(url).build()?;
        Self::open_with(config).await
    }

    /// As [`PostgresStore::open`], configured otherwise.
    ///
    /// # Errors
    /// [`OpenPostgresError`]: not reachable, unsafe settings, tables of a newer version, a migration that failed. No claim
    /// was applied.
    ///
    /// # Cancel safety
    /// Safe: tables are made by one transaction.
    pub async fn open_with(config: PostgresConfig) -> Result<Self, OpenPostgresError> {
        let link = link::Link::open(&config).await.map_err(migrations::connect)?;
        migrations::apply(&link).await?;
        #[cfg(any(test, feature = "test-util"))]
        drop_keys(&link, &config).await.map_err(migrations::connect)?;
        drop(link);

        let config = Arc::new(config);
        let (health, watched) = watch::channel(Health::Serving);
        let purposes =
            std::iter::repeat_n(Purpose::Claims, config.writers()).chain([Purpose::Rest, Purpose::Reads]);
        let last_word = Arc::new(LastWord::new(health, config.writers() + 2));
        let mut tasks = JoinSet::new();
        let mut spawn = |purpose| -> Result<mpsc::Sender<Message>, OpenPostgresError> {
            let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
            let lane = Lane::new(Arc::clone(&config), purpose, lane_name()?, Arc::clone(&last_word));
            tasks.spawn(lane.run(inbox));
            Ok(mailbox)
        };
        let mut mailboxes = purposes.map(&mut spawn).collect::<Result<Vec<_>, _>>()?;
        let (Some(reads), Some(rest)) = (mailboxes.pop(), mailboxes.pop()) else {
            unreachable!("both were spawned");
        };
        let mailboxes = Mailboxes {
            claims: mailboxes,
            rest,
            reads,
        };
        Ok(Self {
            lanes: Lanes::new(mailboxes, watched),
            _tasks: tasks,
        })
    }
}

/// A name that no other lane has: 128 random bits as a UUID.
fn lane_name() -> Result<String, OpenPostgresError> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|_| OpenPostgresError::NoRandomness)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}

/// A negative control without unique keys has none in the database either.
#[cfg(any(test, feature = "test-util"))]
async fn drop_keys(link: &link::Link, config: &PostgresConfig) -> Result<(), trouble::Trouble> {
    if config
        .protections()
        .are_with(crate::core::Protection::UniqueEvent)
    {
        return Ok(());
    }
    link.run("drop the unique keys", "DROP INDEX IF EXISTS reward_ledger_once")
        .await
}

impl Sealed for PostgresStore {}

impl RowStore for PostgresStore {
    fn run<T: Send + 'static>(
        &self,
        scope: Scope,
        job: impl Fn(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + Sync + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.lanes.ask(scope, job))
    }

    fn standing(&self) -> StoreFuture<'_, Standing> {
        Box::pin(self.lanes.standing(Wait::ForNobody))
    }

    fn complete_upto(&self) -> StoreFuture<'_, ClaimId> {
        Box::pin(async {
            let standing = self.lanes.standing(Wait::ForWriters).await?;
            Ok(standing.last)
        })
    }

    fn page_rows_max(&self) -> usize {
        DATABASE_PAGE_ROWS_MAX
    }

    fn health(&self) -> Health {
        self.lanes.health()
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = Health> + Send + '_>> {
        Box::pin(self.lanes.ended())
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.lanes.close())
    }
}

/// A player's partition in a column.
fn part_of(player: PlayerId) -> i16 {
    i16::try_from(Partition::of(player).get()).unwrap_or(i16::MAX)
}

/// A time in a column; later ones than a column holds become its last.
fn millis(at: UnixMillis) -> i64 {
    /// Year 200,000: the dates of PostgreSQL end at year 294,276.
    const LAST: i64 = 6_249_223_180_800_000;
    i64::try_from(at.get()).unwrap_or(LAST).min(LAST)
}

/// A token or number of ours in a column: none is above 2^63 - 1.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A token or number of ours out of a column.
fn number(record: &'static str, value: i64) -> Result<u64, StorageFailure> {
    u64::try_from(value).map_err(|error| fetch::corrupt(record, value, error))
}
