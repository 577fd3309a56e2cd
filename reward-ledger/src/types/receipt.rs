use std::fmt;
use std::sync::Arc;

use lease_core::FenceToken;

use super::{
    Amount, AttemptId, Authority, Claim, ClaimId, InvalidReceipt, Item, PlayerId, UnixMillis, receipt_bytes,
};
use crate::event_id::RewardEventId;

/// Proof that a reward was granted: the same bytes for everybody who ever asks for this event again.
///
/// Cloning copies a pointer.
#[derive(Clone)]
pub struct Receipt(Arc<Sealed>);

/// A grant and the bytes that it was first written as.
struct Sealed {
    grant: Grant,
    bytes: Box<[u8]>,
}

/// What a receipt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) claim_id: ClaimId,
    pub(crate) recorded_at: UnixMillis,
    pub(crate) authority: Authority,
    pub(crate) player: PlayerId,
    pub(crate) event: RewardEventId,
    pub(crate) item: Item,
    pub(crate) amount: Amount,
    pub(crate) attempt: AttemptId,
}

impl Receipt {
    /// The receipt of a claim that becomes number `claim_id` at `recorded_at`.
    pub(crate) fn issue(claim: &Claim, claim_id: ClaimId, recorded_at: UnixMillis) -> Self {
        Self::seal(Grant {
            claim_id,
            recorded_at,
            authority: claim.authority().clone(),
            player: claim.player(),
            event: claim.event().clone(),
            item: claim.item().clone(),
            amount: claim.amount(),
            attempt: claim.attempt().clone(),
        })
    }

    pub(crate) fn seal(grant: Grant) -> Self {
        let bytes = receipt_bytes::encode(&grant).into_boxed_slice();
        Self(Arc::new(Sealed { grant, bytes }))
    }

    /// Reads a receipt back; it keeps these very bytes.
    ///
    /// # Errors
    /// [`InvalidReceipt`] where they are not the bytes of a receipt.
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidReceipt> {
        let bytes = bytes.as_ref();
        let grant = receipt_bytes::decode(bytes)?;
        Ok(Self(Arc::new(Sealed {
            grant,
            bytes: Box::from(bytes),
        })))
    }

    /// The receipt as it was first written; two answers to one event compare equal here, byte for byte.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Its number in this ledger; a later claim has a higher one.
    #[must_use]
    pub fn claim_id(&self) -> ClaimId {
        self.0.grant.claim_id
    }

    /// When the ledger took it, by the ledger's wall clock.
    #[must_use]
    pub fn recorded_at(&self) -> UnixMillis {
        self.0.grant.recorded_at
    }

    /// Under which authority it was granted.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.0.grant.authority
    }

    /// The token it was granted with; `None` marks an unfenced claim.
    #[must_use]
    pub fn token(&self) -> Option<FenceToken> {
        match self.authority() {
            Authority::Fenced(fence) => Some(fence.token),
            Authority::Unfenced => None,
        }
    }

    /// Who was rewarded.
    #[must_use]
    pub fn player(&self) -> PlayerId {
        self.0.grant.player
    }

    /// What for.
    #[must_use]
    pub fn event(&self) -> &RewardEventId {
        &self.0.grant.event
    }

    /// With what.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.0.grant.item
    }

    /// With how much.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.0.grant.amount
    }

    /// The try that was granted.
    #[must_use]
    pub fn attempt(&self) -> &AttemptId {
        &self.0.grant.attempt
    }
}

impl PartialEq for Receipt {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Receipt {}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receipt").field(&self.0.grant).finish()
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "claim {}: {} {} to player {} for {}",
            self.claim_id(),
            self.amount(),
            self.item(),
            self.player(),
            self.event()
        )
    }
}
