//! The tables as columns: a vector for each column, the parameters of one statement.

use tokio_postgres::types::ToSql;

use super::fetch::corrupt;
use super::{millis, part_of, signed};
use crate::error::StorageFailure;
use crate::store::keys;
use crate::store::outbox_records::{DoubtRow, OutboxRow, ReversalRow, StateRow};
use crate::store::payment_records::{FoundByRow, PaymentRow, PaymentStatusRow};
use crate::store::records::{AnswerRow, AttemptRow, FenceRow, LedgerRow, ReceiptShown};
use crate::types::{AttemptId, Authority, ClaimId, PlayerId, Receipt, UnixMillis};

/// The columns of a table as a statement's parameters.
pub(super) struct Columns<'a, const N: usize> {
    pub(super) rows: usize,
    pub(super) params: [&'a (dyn ToSql + Sync); N],
}

#[derive(Debug, Default)]
pub(super) struct Fences {
    resource: Vec<Vec<u8>>,
    token: Vec<i64>,
    reset_from: Vec<Option<i64>>,
    reset_at_ms: Vec<Option<i64>>,
    reset_reason: Vec<Option<String>>,
}

impl Fences {
    pub(super) fn columns(&self) -> Columns<'_, 5> {
        Columns {
            rows: self.resource.len(),
            params: [
                &self.resource,
                &self.token,
                &self.reset_from,
                &self.reset_at_ms,
                &self.reset_reason,
            ],
        }
    }

    pub(super) fn push(&mut self, key: &[u8], row: FenceRow) -> Result<(), StorageFailure> {
        let resource = keys::read_fence(key).ok_or_else(|| bad_key(key))?;
        let (from, at_ms, reason) = match row.last_reset {
            Some(reset) => (
                Some(signed(reset.from)),
                Some(clamped(reset.at_ms)),
                Some(reset.reason),
            ),
            None => (None, None, None),
        };
        self.resource.push(resource.as_bytes().to_vec());
        self.token.push(signed(row.token));
        self.reset_from.push(from);
        self.reset_at_ms.push(at_ms);
        self.reset_reason.push(reason);
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Claims {
    claim_id: Vec<i64>,
    player: Vec<i64>,
    event: Vec<String>,
    resource: Vec<Option<Vec<u8>>>,
    token: Vec<Option<i64>>,
    item: Vec<String>,
    amount: Vec<i64>,
    attempt: Vec<String>,
    at_ms: Vec<i64>,
    receipt: Vec<Vec<u8>>,
}

impl Claims {
    pub(super) fn columns(&self) -> Columns<'_, 10> {
        Columns {
            rows: self.claim_id.len(),
            params: [
                &self.claim_id,
                &self.player,
                &self.event,
                &self.resource,
                &self.token,
                &self.item,
                &self.amount,
                &self.attempt,
                &self.at_ms,
                &self.receipt,
            ],
        }
    }

    pub(super) fn push(&mut self, receipt: &Receipt, at_ms: i64, bytes: &[u8]) {
        let (resource, token) = match receipt.authority() {
            Authority::Fenced(fence) => (
                Some(fence.resource.as_bytes().to_vec()),
                Some(signed(fence.token.get())),
            ),
            Authority::Unfenced => (None, None),
        };
        self.claim_id.push(signed(receipt.claim_id().get()));
        self.player.push(receipt.player().get());
        self.event.push(receipt.event().as_str().to_owned());
        self.resource.push(resource);
        self.token.push(token);
        self.item.push(receipt.item().as_str().to_owned());
        self.amount.push(receipt.amount().get());
        self.attempt.push(receipt.attempt().as_str().to_owned());
        self.at_ms.push(at_ms);
        self.receipt.push(bytes.to_vec());
    }
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    id: Vec<i64>,
    player: Vec<i64>,
    event: Vec<String>,
    item: Vec<String>,
    amount: Vec<i64>,
    at_ms: Vec<i64>,
}

impl Ledger {
    pub(super) fn columns(&self) -> Columns<'_, 6> {
        Columns {
            rows: self.id.len(),
            params: [
                &self.id,
                &self.player,
                &self.event,
                &self.item,
                &self.amount,
                &self.at_ms,
            ],
        }
    }

    pub(super) fn push(&mut self, id: ClaimId, player: PlayerId, at_ms: i64, row: LedgerRow) {
        self.id.push(signed(id.get()));
        self.player.push(player.get());
        self.event.push(row.event);
        self.item.push(row.item);
        self.amount.push(row.amount);
        self.at_ms.push(at_ms);
    }
}

#[derive(Debug, Default)]
pub(super) struct Reversals {
    claim_id: Vec<i64>,
    reversal_id: Vec<i64>,
    player: Vec<i64>,
    event: Vec<String>,
    at_ms: Vec<i64>,
    reason: Vec<String>,
}

impl Reversals {
    pub(super) fn columns(&self) -> Columns<'_, 6> {
        Columns {
            rows: self.claim_id.len(),
            params: [
                &self.claim_id,
                &self.reversal_id,
                &self.player,
                &self.event,
                &self.at_ms,
                &self.reason,
            ],
        }
    }

    pub(super) fn push(&mut self, claim_id: ClaimId, at_ms: i64, row: ReversalRow) {
        self.claim_id.push(signed(claim_id.get()));
        self.reversal_id.push(signed(row.id));
        self.player.push(row.player);
        self.event.push(row.event);
        self.at_ms.push(at_ms);
        self.reason.push(row.reason);
    }
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    claim_id: Vec<i64>,
    player: Vec<i64>,
    event: Vec<String>,
    about: Vec<i64>,
    part: Vec<i16>,
    state: Vec<&'static str>,
    due_ms: Vec<Option<i64>>,
    owner: Vec<Option<String>>,
    since_ms: Vec<Option<i64>>,
    ended_ms: Vec<Option<i64>>,
    epoch: Vec<i64>,
    tries: Vec<i64>,
    first_sent_ms: Vec<Option<i64>>,
    in_doubt: Vec<bool>,
    note: Vec<String>,
}

/// Rows of the outbox that were there before, and the epoch that each was read with.
#[derive(Debug, Default)]
pub(super) struct OutboxMoves {
    rows: Outbox,
    epoch_before: Vec<i64>,
}

impl OutboxMoves {
    pub(super) fn columns(&self) -> Columns<'_, 16> {
        let Columns { rows, params } = self.rows.columns();
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = params;
        Columns {
            rows,
            params: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, &self.epoch_before],
        }
    }

    pub(super) fn push(&mut self, id: ClaimId, before: &OutboxRow, row: OutboxRow) {
        self.epoch_before.push(signed(before.epoch));
        self.rows.push(id, row);
    }
}

impl Outbox {
    pub(super) fn columns(&self) -> Columns<'_, 15> {
        Columns {
            rows: self.claim_id.len(),
            params: [
                &self.claim_id,
                &self.player,
                &self.event,
                &self.about,
                &self.part,
                &self.state,
                &self.due_ms,
                &self.owner,
                &self.since_ms,
                &self.ended_ms,
                &self.epoch,
                &self.tries,
                &self.first_sent_ms,
                &self.in_doubt,
                &self.note,
            ],
        }
    }

    pub(super) fn push(&mut self, id: ClaimId, row: OutboxRow) {
        let (state, due, owner, since, ended) = match &row.state {
            StateRow::Pending { due_ms } => ("pending", Some(*due_ms), None, None, None),
            StateRow::Leased {
                owner,
                since_ms,
                until_ms,
            } => (
                "leased",
                Some(*until_ms),
                Some(owner.clone()),
                Some(*since_ms),
                None,
            ),
            StateRow::Delivered { at_ms } => ("delivered", None, None, None, Some(*at_ms)),
            StateRow::Dead { at_ms } => ("dead", None, None, None, Some(*at_ms)),
            StateRow::Discarded { at_ms } => ("discarded", None, None, None, Some(*at_ms)),
        };
        self.claim_id.push(signed(id.get()));
        self.player.push(row.player);
        self.about.push(signed(row.claim_id(id).get()));
        self.part.push(part_of(PlayerId::new(row.player)));
        self.event.push(row.event);
        self.state.push(state);
        self.due_ms.push(due.map(clamped));
        self.owner.push(owner);
        self.since_ms.push(since.map(clamped));
        self.ended_ms.push(ended.map(clamped));
        self.epoch.push(signed(row.epoch));
        self.tries.push(i64::from(row.tries));
        self.first_sent_ms.push(row.first_sent_ms.map(clamped));
        self.in_doubt.push(row.doubt == DoubtRow::Unknown);
        self.note.push(row.note);
    }
}

#[derive(Debug, Default)]
pub(super) struct Payments {
    attempt: Vec<String>,
    order: Vec<String>,
    status: Vec<&'static str>,
    resource: Vec<Vec<u8>>,
    token: Vec<i64>,
    currency: Vec<String>,
    amount: Vec<i64>,
    started_at_ms: Vec<i64>,
    active_key: Vec<Option<&'static str>>,
    found_at_ms: Vec<Option<i64>>,
    found_by_token: Vec<Option<i64>>,
    found_by_reason: Vec<Option<String>>,
    note: Vec<Option<String>>,
}

impl Payments {
    pub(super) fn columns(&self) -> Columns<'_, 13> {
        Columns {
            rows: self.attempt.len(),
            params: [
                &self.attempt,
                &self.order,
                &self.status,
                &self.resource,
                &self.token,
                &self.currency,
                &self.amount,
                &self.started_at_ms,
                &self.active_key,
                &self.found_at_ms,
                &self.found_by_token,
                &self.found_by_reason,
                &self.note,
            ],
        }
    }

    pub(super) fn push(&mut self, key: &[u8], row: PaymentRow) -> Result<(), StorageFailure> {
        let attempt = keys::read_payment(key).ok_or_else(|| bad_key(key))?;
        let is_active = row
            .attempt(attempt.clone())
            .map_err(|error| corrupt("payment attempt", &attempt, error))?
            .is_active();
        let (status, finding) = match row.status {
            PaymentStatusRow::Ready => ("READY", None),
            PaymentStatusRow::Unknown(finding) => ("unknown", Some(finding)),
            PaymentStatusRow::Approved(finding) => ("approved", Some(finding)),
            PaymentStatusRow::Failed(finding) => ("failed", Some(finding)),
        };
        let (by_token, by_reason) = match finding.as_ref().map(|finding| &finding.by) {
            Some(FoundByRow::Worker { token }) => (Some(signed(*token)), None),
            Some(FoundByRow::Person { reason }) => (None, Some(reason.clone())),
            None => (None, None),
        };
        self.attempt.push(attempt.as_str().to_owned());
        self.order.push(row.order);
        self.status.push(status);
        self.resource.push(row.resource);
        self.token.push(signed(row.token));
        self.currency.push(row.currency);
        self.amount.push(row.amount);
        self.started_at_ms.push(clamped(row.started_at_ms));
        self.active_key.push(is_active.then_some("active"));
        self.found_at_ms
            .push(finding.as_ref().map(|finding| clamped(finding.at_ms)));
        self.found_by_token.push(by_token);
        self.found_by_reason.push(by_reason);
        self.note.push(finding.map(|finding| finding.note));
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Attempts {
    attempt: Vec<String>,
    resource: Vec<Option<Vec<u8>>>,
    player: Vec<i64>,
    event: Vec<String>,
    item: Vec<String>,
    amount: Vec<i64>,
}

impl Attempts {
    pub(super) fn columns(&self) -> Columns<'_, 6> {
        Columns {
            rows: self.attempt.len(),
            params: [
                &self.attempt,
                &self.resource,
                &self.player,
                &self.event,
                &self.item,
                &self.amount,
            ],
        }
    }

    pub(super) fn push(&mut self, attempt: &AttemptId, row: AttemptRow) {
        self.attempt.push(attempt.as_str().to_owned());
        self.resource.push(row.resource);
        self.player.push(row.player);
        self.event.push(row.event);
        self.item.push(row.item);
        self.amount.push(row.amount);
    }
}

#[derive(Debug, Default)]
pub(super) struct Answers {
    attempt: Vec<String>,
    token: Vec<i64>,
    outcome: Vec<&'static str>,
    at_ms: Vec<i64>,
    seen: Vec<Option<i64>>,
    receipt_shown: Vec<Option<bool>>,
    fields: Vec<Option<i16>>,
}

impl Answers {
    pub(super) fn columns(&self) -> Columns<'_, 7> {
        Columns {
            rows: self.attempt.len(),
            params: [
                &self.attempt,
                &self.token,
                &self.outcome,
                &self.at_ms,
                &self.seen,
                &self.receipt_shown,
                &self.fields,
            ],
        }
    }

    pub(super) fn push(&mut self, attempt: String, token: i64, row: &AttemptRow) {
        let (outcome, seen, shown, fields) = match row.answer {
            AnswerRow::Accepted => ("accepted", None, None, None),
            AnswerRow::Stale { seen, receipt } => (
                "stale",
                Some(signed(seen)),
                Some(receipt == ReceiptShown::Yes),
                None,
            ),
            AnswerRow::EventConflict { fields } => ("conflict", None, None, Some(i16::from(fields))),
        };
        self.attempt.push(attempt);
        self.token.push(token);
        self.outcome.push(outcome);
        self.at_ms.push(clamped(row.at_ms));
        self.seen.push(seen);
        self.receipt_shown.push(shown);
        self.fields.push(fields);
    }
}

pub(super) fn bad_key(key: &[u8]) -> StorageFailure {
    corrupt("written", key.escape_ascii(), "its key is not of its kind")
}

/// A time that a column holds.
pub(super) fn clamped(at_ms: u64) -> i64 {
    millis(UnixMillis::new(at_ms))
}
