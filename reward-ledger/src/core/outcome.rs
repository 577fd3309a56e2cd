use lease_core::FenceToken;

use crate::types::{ClaimField, Receipt};

/// The answer to a claim. A refusal is an answer, too: it is stored, and repeated to a retry of the same attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refusal is an answer, not an error"]
#[non_exhaustive]
pub enum ClaimOutcome {
    /// Granted now.
    Applied(Receipt),
    /// Granted before, to this attempt or to another one with equal item and amount: the first receipt.
    Replayed(Receipt),
    /// A higher token has been seen for the resource: somebody else holds the lease, or did since.
    Stale {
        /// The token that was shown.
        presented: FenceToken,
        /// The highest token that had been seen.
        seen: FenceToken,
        /// The receipt of this event, if it had been granted.
        applied: Option<Receipt>,
    },
    /// The key is taken by something else. Asking again will not help.
    Conflict {
        /// Which key.
        subject: ConflictSubject,
        /// The fields that differ from what is stored, in a fixed order; never empty.
        fields: Vec<ClaimField>,
    },
}

impl ClaimOutcome {
    /// The receipt, if the reward is granted and the asker has the authority to know it as its own.
    #[must_use]
    pub const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Applied(receipt) | Self::Replayed(receipt) => Some(receipt),
            Self::Stale { .. } | Self::Conflict { .. } => None,
        }
    }

    /// Whether the reward is granted, now or before.
    #[must_use]
    pub const fn is_accepted(&self) -> bool {
        self.receipt().is_some()
    }
}

/// What a conflicting claim has in common with the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConflictSubject {
    /// The attempt id: it was used for another claim.
    Attempt,
    /// Player and event: the reward was granted with another item or amount.
    Event,
}

/// The answer to a batch that is granted as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refusal is an answer, not an error"]
pub enum BatchOutcome {
    /// Every claim was granted, now or before; in the order of the batch.
    Accepted(Vec<ClaimOutcome>),
    /// Nothing was written, no refusal either, since these would not have been granted.
    Refused(Vec<RefusedClaim>),
}

/// A claim for which a whole batch was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedClaim {
    /// Its place in the batch, from 0.
    pub index: usize,
    /// Why: [`ClaimOutcome::Stale`] or [`ClaimOutcome::Conflict`].
    pub outcome: ClaimOutcome,
}
