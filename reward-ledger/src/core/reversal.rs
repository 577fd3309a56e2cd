//! Taking a grant back: a linked row, at most one a claim.

use crate::core::NextClaim;
use crate::types::{Reason, Receipt, Reversal};

/// The answer to a reversal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refusal is an answer, not an error"]
#[non_exhaustive]
pub enum ReversalOutcome {
    /// Taken back now.
    Reversed(Reversal),
    /// Taken back before, perhaps for another reason: the first reversal.
    Replayed(Reversal),
    /// There is no such claim.
    NotFound,
}

/// Decides a reversal of `claim`, which becomes number `next` if it is made.
pub(crate) fn reverse(
    claim: Option<&Receipt>,
    reversed: Option<Reversal>,
    reason: &Reason,
    next: NextClaim,
) -> ReversalOutcome {
    match (claim, reversed) {
        (None, _) => ReversalOutcome::NotFound,
        (Some(_), Some(reversal)) => ReversalOutcome::Replayed(reversal),
        (Some(claim), None) => ReversalOutcome::Reversed(Reversal {
            id: next.claim_id,
            claim_id: claim.claim_id(),
            player: claim.player(),
            event: claim.event().clone(),
            recorded_at: next.at,
            reason: reason.clone(),
        }),
    }
}
