//! Where claims are kept. One trait, which every store passes the same suite for; a store is its transaction and its
//! durability, the decision is [`crate::core`]'s.

pub(crate) mod codec;
#[cfg(any(test, feature = "test-util"))]
pub mod conformance;
#[cfg(test)]
mod golden_tests;
pub(crate) mod keys;
mod memory;
mod pages;
pub(crate) mod records;
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

use lease_core::{FenceToken, LeaseName};

pub use self::memory::MemoryStore;
#[cfg(all(feature = "sled", any(test, feature = "test-util")))]
pub use self::sled::Stage;
#[cfg(feature = "sled")]
pub use self::sled::{SledConfig, SledConfigBuilder, SledStore};
use crate::core::ClaimOutcome;
use crate::error::{StorageFailure, StoreError};
use crate::event_id::RewardEventId;
use crate::types::{AttemptId, Claim, ClaimBody, ClaimId, FenceState, PlayerId, Receipt, UnixMillis};

/// The answer of a store, later.
pub(crate) type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where claims are kept: [`MemoryStore`], [`SledStore`]. A handle; the ledger shares it between its clones.
///
/// Whatever a store answers, a grant, a replay, a refusal or a read, is durable before it leaves.
pub trait Store: Sealed + fmt::Debug + Send + Sync + 'static {
    /// Decides one claim, in one transaction that holds fence, claim, ledger row, outbox row and answer.
    fn claim(&self, request: ClaimRequest) -> StoreFuture<'_, ClaimOutcome>;

    /// The receipt of a player's event.
    fn receipt(&self, player: PlayerId, event: RewardEventId) -> StoreFuture<'_, Option<Receipt>>;

    /// What is known of a resource's tokens.
    fn fence(&self, resource: LeaseName) -> StoreFuture<'_, Option<FenceState>>;

    /// Sets a resource's highest token as an operator says.
    fn reset_fence(&self, request: ResetRequest) -> StoreFuture<'_, FenceState>;

    /// The number of the last claim, to bound an audit.
    fn last_claim(&self) -> StoreFuture<'_, ClaimId>;

    /// The next rows of a table after `after`, each joined with what it should match, in the order of the table's key.
    fn page(&self, table: Table, after: Option<Cursor>) -> StoreFuture<'_, Page>;

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

/// A claim with the times that its transaction needs.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    pub(crate) claim: Claim,
    /// Now, by the ledger's wall clock.
    pub(crate) at: UnixMillis,
    /// Answers of attempts that were refused before this are forgotten.
    pub(crate) forget_before: UnixMillis,
}

/// An operator's reset of a fence.
#[derive(Debug, Clone)]
pub struct ResetRequest {
    pub(crate) resource: LeaseName,
    pub(crate) to: Option<FenceToken>,
    pub(crate) at: UnixMillis,
    pub(crate) reason: Arc<str>,
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
}

/// Where a page ended, in the store's own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

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
            Self::Outbox(_) | Self::Attempt(_) | Self::Unreadable { .. } => None,
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
    /// The receipt of this player and event.
    pub(crate) claim: Option<Receipt>,
}

#[derive(Debug)]
pub(crate) struct OutboxEntry {
    pub(crate) claim_id: ClaimId,
    pub(crate) player: PlayerId,
    pub(crate) event: String,
    /// The receipt of this player and event.
    pub(crate) claim: Option<Receipt>,
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
