//! Where claims are kept. One trait, which every store passes the same suite for; a store is its transaction and its
//! durability, the decision is [`crate::core`]'s.

pub(crate) mod codec;
#[cfg(any(test, feature = "test-util"))]
pub mod conformance;
#[cfg(test)]
mod golden_tests;
#[cfg(any(feature = "sled", feature = "postgres"))]
mod hook;
pub(crate) mod keys;
mod memory;
pub(crate) mod outbox_records;
mod pages;
pub(crate) mod payment_records;
#[cfg(feature = "postgres")]
mod postgres;
mod queries;
pub(crate) mod records;
mod requests;
mod row_store;
mod rows;
#[cfg(feature = "sled")]
mod sled;
#[cfg(test)]
mod tests;
mod transaction;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lease_core::LeaseName;

pub use self::memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use self::postgres::{OpenPostgresError, PostgresConfig, PostgresConfigBuilder, PostgresStore};
#[cfg(all(feature = "postgres", any(test, feature = "test-util")))]
pub use self::postgres::{PostgresStage, server};
pub(crate) use self::requests::{
    AmendRequest, Amendment, ArchivedAnswer, ArchivedAttempt, ArchivedClaim, BatchRequest, ClaimRequest,
    LeaseRequest, LeasedRows, ResetRequest, Restored, ReversalRequest, SettleRequest, Share, Shown,
};
pub use self::requests::{
    Amended, ArchivePage, ArchiveTable, Archived, ClaimRecord, Deliveries, OutboxQuery, Query, Records,
    Standing,
};
#[cfg(all(feature = "sled", any(test, feature = "test-util")))]
pub use self::sled::Stage;
#[cfg(feature = "sled")]
pub use self::sled::{SledConfig, SledConfigBuilder, SledStore};
use crate::core::{
    BatchOutcome, ClaimOutcome, PaymentOutcome, PaymentReport, ReportOutcome, ReversalOutcome,
};
use crate::error::{StorageFailure, StoreError};
use crate::event_id::RewardEventId;
use crate::types::{
    AttemptId, ClaimBody, ClaimId, Delivery, FenceState, OrderId, PaymentAttempt, PaymentStart, PlayerId,
    Receipt, Reversal, Settled, UnixMillis,
};

/// The answer of a store, later.
pub(crate) type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where claims are kept: [`MemoryStore`], [`SledStore`], [`PostgresStore`]. A handle; the ledger shares it between its clones.
///
/// Each call is one transaction: it reads, asks [`crate::core`], and writes all that was decided or nothing. Whatever a
/// store answers, a grant, a replay, a refusal or a read, is durable before it leaves.
pub trait Store: Sealed + fmt::Debug + Send + Sync + 'static {
    // Claims.

    /// Decides one claim, in one transaction that holds fence, claim, ledger row, outbox row and answer.
    fn claim(&self, request: ClaimRequest) -> StoreFuture<'_, ClaimOutcome>;

    /// Decides claims one after another, each on top of those before it and each for itself; the answers are in their order.
    fn claim_each(&self, request: BatchRequest) -> StoreFuture<'_, Vec<ClaimOutcome>>;

    /// Decides claims one after another, each on top of those before it; all are granted or nothing is written.
    fn claim_all(&self, request: BatchRequest) -> StoreFuture<'_, BatchOutcome>;

    /// Takes a grant back, in one transaction that holds reversal, ledger row and outbox row.
    fn reverse(&self, request: ReversalRequest) -> StoreFuture<'_, ReversalOutcome>;

    /// A player's event, with what became of it.
    fn record(&self, player: PlayerId, event: RewardEventId) -> StoreFuture<'_, Option<ClaimRecord>>;

    /// The next claims of a query, at most `rows_max`.
    fn find(&self, query: Query, after: Option<Cursor>, rows_max: usize) -> StoreFuture<'_, Records>;

    // Fences.

    /// What is known of a resource's tokens.
    fn fence(&self, resource: LeaseName) -> StoreFuture<'_, Option<FenceState>>;

    /// Sets a resource's highest token as an operator says.
    fn reset_fence(&self, request: ResetRequest) -> StoreFuture<'_, FenceState>;

    // The outbox.

    /// Leases due rows to a publisher: of each player the first open ones without a gap, so that no row overtakes an
    /// earlier one. Rows that are leased, or not due yet, hold up their player's later ones.
    fn lease_outbox(&self, request: LeaseRequest) -> StoreFuture<'_, LeasedRows>;

    /// Writes verdicts, each if its epoch is still that of the row; the answers are in the order of the verdicts.
    fn settle_outbox(&self, request: SettleRequest) -> StoreFuture<'_, Vec<Settled>>;

    /// Does what a person says about a dead row.
    fn amend_outbox(&self, request: AmendRequest) -> StoreFuture<'_, Amended>;

    /// The next outbox rows of a query, at most `rows_max`.
    fn deliveries(
        &self,
        query: OutboxQuery,
        after: Option<ClaimId>,
        rows_max: usize,
    ) -> StoreFuture<'_, Deliveries>;

    // Payments.

    /// Starts a payment attempt, if its order has no other active one.
    fn start_payment(&self, start: PaymentStart, at: UnixMillis) -> StoreFuture<'_, PaymentOutcome>;

    /// Notes what became of a payment attempt.
    fn report_payment(&self, report: PaymentReport, at: UnixMillis) -> StoreFuture<'_, ReportOutcome>;

    /// All attempts of an order, oldest first.
    fn payments(&self, order: OrderId) -> StoreFuture<'_, Vec<PaymentAttempt>>;

    // The whole of it.

    /// How far it has come, read without waiting for anybody: where several write at once, claims up to the last number
    /// may be under way still.
    fn standing(&self) -> StoreFuture<'_, Standing>;

    /// The last number, once nothing with a lower one is under way any more.
    fn complete_upto(&self) -> StoreFuture<'_, ClaimId>;

    /// The next rows of a table after `after`, each joined with what it should match, in the order of the table's key.
    fn page(&self, table: Table, after: Option<Cursor>) -> StoreFuture<'_, Page>;

    /// The next rows of a table to be written to an export.
    fn archive(&self, table: ArchiveTable, after: Option<Cursor>) -> StoreFuture<'_, ArchivePage>;

    /// Puts exported rows in as they were. A row that is there already, and equal, is left alone.
    fn restore(&self, rows: Vec<Archived>) -> StoreFuture<'_, Restored>;

    /// Whether it answers.
    fn health(&self) -> Health;

    /// Waits until it will never answer again: closed, or stopped by a storage error.
    fn ended(&self) -> Pin<Box<dyn Future<Output = Health> + Send + '_>>;

    /// Answers what it has taken on, then lets go of files and threads.
    fn close(&self) -> StoreFuture<'_, ()>;
}

use sealed::Sealed;
mod sealed {
    /// Stores are of this crate: what they promise is proven by its suite.
    pub trait Sealed {}
}

/// Whether a store answers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Health {
    /// It does.
    Serving,
    /// Its writer has made no step for longer than it is given; it may recover.
    Stalled,
    /// It met a storage error and answers nothing any more: stop the process.
    Stopped(Arc<StorageFailure>),
    /// It was closed.
    Closed,
}

/// The tables that an audit walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Claims, by player.
    Claims,
    /// Ledger rows, by player.
    Ledger,
    /// Outbox rows, by claim.
    Outbox,
    /// Answers to attempts.
    Attempts,
    /// Payment attempts.
    Payments,
}

/// Where a page ended, in the store's own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

impl Cursor {
    /// A cursor from the bytes of another one. One that was made up finds other rows, and harms nothing.
    #[must_use]
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self(bytes.as_ref().to_vec())
    }

    /// Its bytes, to be carried elsewhere and back.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Some rows of a table.
#[derive(Debug)]
pub struct Page {
    pub(crate) entries: Vec<Entry>,
    /// Where to go on; `None` at the end.
    pub(crate) next: Option<Cursor>,
}

/// One row of a table, joined with the rows that it should match, all read at one moment.
#[derive(Debug)]
pub(crate) enum Entry {
    Claim(ClaimEntry),
    Ledger(LedgerEntry),
    Outbox(OutboxEntry),
    Attempt(AttemptEntry),
    Payment(Box<PaymentEntry>),
    /// A row that does not read back.
    Unreadable {
        table: Table,
        problem: String,
    },
}

impl Entry {
    /// The player that the row is kept under, in a table that is ordered by players.
    pub(crate) const fn player(&self) -> Option<PlayerId> {
        match self {
            Self::Claim(entry) => Some(entry.player),
            Self::Ledger(entry) => Some(entry.player),
            Self::Outbox(_) | Self::Attempt(_) | Self::Payment(_) | Self::Unreadable { .. } => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ClaimEntry {
    /// Player and event of the row's key.
    pub(crate) player: PlayerId,
    pub(crate) event: RewardEventId,
    pub(crate) receipt: Receipt,
    pub(crate) ledger: Option<LedgerLine>,
    /// Player and event of the outbox row of this claim id.
    pub(crate) outbox: Option<(PlayerId, String)>,
    pub(crate) fence: Option<FenceState>,
    pub(crate) reversal: Option<ReversalEntry>,
}

impl ClaimEntry {
    /// What the claim adds to its player's account, by number: the grant, and its reversal.
    pub(crate) fn amounts(&self) -> [Option<(ClaimId, i64)>; 2] {
        let amount = self.receipt.amount().get();
        let reversed = self.reversal.as_ref();
        [
            Some((self.receipt.claim_id(), amount)),
            reversed.map(|entry| (entry.reversal.id, amount.saturating_neg())),
        ]
    }
}

/// A claim's reversal, with the rows that it should have.
#[derive(Debug)]
pub(crate) struct ReversalEntry {
    pub(crate) reversal: Reversal,
    pub(crate) ledger: Option<LedgerLine>,
    /// The claim that the outbox row of the reversal's number takes back.
    pub(crate) outbox: Option<ClaimId>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LedgerLine {
    pub(crate) event: String,
    pub(crate) item: String,
    pub(crate) amount: i64,
}

#[derive(Debug)]
pub(crate) struct LedgerEntry {
    pub(crate) player: PlayerId,
    pub(crate) claim_id: ClaimId,
    pub(crate) line: LedgerLine,
    /// The receipt of this player and event, and the number of its reversal.
    pub(crate) claim: Option<Receipt>,
    pub(crate) reversed_by: Option<ClaimId>,
}

#[derive(Debug)]
pub(crate) struct OutboxEntry {
    pub(crate) id: ClaimId,
    pub(crate) player: PlayerId,
    pub(crate) event: String,
    /// The claim that it is about, by the row itself.
    pub(crate) about: ClaimId,
    /// What is delivered, where the row has its claim and, if it is a reversal's, its reversal.
    pub(crate) delivery: Option<Delivery>,
    /// Whether publishers find it if it is open, and people if it is dead.
    pub(crate) listing: Listing,
}

/// Whether an outbox row is where its state says it should be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    Right,
    Wrong,
}

#[derive(Debug)]
pub(crate) struct PaymentEntry {
    pub(crate) attempt: PaymentAttempt,
    /// Active attempts of its order, itself included.
    pub(crate) active: usize,
}

#[derive(Debug)]
pub(crate) struct AttemptEntry {
    pub(crate) attempt: AttemptId,
    pub(crate) body: ClaimBody,
    pub(crate) standing: AttemptStanding,
    /// The receipt of this player and event.
    pub(crate) claim: Option<Receipt>,
}

/// How an attempt was answered, as far as an audit cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptStanding {
    Accepted,
    Refused,
}
