use super::{ClaimId, PlayerId, Reason, UnixMillis};
use crate::event_id::RewardEventId;

/// A grant that was taken back: a row of its own, linked to its claim, at most one a claim. The claim stays, and its event
/// is never granted again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reversal {
    /// Its own number, in one sequence with claims.
    pub id: ClaimId,
    /// The claim that it reverses.
    pub claim_id: ClaimId,
    /// Whose.
    pub player: PlayerId,
    /// What for.
    pub event: RewardEventId,
    /// When, by the ledger's wall clock.
    pub recorded_at: UnixMillis,
    /// Why, in a person's words.
    pub reason: Reason,
}
