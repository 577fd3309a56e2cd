use lease_core::{Fence, FenceToken};

use super::ClaimOutcome;
use crate::types::{ClaimBody, ClaimId, Receipt, UnixMillis};

/// Everything that a decision rests on, as one transaction read it.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// What is remembered of the claim's attempt id.
    pub(crate) attempt: Attempt,
    /// Highest token seen for the claim's resource.
    pub(crate) seen: Option<FenceToken>,
    /// The receipt of the claim's player and event.
    pub(crate) applied: Option<Receipt>,
    /// What the claim becomes if it is granted.
    pub(crate) next: NextClaim,
}

/// What is remembered of an attempt id.
#[derive(Debug, Clone)]
pub(crate) enum Attempt {
    /// Nothing: it is new, or only refused long ago.
    Unknown,
    /// It was used with other tokens only, always for this body.
    Bound(ClaimBody),
    /// It was used with this token, for this body, and answered so. An accepted one reads `Replayed`.
    Answered(ClaimBody, ClaimOutcome),
}

/// Number and time of the next grant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextClaim {
    pub(crate) claim_id: ClaimId,
    pub(crate) at: UnixMillis,
}

/// What to answer, and what to write before the answer leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) outcome: ClaimOutcome,
    pub(crate) effects: Effects,
}

/// What to write, all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effects {
    /// The resource's highest token becomes this one.
    pub(crate) raise: Option<Fence>,
    /// The grant: its claim, ledger and outbox rows.
    pub(crate) insert: Option<Receipt>,
    /// The answer that this attempt gets from now on, in the form of [`Attempt::Answered`].
    pub(crate) remember: Option<ClaimOutcome>,
}
