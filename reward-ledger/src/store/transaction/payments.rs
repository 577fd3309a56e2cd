//! Payment attempts: the view of one, its decision, its rows.

use lease_core::{Fence, FenceToken, LeaseName};

use super::Transaction;
use super::read::{corrupt, fence_state, read, read_fence};
use crate::core::payment::{self, PaymentView};
use crate::core::{PaymentOutcome, PaymentReport, PaymentWitness, ReportOutcome};
use crate::error::StorageFailure;
use crate::limits::PAYMENT_ATTEMPTS_MAX;
use crate::store::codec::Record;
use crate::store::keys;
use crate::store::payment_records::PaymentRow;
use crate::store::records::FenceRow;
use crate::store::rows::Rows;
use crate::types::{AttemptId, OrderId, PaymentAttempt, PaymentStart, UnixMillis};

impl Transaction<'_> {
    /// Starts an attempt, if its order has no other active one.
    pub(crate) fn start_payment(
        &mut self,
        start: &PaymentStart,
        at: UnixMillis,
    ) -> Result<PaymentOutcome, StorageFailure> {
        let attempts = read_payments(&self.rows, &start.order)?;
        let view = PaymentView {
            same: read_payment(&self.rows, &start.attempt)?,
            seen: self.highest(&start.fence.resource)?,
            attempts: attempts.len(),
            active: attempts.into_iter().find(PaymentAttempt::is_active),
        };
        let decision = payment::start(&view, start, at);
        self.write_payment(&start.fence.resource, decision.raise, decision.write.as_ref())?;
        Ok(decision.outcome)
    }

    /// Notes what became of an attempt.
    pub(crate) fn report_payment(
        &mut self,
        report: &PaymentReport,
        at: UnixMillis,
    ) -> Result<ReportOutcome, StorageFailure> {
        let same = read_payment(&self.rows, &report.attempt)?;
        let seen = match (&same, &report.witness) {
            (Some(same), PaymentWitness::Worker(_)) => self.highest(&same.fence.resource)?,
            (None, _) | (_, PaymentWitness::Person(_)) => None,
        };
        let decision = payment::report(same.as_ref(), seen, report, at);
        if let Some(same) = &same {
            self.write_payment(&same.fence.resource, decision.raise, decision.write.as_ref())?;
        }
        Ok(decision.outcome)
    }

    fn highest(&self, resource: &LeaseName) -> Result<Option<FenceToken>, StorageFailure> {
        match read_fence(&self.rows, resource)? {
            Some(row) => Ok(fence_state(resource, &row)?.seen),
            None => Ok(None),
        }
    }

    fn write_payment(
        &mut self,
        resource: &LeaseName,
        raise: Option<FenceToken>,
        attempt: Option<&PaymentAttempt>,
    ) -> Result<(), StorageFailure> {
        if let Some(token) = raise {
            self.raise_fence(&Fence::new(resource.clone(), token))?;
        }
        match attempt {
            Some(attempt) => self.put_payment(attempt),
            None => Ok(()),
        }
    }

    pub(super) fn raise_fence(&mut self, fence: &Fence) -> Result<(), StorageFailure> {
        let before = read_fence(&self.rows, &fence.resource)?;
        let row = FenceRow {
            token: fence.token.get(),
            last_reset: before.and_then(|row| row.last_reset),
        };
        self.put(keys::fence(&fence.resource), &row)
    }

    pub(super) fn put_payment(&mut self, attempt: &PaymentAttempt) -> Result<(), StorageFailure> {
        self.rows
            .put(keys::payment_of(&attempt.order, &attempt.attempt), Vec::new());
        self.put(keys::payment(&attempt.attempt), &PaymentRow::of(attempt))
    }
}

/// A payment attempt by its id.
pub(crate) fn read_payment(
    rows: &dyn Rows,
    attempt: &AttemptId,
) -> Result<Option<PaymentAttempt>, StorageFailure> {
    let key = keys::payment(attempt);
    read::<PaymentRow>(rows, &key)?
        .map(|row| {
            row.attempt(attempt.clone())
                .map_err(|source| corrupt(PaymentRow::NAME, &key, source))
        })
        .transpose()
}

/// All attempts of an order, oldest first.
pub(crate) fn read_payments(rows: &dyn Rows, order: &OrderId) -> Result<Vec<PaymentAttempt>, StorageFailure> {
    let mut attempts = Vec::new();
    for (key, _) in rows.scan(&keys::payments_of(order), None, PAYMENT_ATTEMPTS_MAX)? {
        let missing = || corrupt("list of payments", &key, "its attempt is not there");
        let attempt = keys::read_payment_of(order, &key).ok_or_else(missing)?;
        attempts.push(read_payment(rows, &attempt)?.ok_or_else(missing)?);
    }
    attempts.sort_by_key(|attempt| attempt.started_at);
    Ok(attempts)
}
