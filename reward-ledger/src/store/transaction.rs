//! One transaction over ordered rows: read the view, ask the core, lay the writes over the rows.
//!
//! Applying the writes as one, and making them durable, is the store's own business.

use lease_core::LeaseName;

use super::codec::{self, Record};
use super::keys;
use super::records::{AttemptRow, FenceRow, HeadRow, LedgerRow, OutboxRow, ResetRow};
use super::rows::{Overlay, Rows, Writes};
use super::{ClaimRequest, ResetRequest};
use crate::core::{Attempt, ClaimOutcome, Decision, NextClaim, Protections, View, decide};
use crate::error::{Cause, StorageFailure};
use crate::event_id::RewardEventId;
use crate::limits::PRUNE_ROWS_MAX;
use crate::types::{Claim, ClaimId, FenceState, PlayerId, Receipt, UnixMillis};

/// A transaction in the making; it may answer many requests, each on top of the ones before it.
#[derive(Debug)]
pub(crate) struct Transaction<'a, R> {
    rows: Overlay<'a, R>,
    head: HeadRow,
    protections: Protections,
}

impl<'a, R: Rows> Transaction<'a, R> {
    pub(crate) fn begin(rows: &'a R, protections: Protections) -> Result<Self, StorageFailure> {
        Ok(Self {
            head: read_head(rows)?,
            rows: Overlay::new(rows),
            protections,
        })
    }

    /// The rows with this transaction's writes.
    #[cfg(feature = "sled")]
    pub(crate) const fn rows(&self) -> &Overlay<'a, R> {
        &self.rows
    }

    /// The number of the last claim, this transaction's included.
    #[cfg(feature = "sled")]
    pub(crate) const fn last_claim(&self) -> ClaimId {
        ClaimId::new(self.head.last_claim)
    }

    /// What is to be written, if anything is, and the number of the commit that writes it.
    pub(crate) fn finish(mut self) -> Result<Option<(Writes, u64)>, StorageFailure> {
        if self.rows.is_clean() {
            return Ok(None);
        }
        self.head.commits = self.head.commits.saturating_add(1);
        let commit = self.head.commits;
        let head = self.head;
        self.put(keys::HEAD.to_vec(), &head)?;
        Ok(Some((self.rows.into_writes(), commit)))
    }

    /// Answers one claim.
    pub(crate) fn claim(&mut self, request: &ClaimRequest) -> Result<ClaimOutcome, StorageFailure> {
        let claim = &request.claim;
        let fence = match claim.resource() {
            Some(resource) => read_fence(&self.rows, resource)?,
            None => None,
        };
        let view = self.view(claim, fence.as_ref(), request.at)?;
        let decision = decide(&view, claim, self.protections);
        for _ in 1..self.protections.decide_rounds() {
            let again = decide(&view.clone(), claim, self.protections);
            assert_eq!(
                again, decision,
                "a decision must come out the same when it is made again"
            );
        }
        self.write(claim, fence, &decision, request.at)?;
        Ok(decision.outcome)
    }

    /// Sets a fence as an operator says.
    pub(crate) fn reset_fence(&mut self, request: &ResetRequest) -> Result<FenceState, StorageFailure> {
        let before = read_fence(&self.rows, &request.resource)?;
        let row = FenceRow {
            token: request.to.map_or(0, |token| token.get()),
            last_reset: Some(ResetRow {
                from: before.map_or(0, |row| row.token),
                at_ms: request.at.get(),
                reason: request.reason.to_string(),
            }),
        };
        let key = keys::fence(&request.resource);
        self.put(key.clone(), &row)?;
        row.state()
            .map_err(|source| corrupt(FenceRow::NAME, &key, source))
    }

    /// Forgets refused attempts from before `before`; a bounded number, so a backlog goes over several calls.
    pub(crate) fn forget_refusals(&mut self, before: UnixMillis) -> Result<usize, StorageFailure> {
        if !self.refusal_is_due(before)? {
            return Ok(0);
        }
        let mut forgotten = 0;
        for (key, _) in self.rows.scan(keys::REFUSALS, None, PRUNE_ROWS_MAX)? {
            let (at, attempt, token) = keys::read_refusal(&key)
                .ok_or_else(|| corrupt("refusal", &key, "its key is not that of a refusal"))?;
            if at >= before {
                break;
            }
            self.rows.remove(keys::attempt(&attempt, token));
            self.rows.remove(key);
            forgotten += 1;
        }
        Ok(forgotten)
    }

    fn refusal_is_due(&self, before: UnixMillis) -> Result<bool, StorageFailure> {
        let oldest = self.rows.scan(keys::REFUSALS, None, 1)?;
        Ok(oldest
            .first()
            .and_then(|(key, _)| keys::read_refusal(key))
            .is_some_and(|(at, ..)| at < before))
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
            next: NextClaim {
                claim_id: ClaimId::new(self.head.last_claim).next(),
                at,
            },
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

    fn write(
        &mut self,
        claim: &Claim,
        before: Option<FenceRow>,
        decision: &Decision,
        at: UnixMillis,
    ) -> Result<(), StorageFailure> {
        if let Some(fence) = &decision.effects.raise {
            let row = FenceRow {
                token: fence.token.get(),
                last_reset: before.and_then(|row| row.last_reset),
            };
            self.put(keys::fence(&fence.resource), &row)?;
        }
        if let Some(receipt) = &decision.effects.insert {
            let (player, claim_id) = (receipt.player(), receipt.claim_id());
            self.rows
                .put(keys::claim(player, receipt.event()), receipt.as_bytes().to_vec());
            self.put(keys::ledger(player, claim_id), &LedgerRow::of(receipt))?;
            self.put(keys::outbox(claim_id), &OutboxRow::of(receipt))?;
            self.head.last_claim = claim_id.get();
        }
        let answer = decision.effects.remember.as_ref();
        if let Some(row) = answer.and_then(|outcome| AttemptRow::of(&claim.body(), outcome, at)) {
            if row.is_refusal() {
                self.rows
                    .put(keys::refusal(at, claim.attempt(), claim.token()), Vec::new());
            }
            self.put(keys::attempt(claim.attempt(), claim.token()), &row)?;
        }
        Ok(())
    }

    fn put<T: Record>(&mut self, key: Vec<u8>, record: &T) -> Result<(), StorageFailure> {
        let value = codec::encode(record).map_err(|source| StorageFailure::Files {
            action: "encode a row",
            source: source.into(),
        })?;
        self.rows.put(key, value);
        Ok(())
    }
}

/// Where the ledger stands.
pub(crate) fn read_head(rows: &impl Rows) -> Result<HeadRow, StorageFailure> {
    Ok(read(rows, keys::HEAD)?.unwrap_or_default())
}

/// The receipt of a player's event.
pub(crate) fn read_receipt(
    rows: &impl Rows,
    player: PlayerId,
    event: &RewardEventId,
) -> Result<Option<Receipt>, StorageFailure> {
    let key = keys::claim(player, event);
    rows.get(&key)?
        .map(|value| Receipt::from_bytes(value).map_err(|source| corrupt("claim", &key, source)))
        .transpose()
}

/// What is known of a resource's tokens.
pub(crate) fn read_fence_state(
    rows: &impl Rows,
    resource: &LeaseName,
) -> Result<Option<FenceState>, StorageFailure> {
    read_fence(rows, resource)?
        .map(|row| fence_state(resource, &row))
        .transpose()
}

fn fence_state(resource: &LeaseName, row: &FenceRow) -> Result<FenceState, StorageFailure> {
    row.state()
        .map_err(|source| corrupt(FenceRow::NAME, &keys::fence(resource), source))
}

fn read_fence(rows: &impl Rows, resource: &LeaseName) -> Result<Option<FenceRow>, StorageFailure> {
    read(rows, &keys::fence(resource))
}

/// A row by its key.
pub(crate) fn read<T: Record>(rows: &impl Rows, key: &[u8]) -> Result<Option<T>, StorageFailure> {
    rows.get(key)?.map(|value| decode(key, &value)).transpose()
}

fn decode<T: Record>(key: &[u8], value: &[u8]) -> Result<T, StorageFailure> {
    codec::decode(value).map_err(|source| corrupt(T::NAME, key, source))
}

fn corrupt(record: &'static str, key: &[u8], source: impl Into<Cause>) -> StorageFailure {
    StorageFailure::CorruptRow {
        record,
        key: key.escape_ascii().to_string(),
        source: source.into(),
    }
}
