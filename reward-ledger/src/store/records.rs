//! The stored rows, as plain data. They are formats, not the vocabulary: converted by hand, both ways.
//!
//! A claim row has no record here: it is the bytes of its receipt.

use std::sync::Arc;

use lease_core::{FenceToken, LeaseName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::codec::Record;
use super::{ArchivedAnswer, ArchivedAttempt, Shown};
use crate::core::{ClaimOutcome, ConflictSubject};
use crate::event_id::RewardEventId;
use crate::types::{
    Amount, ClaimBody, ClaimField, FenceReset, FenceState, InvalidField, Item, PlayerId, Receipt, UnixMillis,
};

/// Where the ledger stands: one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct HeadRow {
    /// Number of the last claim or reversal; 0 if there is none.
    pub(crate) last_claim: u64,
    /// Number of transactions that wrote anything.
    pub(crate) commits: u64,
    /// Outbox rows that are pending or leased.
    pub(crate) outbox_open: u64,
    /// Outbox rows that a publisher gave up.
    pub(crate) outbox_dead: u64,
}

impl Record for HeadRow {
    const NAME: &'static str = "head";
    const VERSION: u8 = 2;
}

/// The highest token of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FenceRow {
    /// 0 after a reset to nothing.
    pub(crate) token: u64,
    pub(crate) last_reset: Option<ResetRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResetRow {
    pub(crate) from: u64,
    pub(crate) at_ms: u64,
    pub(crate) reason: String,
}

impl Record for FenceRow {
    const NAME: &'static str = "fence";
    const VERSION: u8 = 1;
}

/// One entry of a player's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerRow {
    pub(crate) event: String,
    pub(crate) item: String,
    pub(crate) amount: i64,
}

impl Record for LedgerRow {
    const NAME: &'static str = "ledger";
    const VERSION: u8 = 1;
}

/// The answer to one attempt with one token, and what the attempt id is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptRow {
    /// `None` for an unfenced claim.
    pub(crate) resource: Option<Vec<u8>>,
    pub(crate) player: i64,
    pub(crate) event: String,
    pub(crate) item: String,
    pub(crate) amount: i64,
    pub(crate) at_ms: u64,
    pub(crate) answer: AnswerRow,
}

/// An answer. Receipts are not copied into it: claims are kept for ever and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AnswerRow {
    Accepted,
    Stale { seen: u64, receipt: ReceiptShown },
    EventConflict { fields: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReceiptShown {
    No,
    Yes,
}

impl Record for AttemptRow {
    const NAME: &'static str = "attempt";
    const VERSION: u8 = 1;
}

/// A row that decodes and makes no sense.
#[derive(Debug, Error)]
pub(crate) enum InvalidRow {
    #[error(transparent)]
    Field(#[from] InvalidField),
    #[error("a resource or token breaks its rule")]
    Fence,
    #[error("it rests on a claim that is not there")]
    ClaimMissing,
}

/// Every field with its bit in [`AnswerRow::EventConflict`]; bits are never used again.
const FIELD_BITS: [(ClaimField, u8); 5] = [
    (ClaimField::Resource, 1),
    (ClaimField::Player, 2),
    (ClaimField::Event, 4),
    (ClaimField::Item, 8),
    (ClaimField::Amount, 16),
];

impl FenceRow {
    pub(crate) fn state(&self) -> Result<FenceState, InvalidRow> {
        let last_reset = match &self.last_reset {
            Some(reset) => Some(FenceReset::new(
                token(reset.from)?,
                UnixMillis::new(reset.at_ms),
                Arc::from(reset.reason.as_str()),
            )),
            None => None,
        };
        Ok(FenceState::new(token(self.token)?, last_reset))
    }
}

fn token(number: u64) -> Result<Option<FenceToken>, InvalidRow> {
    match number {
        0 => Ok(None),
        number => FenceToken::new(number).map(Some).map_err(|_| InvalidRow::Fence),
    }
}

impl LedgerRow {
    pub(crate) fn of(receipt: &Receipt) -> Self {
        Self {
            event: receipt.event().as_str().to_owned(),
            item: receipt.item().as_str().to_owned(),
            amount: receipt.amount().get(),
        }
    }

    /// The line that takes a grant back.
    pub(crate) fn of_reversal(receipt: &Receipt) -> Self {
        Self {
            amount: receipt.amount().get().saturating_neg(),
            ..Self::of(receipt)
        }
    }
}

impl AttemptRow {
    /// The row of `outcome`; `None` for an answer that is not stored.
    pub(crate) fn of(body: &ClaimBody, outcome: &ClaimOutcome, at: UnixMillis) -> Option<Self> {
        let answer = match outcome {
            ClaimOutcome::Applied(_) | ClaimOutcome::Replayed(_) => AnswerRow::Accepted,
            ClaimOutcome::Stale { seen, applied, .. } => AnswerRow::Stale {
                seen: seen.get(),
                receipt: applied.as_ref().map_or(ReceiptShown::No, |_| ReceiptShown::Yes),
            },
            ClaimOutcome::Conflict {
                subject: ConflictSubject::Event,
                fields,
            } => AnswerRow::EventConflict {
                fields: field_bits(fields),
            },
            // The stored body decides it anew each time, to the same answer.
            ClaimOutcome::Conflict {
                subject: ConflictSubject::Attempt,
                ..
            } => return None,
        };
        Some(Self {
            resource: body.resource.as_ref().map(|name| name.as_bytes().to_vec()),
            player: body.player.get(),
            event: body.event.as_str().to_owned(),
            item: body.item.as_str().to_owned(),
            amount: body.amount.get(),
            at_ms: at.get(),
            answer,
        })
    }

    /// The row of an answer that was exported.
    pub(crate) fn of_archived(archived: &ArchivedAttempt) -> Self {
        let body = &archived.body;
        Self {
            resource: body.resource.as_ref().map(|name| name.as_bytes().to_vec()),
            player: body.player.get(),
            event: body.event.as_str().to_owned(),
            item: body.item.as_str().to_owned(),
            amount: body.amount.get(),
            at_ms: archived.at.get(),
            answer: match &archived.answer {
                ArchivedAnswer::Accepted => AnswerRow::Accepted,
                ArchivedAnswer::Stale { seen, receipt } => AnswerRow::Stale {
                    seen: seen.get(),
                    receipt: match receipt {
                        Shown::No => ReceiptShown::No,
                        Shown::Yes => ReceiptShown::Yes,
                    },
                },
                ArchivedAnswer::EventConflict { fields } => AnswerRow::EventConflict {
                    fields: field_bits(fields),
                },
            },
        }
    }

    /// The answer as an export writes it.
    pub(crate) fn archived_answer(&self) -> Result<ArchivedAnswer, InvalidRow> {
        Ok(match self.answer {
            AnswerRow::Accepted => ArchivedAnswer::Accepted,
            AnswerRow::Stale { seen, receipt } => ArchivedAnswer::Stale {
                seen: FenceToken::new(seen).map_err(|_| InvalidRow::Fence)?,
                receipt: match receipt {
                    ReceiptShown::No => Shown::No,
                    ReceiptShown::Yes => Shown::Yes,
                },
            },
            AnswerRow::EventConflict { fields } => ArchivedAnswer::EventConflict {
                fields: fields_of(fields),
            },
        })
    }

    pub(crate) const fn is_refusal(&self) -> bool {
        !matches!(self.answer, AnswerRow::Accepted)
    }

    pub(crate) fn body(&self) -> Result<ClaimBody, InvalidRow> {
        let resource = match &self.resource {
            Some(bytes) => Some(LeaseName::new(bytes).map_err(|_| InvalidRow::Fence)?),
            None => None,
        };
        Ok(ClaimBody {
            resource,
            player: PlayerId::new(self.player),
            event: RewardEventId::stored(&self.event)?,
            item: Item::new(&self.item)?,
            amount: Amount::new(self.amount)?,
        })
    }

    /// The answer as it was first given with the token `presented`; `applied` is the receipt of this row's event.
    pub(crate) fn outcome(
        &self,
        presented: Option<FenceToken>,
        applied: Option<&Receipt>,
    ) -> Result<ClaimOutcome, InvalidRow> {
        let needed = || applied.cloned().ok_or(InvalidRow::ClaimMissing);
        Ok(match self.answer {
            AnswerRow::Accepted => ClaimOutcome::Replayed(needed()?),
            AnswerRow::Stale { seen, receipt } => ClaimOutcome::Stale {
                presented: presented.ok_or(InvalidRow::Fence)?,
                seen: FenceToken::new(seen).map_err(|_| InvalidRow::Fence)?,
                applied: match receipt {
                    ReceiptShown::Yes => Some(needed()?),
                    ReceiptShown::No => None,
                },
            },
            AnswerRow::EventConflict { fields } => ClaimOutcome::Conflict {
                subject: ConflictSubject::Event,
                fields: fields_of(fields),
            },
        })
    }
}

fn field_bits(fields: &[ClaimField]) -> u8 {
    FIELD_BITS
        .iter()
        .filter(|(field, _)| fields.contains(field))
        .fold(0, |bits, (_, bit)| bits | bit)
}

fn fields_of(bits: u8) -> Vec<ClaimField> {
    FIELD_BITS
        .iter()
        .filter_map(|&(field, bit)| (bits & bit != 0).then_some(field))
        .collect()
}
