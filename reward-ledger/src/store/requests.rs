//! What a store is asked, and what it answers: plain data. Every request carries the time; no store reads a clock.

use std::sync::Arc;

use lease_core::{Fence, FenceToken, LeaseName};

use super::Cursor;
use crate::event_id::RewardEventId;
use crate::types::{
    AttemptId, Claim, ClaimBody, ClaimField, ClaimId, Delivery, DeliveryProgress, FenceState, Partition,
    PaymentAttempt, PlayerId, PublisherId, Reason, Receipt, Reversal, Settlement, UnixMillis,
};

/// A claim with the times that its transaction needs.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    pub(crate) claim: Claim,
    /// Now, by the ledger's wall clock.
    pub(crate) at: UnixMillis,
    /// Answers of attempts that were refused before this are forgotten.
    pub(crate) forget_before: UnixMillis,
}

/// Claims that are sent together, with the times that their transaction needs.
#[derive(Debug, Clone)]
pub struct BatchRequest {
    pub(crate) claims: Vec<Claim>,
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

/// A grant to be taken back.
#[derive(Debug, Clone)]
pub struct ReversalRequest {
    pub(crate) player: PlayerId,
    pub(crate) event: RewardEventId,
    pub(crate) reason: Reason,
    pub(crate) at: UnixMillis,
}

/// A publisher that asks for work.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    pub(crate) owner: PublisherId,
    pub(crate) shares: Vec<Share>,
    /// Rows to be leased at the most.
    pub(crate) rows_max: usize,
    pub(crate) at: UnixMillis,
    /// Others may take the rows from then on.
    pub(crate) until: UnixMillis,
}

/// A partition that a publisher works on.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) partition: Partition,
    /// The lease on the partition, where it has one: its token must not be below the highest seen for its resource, and
    /// becomes it.
    pub(crate) guard: Option<Fence>,
}

/// Work for a publisher.
#[derive(Debug, Default)]
pub struct LeasedRows {
    /// Rows in the order of their numbers. Of a player there are the first open ones, without a gap.
    pub(crate) deliveries: Vec<Delivery>,
    /// Partitions whose guard was stale: nothing of them was leased.
    pub(crate) lost: Vec<Partition>,
}

/// A publisher's verdicts.
#[derive(Debug, Clone)]
pub struct SettleRequest {
    pub(crate) settlements: Vec<Settlement>,
    pub(crate) at: UnixMillis,
}

/// What a person does about a row that the publisher gave up.
#[derive(Debug, Clone)]
pub struct AmendRequest {
    pub(crate) id: ClaimId,
    pub(crate) amendment: Amendment,
    pub(crate) at: UnixMillis,
}

/// See [`AmendRequest`].
#[derive(Debug, Clone)]
pub(crate) enum Amendment {
    Retry,
    Discard(Reason),
}

/// What became of an order by hand about an outbox row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Amended {
    /// The row stands so now.
    Done(Delivery),
    /// The row stands so, and the order does not apply to it: only a dead row is discarded, only a dead or discarded one
    /// is tried again.
    Refused(Delivery),
    /// The row stands so, and grants what was taken back since. The outside may know of that already, and would grant it
    /// for good if it were told now.
    TakenBack(Delivery),
    /// There is no such row.
    NotFound,
}

/// How far the ledger has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// Number of the last claim or reversal; in PostgreSQL, of the last that was begun.
    pub last: ClaimId,
    /// Outbox rows that publishers still have work with.
    pub outbox_open: u64,
    /// Outbox rows that a person should look at.
    pub outbox_dead: u64,
}

/// Which claims are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// All, in the order of their numbers.
    All,
    /// Those of a player, in the order of their numbers.
    Player(PlayerId),
    /// Those of an event, in the order of their numbers.
    Event(RewardEventId),
    /// Those that passed a resource's fence, in the order of their tokens.
    Resource(LeaseName),
    /// Those that were made with one token of a resource.
    Token(Fence),
    /// Those of a time, in its order.
    Time {
        /// The first millisecond.
        from: UnixMillis,
        /// The last millisecond.
        to: UnixMillis,
    },
}

/// A claim with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimRecord {
    /// The receipt, as everybody is shown it.
    pub receipt: Receipt,
    /// How far its delivery has come.
    pub progress: DeliveryProgress,
    /// Its reversal, if it was taken back.
    pub reversal: Option<Reversal>,
}

impl ClaimRecord {
    pub(crate) const fn new(
        receipt: Receipt,
        progress: DeliveryProgress,
        reversal: Option<Reversal>,
    ) -> Self {
        Self {
            receipt,
            progress,
            reversal,
        }
    }
}

/// Some claims.
#[derive(Debug)]
#[non_exhaustive]
pub struct Records {
    /// In the order that the query says.
    pub records: Vec<ClaimRecord>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// Which outbox rows are asked for, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboxQuery {
    /// All.
    All,
    /// Those that the publisher gave up.
    Dead,
    /// Those of a player that are not done yet.
    OpenOf(PlayerId),
}

/// Some outbox rows.
#[derive(Debug)]
#[non_exhaustive]
pub struct Deliveries {
    /// In the order of their numbers.
    pub deliveries: Vec<Delivery>,
    /// Where to go on; `None` at the end.
    pub next: Option<ClaimId>,
}

/// The tables of an export, in the order in which they are written and read: what a row rests on comes before it,
/// and fences last, so that none is behind a claim that was exported before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveTable {
    /// Claims, with their ledger and outbox rows and their reversals, in the order of their numbers.
    Claims,
    /// Answers to attempts.
    Attempts,
    /// Payment attempts.
    Payments,
    /// Fences.
    Fences,
}

impl ArchiveTable {
    /// In their order.
    pub const ALL: [Self; 4] = [Self::Claims, Self::Attempts, Self::Payments, Self::Fences];
}

/// One row of an export: everything that a store must keep of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Archived {
    /// A claim.
    Claim(ArchivedClaim),
    /// The answer to an attempt.
    Attempt(ArchivedAttempt),
    /// A payment attempt.
    Payment(PaymentAttempt),
    /// A fence.
    Fence(LeaseName, FenceState),
}

/// A claim with all its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedClaim {
    pub(crate) receipt: Receipt,
    pub(crate) progress: DeliveryProgress,
    /// The reversal, and how far its own delivery has come.
    pub(crate) reversal: Option<(Reversal, DeliveryProgress)>,
}

/// The remembered answer to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedAttempt {
    pub(crate) attempt: AttemptId,
    pub(crate) token: Option<FenceToken>,
    pub(crate) body: ClaimBody,
    pub(crate) at: UnixMillis,
    pub(crate) answer: ArchivedAnswer,
}

/// An answer, without the receipt that it rests on: that is in the claim of the attempt's player and event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArchivedAnswer {
    Accepted,
    Stale { seen: FenceToken, receipt: Shown },
    EventConflict { fields: Vec<ClaimField> },
}

/// Whether a refusal showed the event's receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    No,
    Yes,
}

/// Some rows of an export.
#[derive(Debug)]
pub struct ArchivePage {
    /// In the order of the table's key.
    pub rows: Vec<Archived>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// What became of the rows of an import: all of them are there, or none of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// They are there, now or before.
    Done,
    /// A row is there already and differs, or rests on one that is missing.
    Refused {
        /// Its place among the rows, from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },
}
