//! Claims: the view of one, its decision, its rows.

use lease_core::FenceToken;

use super::Transaction;
use super::read::{corrupt, decode, fence_state, read, read_fence, read_receipt, read_reversal};
use crate::core::{
    Attempt, BatchOutcome, ClaimOutcome, Decision, NextClaim, RefusedClaim, ReversalOutcome, View, decide,
    delivery, reversal,
};
use crate::error::StorageFailure;
use crate::store::codec::Record;
use crate::store::outbox_records::{OutboxRow, ReversalRow};
use crate::store::records::{AttemptRow, FenceRow, LedgerRow};
use crate::store::rows::Rows;
use crate::store::{BatchRequest, ReversalRequest, keys};
use crate::types::{AttemptId, Claim, ClaimId, DeliveryProgress, Receipt, Reversal, UnixMillis};

impl Transaction<'_> {
    /// Answers one claim.
    pub(crate) fn claim(&mut self, claim: &Claim, at: UnixMillis) -> Result<ClaimOutcome, StorageFailure> {
        let fence = match claim.resource() {
            Some(resource) => read_fence(&self.rows, resource)?,
            None => None,
        };
        let view = self.view(claim, fence.as_ref(), at)?;
        let decision = decide(&view, claim, self.protections);
        for _ in 1..self.protections.decide_rounds() {
            let again = decide(&view.clone(), claim, self.protections);
            assert_eq!(
                again, decision,
                "a decision must come out the same when it is made again"
            );
        }
        self.write(claim, &decision, at)?;
        Ok(decision.outcome)
    }

    /// Answers claims, all of which are granted or nothing is written.
    pub(crate) fn claim_all(&mut self, request: &BatchRequest) -> Result<BatchOutcome, StorageFailure> {
        let answer = self.all_or_nothing(|inner| {
            let mut outcomes = Vec::with_capacity(request.claims.len());
            let mut refused = Vec::new();
            for (index, claim) in request.claims.iter().enumerate() {
                let outcome = inner.claim(claim, request.at)?;
                if outcome.is_accepted() {
                    outcomes.push(outcome);
                } else {
                    refused.push(RefusedClaim { index, outcome });
                }
            }
            Ok(if refused.is_empty() {
                Ok(outcomes)
            } else {
                Err(refused)
            })
        })?;
        Ok(match answer {
            Ok(outcomes) => BatchOutcome::Accepted(outcomes),
            Err(refused) => BatchOutcome::Refused(refused),
        })
    }

    /// Takes a grant back.
    pub(crate) fn reverse(&mut self, request: &ReversalRequest) -> Result<ReversalOutcome, StorageFailure> {
        let claim = read_receipt(&self.rows, request.player, &request.event)?;
        let reversed = match &claim {
            Some(claim) => self.reversal_of(claim.claim_id())?,
            None => None,
        };
        let outcome = reversal::reverse(claim.as_ref(), reversed, &request.reason, self.next(request.at));
        if let (ReversalOutcome::Reversed(reversal), Some(claim)) = (&outcome, &claim) {
            self.put_reversal(claim, reversal, &delivery::begin(request.at))?;
        }
        Ok(outcome)
    }

    pub(crate) fn put_reversal(
        &mut self,
        claim: &Receipt,
        reversal: &Reversal,
        progress: &DeliveryProgress,
    ) -> Result<(), StorageFailure> {
        self.put(keys::reversal(claim.claim_id()), &ReversalRow::of(reversal))?;
        self.put(
            keys::ledger(claim.player(), reversal.id),
            &LedgerRow::of_reversal(claim),
        )?;
        self.insert_outbox(reversal.id, &OutboxRow::of_reversal(claim, progress))?;
        self.head.last_claim = self.head.last_claim.max(reversal.id.get());
        Ok(())
    }

    pub(crate) fn put_claim(
        &mut self,
        receipt: &Receipt,
        progress: &DeliveryProgress,
    ) -> Result<(), StorageFailure> {
        let (player, claim_id) = (receipt.player(), receipt.claim_id());
        self.rows
            .put(keys::claim(player, receipt.event()), receipt.as_bytes().to_vec());
        self.put(keys::ledger(player, claim_id), &LedgerRow::of(receipt))?;
        self.insert_outbox(claim_id, &OutboxRow::of_grant(receipt, progress))?;
        for key in keys::indexes(receipt) {
            self.rows.put(key, Vec::new());
        }
        self.head.last_claim = self.head.last_claim.max(claim_id.get());
        Ok(())
    }

    pub(crate) fn reversal_of(&self, claim_id: ClaimId) -> Result<Option<Reversal>, StorageFailure> {
        read_reversal(&self.rows, claim_id)
    }

    fn next(&self, at: UnixMillis) -> NextClaim {
        NextClaim {
            claim_id: ClaimId::new(self.head.last_claim).next(),
            at,
        }
    }

    fn view(&self, claim: &Claim, fence: Option<&FenceRow>, at: UnixMillis) -> Result<View, StorageFailure> {
        let applied = read_receipt(&self.rows, claim.player(), claim.event())?;
        let seen = match (claim.resource(), fence) {
            (Some(resource), Some(row)) => fence_state(resource, row)?.seen,
            (None, _) | (_, None) => None,
        };
        Ok(View {
            attempt: self.attempt(claim, applied.as_ref())?,
            seen,
            applied,
            next: self.next(at),
        })
    }

    /// All answers to an attempt id are for one body, so that any of them tells it.
    fn attempt(&self, claim: &Claim, applied: Option<&Receipt>) -> Result<Attempt, StorageFailure> {
        let prefix = keys::attempts_of(claim.attempt());
        let Some((any_key, any)) = self.rows.scan(&prefix, None, 1)?.into_iter().next() else {
            return Ok(Attempt::Unknown);
        };
        let key = keys::attempt(claim.attempt(), claim.token());
        let answered = if any_key == key {
            Some(decode(&key, &any)?)
        } else {
            read::<AttemptRow>(&self.rows, &key)?
        };
        let invalid = |source| corrupt(AttemptRow::NAME, &key, source);
        let Some(row) = answered else {
            let row: AttemptRow = decode(&any_key, &any)?;
            return Ok(Attempt::Bound(row.body().map_err(invalid)?));
        };
        let body = row.body().map_err(invalid)?;
        // Of another event this claim's receipt says nothing, and the bodies differ: the answer is not asked for.
        if body.player != claim.player() || body.event != *claim.event() {
            return Ok(Attempt::Bound(body));
        }
        let first = row.outcome(claim.token(), applied).map_err(invalid)?;
        Ok(Attempt::Answered(body, first))
    }

    fn write(&mut self, claim: &Claim, decision: &Decision, at: UnixMillis) -> Result<(), StorageFailure> {
        if let Some(fence) = &decision.effects.raise {
            self.raise_fence(fence)?;
        }
        if let Some(receipt) = &decision.effects.insert {
            self.put_claim(receipt, &delivery::begin(at))?;
        }
        let answer = decision.effects.remember.as_ref();
        if let Some(row) = answer.and_then(|outcome| AttemptRow::of(&claim.body(), outcome, at)) {
            self.put_attempt(claim.attempt(), claim.token(), &row)?;
        }
        Ok(())
    }

    pub(crate) fn put_attempt(
        &mut self,
        attempt: &AttemptId,
        token: Option<FenceToken>,
        row: &AttemptRow,
    ) -> Result<(), StorageFailure> {
        if row.is_refusal() {
            let at = UnixMillis::new(row.at_ms);
            self.rows.put(keys::refusal(at, attempt, token), Vec::new());
        }
        self.put(keys::attempt(attempt, token), row)
    }
}
