use lease_core::{FenceToken, LeaseName};
use thiserror::Error;

use crate::event_id::RewardEventId;
use crate::types::{Amount, AttemptId, ClaimId, OrderId, PlayerId};

/// What an audit found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AuditReport {
    /// Claims looked at.
    pub claims: u64,
    /// Those of them that were made without a fence.
    pub unfenced: u64,
    /// Players who have any.
    pub players: u64,
    /// Sum of all amounts in the ledger, whatever their items.
    pub granted: i128,
    /// Claims that were taken back.
    pub reversals: u64,
    /// Outbox rows looked at.
    pub outbox_rows: u64,
    /// Those of them that publishers still have work with.
    pub outbox_open: u64,
    /// Those that the outside did.
    pub delivered: u64,
    /// Those that the publisher gave up, for a person to look at.
    pub outbox_dead: u64,
    /// Those that a person gave up for good.
    pub discarded: u64,
    /// Payment attempts looked at.
    pub payments: u64,
    /// Remembered answers to attempts looked at.
    pub attempts: u64,
    /// The first violations, at most a thousand.
    pub violations: Vec<Violation>,
    /// How many violations there are in all.
    pub violations_found: u64,
}

impl AuditReport {
    /// Whether every invariant holds.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.violations_found == 0
    }
}

/// A violated invariant, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Violation {
    /// A row does not read back.
    #[error("{problem}")]
    UnreadableRow {
        /// Which, and why.
        problem: String,
    },
    /// A claim is kept under another key than its own.
    #[error("claim {claim_id} is kept under player {player} and event {event}, which are not its own")]
    ClaimMisplaced {
        /// The claim.
        claim_id: ClaimId,
        /// Player of the key.
        player: PlayerId,
        /// Event of the key.
        event: RewardEventId,
    },
    /// A player was granted an event more than once.
    #[error("player {player} was granted {event} by claim {claim_id}, and by claim {other} too")]
    GrantedTwice {
        /// Who.
        player: PlayerId,
        /// What for.
        event: String,
        /// The grant that the claim row does not hold.
        claim_id: ClaimId,
        /// The grant that it holds.
        other: ClaimId,
    },
    /// A claim has no ledger row.
    #[error("claim {claim_id} has no ledger row")]
    LedgerRowMissing {
        /// The claim.
        claim_id: ClaimId,
    },
    /// A ledger row says something else than its claim.
    #[error("the ledger row of claim {claim_id} differs from the claim")]
    LedgerRowDiffers {
        /// The claim.
        claim_id: ClaimId,
    },
    /// A ledger row has no claim.
    #[error("player {player} has a ledger row {claim_id} without a claim")]
    LedgerRowWithoutClaim {
        /// Whose row.
        player: PlayerId,
        /// The claim that is missing.
        claim_id: ClaimId,
    },
    /// A claim has no outbox row.
    #[error("claim {claim_id} has no outbox row: nothing will be delivered")]
    OutboxRowMissing {
        /// The claim.
        claim_id: ClaimId,
    },
    /// An outbox row is for another player or event than its claim.
    #[error("the outbox row of claim {claim_id} differs from the claim")]
    OutboxRowDiffers {
        /// The claim.
        claim_id: ClaimId,
    },
    /// An outbox row has no claim.
    #[error("outbox row {claim_id} (player {player}, {event}) has no claim: it was never granted")]
    OutboxRowWithoutClaim {
        /// The claim that is missing.
        claim_id: ClaimId,
        /// Player of the outbox row.
        player: PlayerId,
        /// Event of the outbox row.
        event: String,
    },
    /// A reversal has no ledger row that takes back as much as was granted.
    #[error("the reversal {reversal} of claim {claim_id} has no ledger row that takes back as much")]
    ReversalUnpaired {
        /// The claim.
        claim_id: ClaimId,
        /// The reversal.
        reversal: ClaimId,
    },
    /// An open outbox row is not where publishers look, or a dead one not where people look.
    #[error("outbox row {id} is not listed by its state: nobody finds it")]
    OutboxRowUnlisted {
        /// The row.
        id: ClaimId,
    },
    /// An order has more than one active payment attempt.
    #[error("payment attempt {attempt} is one of {active} active ones of order {order}")]
    PaidTwice {
        /// The order.
        order: OrderId,
        /// The attempt.
        attempt: AttemptId,
        /// Active attempts of the order.
        active: usize,
    },
    /// The outside did something more than once, or not at all although it is delivered.
    #[error("delivery {id} ({key}) is {state}, and the outside did it {times} times")]
    EffectsDiffer {
        /// The outbox row.
        id: ClaimId,
        /// Its idempotency key.
        key: String,
        /// Where it stands.
        state: &'static str,
        /// How often the outside did it.
        times: u32,
    },
    /// The outside did things that no outbox row asks for.
    #[error("the outside did {effects} things that were never granted")]
    EffectsWithoutClaim {
        /// How many.
        effects: u64,
    },
    /// A player's claims and ledger rows add up to different sums.
    #[error("player {player} was granted {granted} in claims, and holds {held} in the ledger")]
    SumsDiffer {
        /// Whose.
        player: PlayerId,
        /// Sum of the claims.
        granted: i128,
        /// Sum of the ledger rows.
        held: i128,
    },
    /// An event was granted with another amount than was declared.
    #[error("claim {claim_id} granted {granted} for {event}, declared is {expected}")]
    UnexpectedAmount {
        /// The claim.
        claim_id: ClaimId,
        /// What for.
        event: RewardEventId,
        /// Amount granted.
        granted: Amount,
        /// Amount declared.
        expected: Amount,
    },
    /// The highest token seen of a resource is lower than one that a claim was granted with, and no operator reset it.
    #[error("claim {claim_id} was granted with token {token} of {resource}, the highest seen there is lower")]
    FenceFell {
        /// The claim.
        claim_id: ClaimId,
        /// The resource.
        resource: LeaseName,
        /// The claim's token.
        token: FenceToken,
    },
    /// An attempt is remembered as accepted, and its claim is missing or says something else: it would be answered
    /// otherwise than it was.
    #[error(
        "attempt {attempt} was accepted for player {player} and event {event}, and the claim does not agree"
    )]
    AttemptWithoutClaim {
        /// The attempt.
        attempt: AttemptId,
        /// Player of the attempt.
        player: PlayerId,
        /// Event of the attempt.
        event: RewardEventId,
    },
}

impl Violation {
    /// The check that found it: C1 (one grant per player and event), C3 (all answers equal), C4 (claims, ledger and outbox
    /// match one to one), C5 and C6 (the outside's books), C7 (sums and reversals), C8 (dead letters are listed), F1 (fences never fall), or `amount`, `payment`,
    /// `read`.
    #[must_use]
    pub const fn check(&self) -> &'static str {
        match self {
            Self::UnreadableRow { .. } => "read",
            Self::ClaimMisplaced { .. } | Self::GrantedTwice { .. } => "C1",
            Self::AttemptWithoutClaim { .. } => "C3",
            Self::LedgerRowMissing { .. }
            | Self::LedgerRowDiffers { .. }
            | Self::LedgerRowWithoutClaim { .. }
            | Self::OutboxRowMissing { .. }
            | Self::OutboxRowDiffers { .. }
            | Self::OutboxRowWithoutClaim { .. } => "C4",
            Self::SumsDiffer { .. } | Self::ReversalUnpaired { .. } => "C7",
            Self::EffectsDiffer { .. } => "C5",
            Self::EffectsWithoutClaim { .. } => "C6",
            Self::OutboxRowUnlisted { .. } => "C8",
            Self::PaidTwice { .. } => "payment",
            Self::UnexpectedAmount { .. } => "amount",
            Self::FenceFell { .. } => "F1",
        }
    }
}
