//! Payment attempts as their users see them.

use super::Ledger;
use crate::core::{PaymentOutcome, PaymentReport, ReportOutcome};
use crate::error::StoreError;
use crate::types::{OrderId, PaymentAttempt, PaymentStart};

impl Ledger {
    /// Starts a payment attempt, if its order has no other active one. Only then is the gateway called, with the attempt's
    /// id as its idempotency key.
    ///
    /// # Errors
    /// [`StoreError`]. [`StoreError::may_have_applied`] says whether it may have been started all the same; starting the
    /// same attempt again tells.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have started the attempt; start the same one again.
    pub async fn start_payment(&self, start: PaymentStart) -> Result<PaymentOutcome, StoreError> {
        let at = self.now();
        self.store().start_payment(start, at).await
    }

    /// Notes what became of a payment attempt. What is approved or failed stays so.
    ///
    /// # Errors
    /// [`StoreError`]. [`StoreError::may_have_applied`] says whether it may have been noted all the same; the same
    /// report again is harmless.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have been carried out; report again.
    pub async fn report_payment(&self, report: PaymentReport) -> Result<ReportOutcome, StoreError> {
        let at = self.now();
        self.store().report_payment(report, at).await
    }

    /// All attempts of an order, oldest first.
    ///
    /// # Errors
    /// [`StoreError`]. Reading applies nothing.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn payments(&self, order: &OrderId) -> Result<Vec<PaymentAttempt>, StoreError> {
        self.store().payments(order.clone()).await
    }
}
