//! Export and its way back: rows as they are, with everything that hangs on them.

use lease_core::LeaseName;

use super::Transaction;
use super::payments::read_payment;
use super::read::{corrupt, decode, join_delivery, read, read_fence_state, read_receipt, read_reversal};
use crate::error::StorageFailure;
use crate::limits::PAGE_ROWS_MAX;
use crate::store::codec::Record;
use crate::store::outbox_records::{OutboxRow, SubjectRow};
use crate::store::records::{AttemptRow, FenceRow, ResetRow};
use crate::store::rows::{Row, Rows};
use crate::store::{
    ArchivePage, ArchiveTable, Archived, ArchivedAttempt, ArchivedClaim, Cursor, Restored, keys,
};
use crate::types::{ClaimId, FenceState, PaymentAttempt, UnixMillis};

/// The next rows of a table.
pub(crate) fn archive(
    rows: &dyn Rows,
    table: ArchiveTable,
    after: Option<&Cursor>,
) -> Result<ArchivePage, StorageFailure> {
    let prefix = match table {
        ArchiveTable::Claims => keys::OUTBOX,
        ArchiveTable::Attempts => keys::ATTEMPTS,
        ArchiveTable::Payments => keys::PAYMENTS,
        ArchiveTable::Fences => keys::FENCES,
    };
    let found = rows.scan(prefix, after.map(Cursor::as_bytes), PAGE_ROWS_MAX)?;
    let next = match found.last() {
        Some((key, _)) if found.len() == PAGE_ROWS_MAX => Some(Cursor::from_bytes(key)),
        Some(_) | None => None,
    };
    let mut page = ArchivePage {
        rows: Vec::with_capacity(found.len()),
        next,
    };
    for row in &found {
        let archived = match table {
            ArchiveTable::Claims => claim(rows, row)?.map(Archived::Claim),
            ArchiveTable::Attempts => Some(Archived::Attempt(attempt(row)?)),
            ArchiveTable::Payments => Some(Archived::Payment(payment(rows, row)?)),
            ArchiveTable::Fences => {
                let (resource, state) = fence(rows, row)?;
                Some(Archived::Fence(resource, state))
            }
        };
        page.rows.extend(archived);
    }
    Ok(page)
}

/// A claim by its outbox row; `None` for the row of a reversal, which goes with its claim.
fn claim(rows: &dyn Rows, (key, value): &Row) -> Result<Option<ArchivedClaim>, StorageFailure> {
    let row: OutboxRow = decode(key, value)?;
    let id = keys::read_outbox(key).ok_or_else(|| bad_key(key))?;
    if row.subject != SubjectRow::Grant {
        return Ok(None);
    }
    let delivery = join_delivery(rows, id, &row)?;
    let reversal = match read_reversal(rows, id)? {
        Some(reversal) => {
            let key = keys::outbox(reversal.id);
            let row: OutboxRow = read(rows, &key)?
                .ok_or_else(|| corrupt(OutboxRow::NAME, &key, "its reversal is there, it is not"))?;
            Some((reversal, row.progress()))
        }
        None => None,
    };
    Ok(Some(ArchivedClaim {
        receipt: delivery.receipt,
        progress: delivery.progress,
        reversal,
    }))
}

fn attempt((key, value): &Row) -> Result<ArchivedAttempt, StorageFailure> {
    let (attempt, token) = keys::read_attempt(key).ok_or_else(|| bad_key(key))?;
    let row: AttemptRow = decode(key, value)?;
    let bad = |source| corrupt(AttemptRow::NAME, key, source);
    let body = row.body().map_err(bad)?;
    Ok(ArchivedAttempt {
        attempt,
        token,
        at: UnixMillis::new(row.at_ms),
        answer: row.archived_answer().map_err(bad)?,
        body,
    })
}

fn payment(rows: &dyn Rows, (key, _): &Row) -> Result<PaymentAttempt, StorageFailure> {
    let attempt = keys::read_payment(key).ok_or_else(|| bad_key(key))?;
    read_payment(rows, &attempt)?.ok_or_else(|| bad_key(key))
}

fn fence(rows: &dyn Rows, (key, _): &Row) -> Result<(LeaseName, FenceState), StorageFailure> {
    let resource = keys::read_fence(key).ok_or_else(|| bad_key(key))?;
    let state = read_fence_state(rows, &resource)?.ok_or_else(|| bad_key(key))?;
    Ok((resource, state))
}

fn bad_key(key: &[u8]) -> StorageFailure {
    corrupt("exported", key, "its key is of no known form")
}

/// Why a row cannot be put in.
type Problem = Result<(), String>;

impl Transaction<'_> {
    /// Puts exported rows in, all of them or none.
    pub(crate) fn restore(&mut self, archived: &[Archived]) -> Result<Restored, StorageFailure> {
        let answer = self.all_or_nothing(|inner| {
            for (index, row) in archived.iter().enumerate() {
                let problem = match row {
                    Archived::Claim(claim) => inner.restore_claim(claim)?,
                    Archived::Attempt(attempt) => inner.restore_attempt(attempt)?,
                    Archived::Payment(payment) => inner.restore_payment(payment)?,
                    Archived::Fence(resource, state) => inner.restore_fence(resource, state)?,
                };
                if let Err(problem) = problem {
                    return Ok(Err(Restored::Refused { index, problem }));
                }
            }
            Ok(Ok(()))
        })?;
        Ok(match answer {
            Ok(()) => Restored::Done,
            Err(refused) => refused,
        })
    }

    fn restore_claim(&mut self, claim: &ArchivedClaim) -> Result<Problem, StorageFailure> {
        let receipt = &claim.receipt;
        let id = receipt.claim_id();
        match read_receipt(&self.rows, receipt.player(), receipt.event())? {
            Some(there) if there != *receipt => {
                return Ok(Err(format!("the event was granted otherwise: {there}")));
            }
            Some(_) => {}
            None => {
                if self.is_taken(id)? {
                    return Ok(Err(format!("the number {id} belongs to another claim")));
                }
                self.put_claim(receipt, &claim.progress)?;
            }
        }
        let Some((reversal, progress)) = &claim.reversal else {
            return Ok(Ok(()));
        };
        match self.reversal_of(id)? {
            Some(there) if there != *reversal => Ok(Err(format!(
                "claim {id} was reversed otherwise, by number {}",
                there.id
            ))),
            Some(_) => Ok(Ok(())),
            None if self.is_taken(reversal.id)? => Ok(Err(format!(
                "the number {} of the reversal belongs to another row",
                reversal.id
            ))),
            None => {
                self.put_reversal(receipt, reversal, progress)?;
                Ok(Ok(()))
            }
        }
    }

    fn is_taken(&self, id: ClaimId) -> Result<bool, StorageFailure> {
        Ok(self.rows.get(&keys::outbox(id))?.is_some())
    }

    fn restore_attempt(&mut self, attempt: &ArchivedAttempt) -> Result<Problem, StorageFailure> {
        let row = AttemptRow::of_archived(attempt);
        let key = keys::attempt(&attempt.attempt, attempt.token);
        if let Some(there) = read::<AttemptRow>(&self.rows, &key)? {
            return Ok(if there == row {
                Ok(())
            } else {
                Err(format!("attempt {} was answered otherwise", attempt.attempt))
            });
        }
        let applied = read_receipt(&self.rows, attempt.body.player, &attempt.body.event)?;
        if row.outcome(attempt.token, applied.as_ref()).is_err() {
            return Ok(Err(format!(
                "attempt {} rests on a claim that is not there",
                attempt.attempt
            )));
        }
        self.put_attempt(&attempt.attempt, attempt.token, &row)?;
        Ok(Ok(()))
    }

    fn restore_payment(&mut self, payment: &PaymentAttempt) -> Result<Problem, StorageFailure> {
        match read_payment(&self.rows, &payment.attempt)? {
            Some(there) if there != *payment => Ok(Err(format!(
                "payment attempt {} stands otherwise",
                payment.attempt
            ))),
            Some(_) => Ok(Ok(())),
            None => {
                self.put_payment(payment)?;
                Ok(Ok(()))
            }
        }
    }

    /// The higher token wins: a ledger that has moved on since must not forget it.
    fn restore_fence(&mut self, resource: &LeaseName, state: &FenceState) -> Result<Problem, StorageFailure> {
        let there = read_fence_state(&self.rows, resource)?;
        if there.is_some_and(|there| there.seen >= state.seen) {
            return Ok(Ok(()));
        }
        let row = FenceRow {
            token: state.seen.map_or(0, |token| token.get()),
            last_reset: state.last_reset.as_ref().map(|reset| ResetRow {
                from: reset.from.map_or(0, |token| token.get()),
                at_ms: reset.at.get(),
                reason: reset.reason.to_string(),
            }),
        };
        self.put(keys::fence(resource), &row)?;
        Ok(Ok(()))
    }
}
