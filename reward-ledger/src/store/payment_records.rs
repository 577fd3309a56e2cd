//! The stored row of a payment attempt, as plain data.

use lease_core::{Fence, FenceToken, LeaseName};
use serde::{Deserialize, Serialize};

use super::codec::Record;
use super::records::InvalidRow;
use crate::types::{
    Amount, AttemptId, Finding, FoundBy, Item, Note, OrderId, PaymentAttempt, PaymentStatus, Reason,
    UnixMillis,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PaymentRow {
    pub(crate) order: String,
    pub(crate) resource: Vec<u8>,
    pub(crate) token: u64,
    pub(crate) currency: String,
    pub(crate) amount: i64,
    pub(crate) started_at_ms: u64,
    pub(crate) status: PaymentStatusRow,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PaymentStatusRow {
    Ready,
    Unknown(FindingRow),
    Approved(FindingRow),
    Failed(FindingRow),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FindingRow {
    pub(crate) at_ms: u64,
    pub(crate) by: FoundByRow,
    pub(crate) note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FoundByRow {
    Worker { token: u64 },
    Person { reason: String },
}

impl Record for PaymentRow {
    const NAME: &'static str = "payment attempt";
    const VERSION: u8 = 1;
}

impl PaymentRow {
    pub(crate) fn of(attempt: &PaymentAttempt) -> Self {
        Self {
            order: attempt.order.as_str().to_owned(),
            resource: attempt.fence.resource.as_bytes().to_vec(),
            token: attempt.fence.token.get(),
            currency: attempt.currency.as_str().to_owned(),
            amount: attempt.amount.get(),
            started_at_ms: attempt.started_at.get(),
            status: match &attempt.status {
                PaymentStatus::Ready => PaymentStatusRow::Ready,
                PaymentStatus::Unknown(finding) => PaymentStatusRow::Unknown(FindingRow::of(finding)),
                PaymentStatus::Approved(finding) => PaymentStatusRow::Approved(FindingRow::of(finding)),
                PaymentStatus::Failed(finding) => PaymentStatusRow::Failed(FindingRow::of(finding)),
            },
        }
    }

    pub(crate) fn attempt(&self, attempt: AttemptId) -> Result<PaymentAttempt, InvalidRow> {
        Ok(PaymentAttempt {
            order: OrderId::new(&self.order)?,
            attempt,
            fence: Fence::new(
                LeaseName::new(&self.resource).map_err(|_| InvalidRow::Fence)?,
                token(self.token)?,
            ),
            currency: Item::new(&self.currency)?,
            amount: Amount::new(self.amount)?,
            started_at: UnixMillis::new(self.started_at_ms),
            status: match &self.status {
                PaymentStatusRow::Ready => PaymentStatus::Ready,
                PaymentStatusRow::Unknown(row) => PaymentStatus::Unknown(row.finding()?),
                PaymentStatusRow::Approved(row) => PaymentStatus::Approved(row.finding()?),
                PaymentStatusRow::Failed(row) => PaymentStatus::Failed(row.finding()?),
            },
        })
    }
}

impl FindingRow {
    fn of(finding: &Finding) -> Self {
        Self {
            at_ms: finding.at.get(),
            by: match &finding.by {
                FoundBy::Worker(token) => FoundByRow::Worker { token: token.get() },
                FoundBy::Person(reason) => FoundByRow::Person {
                    reason: reason.as_str().to_owned(),
                },
            },
            note: finding.note.as_str().to_owned(),
        }
    }

    fn finding(&self) -> Result<Finding, InvalidRow> {
        let by = match &self.by {
            FoundByRow::Worker { token: number } => FoundBy::Worker(token(*number)?),
            FoundByRow::Person { reason } => FoundBy::Person(Reason::new(reason)?),
        };
        Ok(Finding::new(
            UnixMillis::new(self.at_ms),
            by,
            Note::new(&self.note),
        ))
    }
}

fn token(number: u64) -> Result<FenceToken, InvalidRow> {
    FenceToken::new(number).map_err(|_| InvalidRow::Fence)
}
