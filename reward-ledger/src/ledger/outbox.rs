//! The outbox as its users see it: what is still to be delivered, and what a person does about what cannot be.

use super::Ledger;
use crate::error::StoreError;
use crate::limits::QUERY_ROWS_MAX;
use crate::store::{AmendRequest, Amended, Amendment, Deliveries, OutboxQuery};
use crate::types::{ClaimId, Reason};

impl Ledger {
    /// The next outbox rows of a query, at most `rows_max` and never more than [`QUERY_ROWS_MAX`].
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn deliveries(
        &self,
        query: OutboxQuery,
        after: Option<ClaimId>,
        rows_max: usize,
    ) -> Result<Deliveries, StoreError> {
        self.store()
            .deliveries(query, after, rows_max.clamp(1, QUERY_ROWS_MAX))
            .await
    }

    /// Has a dead or discarded row tried again, with all its tries: before what its player is still to be told, and behind
    /// what the player was told meanwhile. What is under way for the player ends first, so that may take as long as a
    /// publisher's lease.
    ///
    /// A grant whose reversal the outside may know of is not told any more: [`Amended::TakenBack`].
    ///
    /// # Errors
    /// [`StoreError`]. [`StoreError::may_have_applied`] says whether it may have been done all the same.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have been carried out; look at the row.
    pub async fn retry_delivery(&self, id: ClaimId) -> Result<Amended, StoreError> {
        self.amend(id, Amendment::Retry).await
    }

    /// Gives a dead row up for good. It stays on record, with the reason.
    ///
    /// # Errors
    /// As [`Ledger::retry_delivery`].
    ///
    /// # Cancel safety
    /// As [`Ledger::retry_delivery`].
    pub async fn discard_delivery(&self, id: ClaimId, reason: Reason) -> Result<Amended, StoreError> {
        self.amend(id, Amendment::Discard(reason)).await
    }

    async fn amend(&self, id: ClaimId, amendment: Amendment) -> Result<Amended, StoreError> {
        let at = self.now();
        let request = AmendRequest { id, amendment, at };
        let amended = self.store().amend_outbox(request).await?;
        if let Amended::Done(delivery) = &amended {
            tracing::warn!(%id, state = delivery.progress.state().name(), "a person moved an outbox row");
        }
        Ok(amended)
    }
}
