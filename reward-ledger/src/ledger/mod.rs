//! The ledger as its users see it.

mod outbox;
mod payments;

use std::sync::Arc;

use lease_core::{FenceToken, LeaseName};

use crate::audit::{Against, AuditReport, Expectations, OutsideRecords, Violation, audit};
use crate::config::{LedgerBuilder, LedgerConfig, UnfencedPolicy};
use crate::core::{BatchOutcome, ClaimOutcome, ReversalOutcome};
use crate::error::{ClaimError, ResetError, StoreError};
use crate::event_id::RewardEventId;
use crate::limits::{BATCH_CLAIMS_MAX, QUERY_ROWS_MAX, RESOURCE_BYTES_MAX};
use crate::store::{
    BatchRequest, ClaimRecord, ClaimRequest, Cursor, Health, Query, Records, ResetRequest, ReversalRequest,
    Standing, Store,
};
use crate::types::{Authority, Claim, FenceState, PlayerId, Reason, Receipt, UnixMillis, check_length};

/// A ledger of rewards. A cheap handle: clones share the store.
#[derive(Debug, Clone)]
pub struct Ledger {
    store: Arc<dyn Store>,
    config: Arc<LedgerConfig>,
}

impl Ledger {
    /// A ledger over `store` that takes fenced claims only.
    #[must_use]
    pub fn open(store: impl Store) -> Self {
        Self::builder(store).open()
    }

    /// A ledger over `store`, opened in another way.
    pub fn builder(store: impl Store) -> LedgerBuilder {
        LedgerBuilder::new(store)
    }

    pub(crate) fn new(store: Arc<dyn Store>, config: LedgerConfig) -> Self {
        Self {
            store,
            config: Arc::new(config),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn now(&self) -> UnixMillis {
        self.config.clock.now()
    }

    /// Grants a reward once, or says why not. The answer is durable when it arrives.
    ///
    /// A claim whose answer is unknown is sent again as the same value, or a clone of it: it gets its first answer.
    ///
    /// # Errors
    /// [`ClaimError`]. [`ClaimError::may_have_applied`] says whether the claim may have been granted all the same.
    ///
    /// # Cancel safety
    /// A claim whose future is dropped may or may not be granted; send the same claim again to learn it.
    pub async fn claim(&self, claim: Claim) -> Result<ClaimOutcome, ClaimError> {
        self.check_authority(&claim)?;
        let at = self.now();
        let request = ClaimRequest {
            claim,
            at,
            forget_before: at.before(self.config.refusals_kept),
        };
        Ok(self.store.claim(request).await?)
    }

    /// As [`Ledger::claim`] for several claims in one commit: each is answered for itself, in their order.
    ///
    /// # Errors
    /// [`ClaimError`]. [`ClaimError::may_have_applied`] says whether claims may have been granted all the same.
    ///
    /// # Cancel safety
    /// As [`Ledger::claim`].
    pub async fn claim_each(&self, claims: Vec<Claim>) -> Result<Vec<ClaimOutcome>, ClaimError> {
        Ok(self.store.claim_each(self.batch(claims)?).await?)
    }

    /// As [`Ledger::claim`] for several claims, all of which are granted or none.
    ///
    /// # Errors
    /// [`ClaimError`]. [`ClaimError::may_have_applied`] says whether the claims may have been granted all the same.
    ///
    /// # Cancel safety
    /// As [`Ledger::claim`].
    pub async fn claim_all(&self, claims: Vec<Claim>) -> Result<BatchOutcome, ClaimError> {
        Ok(self.store.claim_all(self.batch(claims)?).await?)
    }

    fn batch(&self, claims: Vec<Claim>) -> Result<BatchRequest, ClaimError> {
        if claims.len() > BATCH_CLAIMS_MAX {
            return Err(ClaimError::BatchTooLarge {
                max: BATCH_CLAIMS_MAX,
                len: claims.len(),
            });
        }
        for claim in &claims {
            self.check_authority(claim)?;
        }
        let at = self.now();
        Ok(BatchRequest {
            claims,
            at,
            forget_before: at.before(self.config.refusals_kept),
        })
    }

    fn check_authority(&self, claim: &Claim) -> Result<(), ClaimError> {
        if *claim.authority() == Authority::Unfenced && self.config.unfenced == UnfencedPolicy::Refuse {
            return Err(ClaimError::UnfencedNotAllowed);
        }
        Ok(())
    }

    /// Takes a grant back: a new row, linked to the claim, at most one a claim, and delivered to the outside after it. The
    /// claim stays, its event is never granted again.
    ///
    /// # Errors
    /// [`StoreError`]. [`StoreError::may_have_applied`] says whether it may have been taken back all the same; asking
    /// again is harmless.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have taken it back.
    pub async fn reverse(
        &self,
        player: impl Into<PlayerId>,
        event: &RewardEventId,
        reason: Reason,
    ) -> Result<ReversalOutcome, StoreError> {
        let request = ReversalRequest {
            player: player.into(),
            event: event.clone(),
            reason,
            at: self.now(),
        };
        self.store.reverse(request).await
    }

    /// The receipt of a player's event, if it was granted.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn get(
        &self,
        player: impl Into<PlayerId>,
        event: &RewardEventId,
    ) -> Result<Option<Receipt>, StoreError> {
        let record = self.record(player, event).await?;
        Ok(record.map(|record| record.receipt))
    }

    /// As [`Ledger::get`], with what became of it: delivery and reversal.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn record(
        &self,
        player: impl Into<PlayerId>,
        event: &RewardEventId,
    ) -> Result<Option<ClaimRecord>, StoreError> {
        self.store.record(player.into(), event.clone()).await
    }

    /// The next claims of a query, at most `rows_max` and never more than [`QUERY_ROWS_MAX`]; `after` goes on behind an
    /// earlier answer. An answer may be short, or empty, and not be the last: its `next` says so.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn find(
        &self,
        query: Query,
        after: Option<Cursor>,
        rows_max: usize,
    ) -> Result<Records, StoreError> {
        self.store
            .find(query, after, rows_max.clamp(1, QUERY_ROWS_MAX))
            .await
    }

    /// How far the ledger has come.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        self.store.standing().await
    }

    /// What the ledger knows of a resource's tokens; `None` if no claim has shown one.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn fence(&self, resource: &LeaseName) -> Result<Option<FenceState>, StoreError> {
        self.store.fence(resource.clone()).await
    }

    /// Sets the highest token seen for a resource, also to a lower one or to none: for an operator whose issuer of
    /// tokens has lost its counter. Every token from `to` up is taken from then on, also one that was superseded, so make sure
    /// first that no old holder is left. Attempts that were refused as stale keep their refusal.
    ///
    /// # Errors
    /// [`ResetError`]. [`ResetError::may_have_applied`] says whether the fence may have been reset all the same.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have reset the fence; read it back.
    pub async fn reset_fence(
        &self,
        resource: &LeaseName,
        to: Option<FenceToken>,
        reason: &str,
    ) -> Result<FenceState, ResetError> {
        check_length("resource", 1, RESOURCE_BYTES_MAX, resource.as_bytes().len())?;
        let reason = Reason::new(reason)?;
        let request = ResetRequest {
            resource: resource.clone(),
            to,
            at: self.now(),
            reason: reason.into_text(),
        };
        let state = self.store.reset_fence(request).await?;
        tracing::warn!(%resource, to = to.map(FenceToken::get), ?state.last_reset, "an operator reset a fence");
        Ok(state)
    }

    /// Checks the whole ledger against its invariants and the amounts it was opened with. Claims go on meanwhile; those
    /// that come after the start are not looked at.
    ///
    /// # Errors
    /// [`StoreError`]. An audit applies nothing. Violations are no error: they are in the report.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn audit(&self) -> Result<AuditReport, StoreError> {
        self.audit_against(&Expectations::default(), |_| {}).await
    }

    /// As [`Ledger::audit`], with further amounts that the ledger must show, and every violation handed to `found` at
    /// once: the report lists only the first thousand.
    ///
    /// # Errors
    /// [`StoreError`]. An audit applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn audit_against(
        &self,
        expectations: &Expectations,
        found: impl FnMut(&Violation),
    ) -> Result<AuditReport, StoreError> {
        self.audit_with(expectations, None, found, |_| {}).await
    }

    /// As [`Ledger::audit_against`], also held against what the outside says it did, and `progress` told the number of
    /// rows looked at. Take the outside's books after the ledger is quiet: what is under way counts as not done yet.
    ///
    /// # Errors
    /// [`StoreError`]. An audit applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn audit_with(
        &self,
        expectations: &Expectations,
        outside: Option<&OutsideRecords>,
        found: impl FnMut(&Violation),
        progress: impl FnMut(u64),
    ) -> Result<AuditReport, StoreError> {
        let against = Against {
            expectations: &[&self.config.expectations, expectations],
            outside,
        };
        audit(&*self.store, against, found, progress).await
    }

    /// Whether the store answers.
    #[must_use]
    pub fn health(&self) -> Health {
        self.store.health()
    }

    /// Waits until the ledger will never answer again: closed, or stopped by a storage error. A service ends its
    /// process then.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ended(&self) -> Health {
        self.store.ended().await
    }

    /// Answers what was asked before, then lets go of files and threads; later requests are told that it is closed.
    /// Dropping the last handle closes as well, without waiting.
    ///
    /// # Errors
    /// [`StoreError`] where the store had stopped, or could not end cleanly. What was acknowledged is safe all the same.
    ///
    /// # Cancel safety
    /// Safe: the ledger closes all the same.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.store.close().await
    }
}
