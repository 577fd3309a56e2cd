//! The writes of a transaction as columns of rows, and their way into the tables.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::types::ToSql;

use super::fetch::corrupt;
use super::link::Link;
use super::rows::LoadedRows;
use super::statements as sql;
use super::trouble::Trouble;
use super::{millis, signed};
use crate::error::StorageFailure;
use crate::store::codec::{self, Record};
use crate::store::keys;
use crate::store::outbox_records::{DoubtRow, OutboxRow, ReversalRow, StateRow};
use crate::store::payment_records::{FoundByRow, PaymentRow, PaymentStatusRow};
use crate::store::records::{AnswerRow, AttemptRow, FenceRow, LedgerRow, ReceiptShown};
use crate::store::rows::Writes;
use crate::types::{AttemptId, Authority, ClaimId, PlayerId, Receipt};

/// All writes of one group, a vector for each column.
#[derive(Debug, Default)]
pub(super) struct Changes {
    fences: Fences,
    claims: Claims,
    reversals: Reversals,
    ledger: Ledger,
    outbox: Outbox,
    outbox_moved: Outbox,
    attempts: Attempts,
    answers: Answers,
    payments: Payments,
    forgotten: Forgotten,
    /// When each claim and reversal of this group was made.
    made_at: BTreeMap<ClaimId, i64>,
}

#[derive(Debug, Default)]
struct Fences {
    resource: Vec<Vec<u8>>,
    token: Vec<i64>,
    reset_from: Vec<Option<i64>>,
    reset_at_ms: Vec<Option<i64>>,
    reset_reason: Vec<Option<String>>,
}

#[derive(Debug, Default)]
struct Claims {
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

#[derive(Debug, Default)]
struct Ledger {
    id: Vec<i64>,
    player: Vec<i64>,
    event: Vec<String>,
    item: Vec<String>,
    amount: Vec<i64>,
    at_ms: Vec<i64>,
}

#[derive(Debug, Default)]
struct Reversals {
    claim_id: Vec<i64>,
    reversal_id: Vec<i64>,
    player: Vec<i64>,
    event: Vec<String>,
    at_ms: Vec<i64>,
    reason: Vec<String>,
}

#[derive(Debug, Default)]
struct Outbox {
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

#[derive(Debug, Default)]
struct Payments {
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

/// Answers that go.
#[derive(Debug, Default)]
struct Forgotten {
    attempt: Vec<String>,
    token: Vec<i64>,
}

#[derive(Debug, Default)]
struct Attempts {
    attempt: Vec<String>,
    resource: Vec<Option<Vec<u8>>>,
    player: Vec<i64>,
    event: Vec<String>,
    item: Vec<String>,
    amount: Vec<i64>,
}

#[derive(Debug, Default)]
struct Answers {
    attempt: Vec<String>,
    token: Vec<i64>,
    outcome: Vec<&'static str>,
    at_ms: Vec<i64>,
    seen: Vec<Option<i64>>,
    receipt_shown: Vec<Option<bool>>,
    fields: Vec<Option<i16>>,
}

impl Changes {
    /// The writes by table, over what was read.
    pub(super) fn of(writes: Writes, rows: &LoadedRows) -> Result<Self, StorageFailure> {
        let mut changes = Self::default();
        let mut bound = BTreeSet::new();
        // An answer that was forgotten, and given anew in the same transaction, is a row that goes as well.
        let gone: BTreeSet<Vec<u8>> = writes
            .iter()
            .filter(|(key, value)| key.starts_with(keys::ATTEMPTS) && (value.is_none() || rows.has(key)))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &gone {
            changes.forget(key)?;
        }
        // Reversals and claims first: others take their times from them.
        for (key, value) in &writes {
            match (key.first(), value) {
                (Some(b'c'), Some(value)) => changes.claim(key, value)?,
                (Some(b'v'), Some(value)) => changes.reversal(key, value)?,
                _ => {}
            }
        }
        for (key, value) in writes {
            match (key.first(), value) {
                (Some(b'c' | b'v'), Some(_)) => {}
                (Some(b'f'), Some(value)) => changes.fences.push(&key, decode(&key, &value)?)?,
                (Some(b'l'), Some(value)) => changes.ledger_row(&key, &value)?,
                (Some(b'o'), Some(value)) => changes.outbox_row(&key, &value, rows)?,
                (Some(b'a'), Some(value)) => changes.attempt(&key, &value, |attempt| {
                    rows.is_bound(attempt, &gone) || !bound.insert(attempt.clone())
                })?,
                (Some(b'p'), Some(value)) => changes.payments.push(&key, decode(&key, &value)?)?,
                (Some(b'a'), None) => {}
                // Lists are read out of the tables, and numbers are drawn from a sequence.
                (Some(b'r' | b'm' | b'q' | b'h' | b'd' | b'e' | b't' | b'w' | b'n'), _) => {}
                _ => {
                    return Err(corrupt(
                        "written",
                        key.escape_ascii(),
                        "no table keeps such a row",
                    ));
                }
            }
        }
        Ok(changes)
    }

    fn claim(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageFailure> {
        let receipt =
            Receipt::from_bytes(value).map_err(|error| corrupt("claim", key.escape_ascii(), error))?;
        let at_ms = millis(receipt.recorded_at());
        self.made_at.insert(receipt.claim_id(), at_ms);
        let (resource, token) = match receipt.authority() {
            Authority::Fenced(fence) => (
                Some(fence.resource.as_bytes().to_vec()),
                Some(signed(fence.token.get())),
            ),
            Authority::Unfenced => (None, None),
        };
        let rows = &mut self.claims;
        rows.claim_id.push(signed(receipt.claim_id().get()));
        rows.player.push(receipt.player().get());
        rows.event.push(receipt.event().as_str().to_owned());
        rows.resource.push(resource);
        rows.token.push(token);
        rows.item.push(receipt.item().as_str().to_owned());
        rows.amount.push(receipt.amount().get());
        rows.attempt.push(receipt.attempt().as_str().to_owned());
        rows.at_ms.push(at_ms);
        rows.receipt.push(value.to_vec());
        Ok(())
    }

    fn reversal(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageFailure> {
        let row: ReversalRow = decode(key, value)?;
        let claim_id = keys::read_number(key).ok_or_else(|| bad_key(key))?;
        let at_ms = clamped(row.at_ms);
        self.made_at.insert(ClaimId::new(row.id), at_ms);
        let rows = &mut self.reversals;
        rows.claim_id.push(signed(claim_id.get()));
        rows.reversal_id.push(signed(row.id));
        rows.player.push(row.player);
        rows.event.push(row.event);
        rows.at_ms.push(at_ms);
        rows.reason.push(row.reason);
        Ok(())
    }

    fn ledger_row(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageFailure> {
        let row: LedgerRow = decode(key, value)?;
        let (player, id) = keys::read_ledger(key).ok_or_else(|| bad_key(key))?;
        let rows = &mut self.ledger;
        rows.id.push(signed(id.get()));
        rows.player.push(player.get());
        rows.event.push(row.event);
        rows.item.push(row.item);
        rows.amount.push(row.amount);
        rows.at_ms
            .push(self.made_at.get(&id).copied().unwrap_or_default());
        Ok(())
    }

    fn outbox_row(&mut self, key: &[u8], value: &[u8], rows: &LoadedRows) -> Result<(), StorageFailure> {
        let row: OutboxRow = decode(key, value)?;
        let id = keys::read_outbox(key).ok_or_else(|| bad_key(key))?;
        match rows.has(key) {
            true => self.outbox_moved.push(id, row),
            false => self.outbox.push(id, row),
        }
        Ok(())
    }

    fn attempt(
        &mut self,
        key: &[u8],
        value: &[u8],
        is_bound: impl FnOnce(&AttemptId) -> bool,
    ) -> Result<(), StorageFailure> {
        let row: AttemptRow = decode(key, value)?;
        let (attempt, token) = keys::read_attempt(key).ok_or_else(|| bad_key(key))?;
        let token = token.map_or(0, |token| signed(token.get()));
        self.answers.push(attempt.as_str().to_owned(), token, &row);
        if !is_bound(&attempt) {
            let rows = &mut self.attempts;
            rows.attempt.push(attempt.as_str().to_owned());
            rows.resource.push(row.resource);
            rows.player.push(row.player);
            rows.event.push(row.event);
            rows.item.push(row.item);
            rows.amount.push(row.amount);
        }
        Ok(())
    }

    fn forget(&mut self, key: &[u8]) -> Result<(), StorageFailure> {
        let (attempt, token) = keys::read_attempt(key).ok_or_else(|| bad_key(key))?;
        self.forgotten.attempt.push(attempt.as_str().to_owned());
        self.forgotten
            .token
            .push(token.map_or(0, |token| signed(token.get())));
        Ok(())
    }

    /// Writes all of it, in one round trip; tables in one order, so that sessions never wait in a circle.
    pub(super) async fn write(&self, link: &Link, insert_claims: &'static str) -> Result<(), Trouble> {
        self.forgotten.write(link).await?;
        let written = tokio::try_join!(
            biased;
            insert(link, "raise the fences", sql::RAISE_FENCES, self.fences.columns()),
            insert(link, "write the claims", insert_claims, self.claims.columns()),
            insert(link, "write reversals", sql::INSERT_REVERSALS, self.reversals.columns()),
            insert(link, "write the ledger", sql::INSERT_LEDGER, self.ledger.columns()),
            insert(link, "write the outbox", sql::INSERT_OUTBOX, self.outbox.columns()),
            insert(link, "move the outbox on", sql::UPDATE_OUTBOX, self.outbox_moved.columns()),
            insert(link, "write the attempts", sql::INSERT_ATTEMPTS, self.attempts.columns()),
            insert(link, "write the answers", sql::INSERT_ANSWERS, self.answers.columns()),
            insert(link, "write payments", sql::PUT_PAYMENTS, self.payments.columns()),
        )?;
        let w = written;
        let all = [w.0, w.1, w.2, w.3, w.4, w.5, w.6, w.7, w.8];
        match all.iter().all(|written| *written == Written::All) {
            true => Ok(()),
            false => Err(Trouble::Overtaken(StorageFailure::Database {
                action: "write a group",
                source: "another session wrote the same claim, or used the same attempt id, meanwhile".into(),
            })),
        }
    }
}

impl Forgotten {
    async fn write(&self, link: &Link) -> Result<(), Trouble> {
        if self.attempt.is_empty() {
            return Ok(());
        }
        let action = "forget refusals";
        link.rows(action, sql::LOCK_ATTEMPTS, &[&self.attempt]).await?;
        link.write(action, sql::FORGET_ANSWERS, &[&self.attempt, &self.token])
            .await?;
        link.write(action, sql::FORGET_ATTEMPTS, &[&self.attempt]).await?;
        Ok(())
    }
}

/// Whether every row found its place.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    All,
    Fewer,
}

/// Runs a statement over columns, where there is anything to write.
async fn insert<const N: usize>(
    link: &Link,
    action: &'static str,
    statement: &'static str,
    columns: Columns<'_, N>,
) -> Result<Written, Trouble> {
    if columns.rows == 0 {
        return Ok(Written::All);
    }
    let written = link.write(action, statement, &columns.params).await?;
    Ok(match usize::try_from(written) == Ok(columns.rows) {
        true => Written::All,
        false => Written::Fewer,
    })
}

/// The columns of a table as a statement's parameters.
struct Columns<'a, const N: usize> {
    rows: usize,
    params: [&'a (dyn ToSql + Sync); N],
}

impl Fences {
    fn columns(&self) -> Columns<'_, 5> {
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
}

impl Claims {
    fn columns(&self) -> Columns<'_, 10> {
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
}

impl Ledger {
    fn columns(&self) -> Columns<'_, 6> {
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
}

impl Reversals {
    fn columns(&self) -> Columns<'_, 6> {
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
}

impl Outbox {
    fn columns(&self) -> Columns<'_, 15> {
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
}

impl Payments {
    fn columns(&self) -> Columns<'_, 13> {
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
}

impl Attempts {
    fn columns(&self) -> Columns<'_, 6> {
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
}

impl Answers {
    fn columns(&self) -> Columns<'_, 7> {
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
}

impl Fences {
    fn push(&mut self, key: &[u8], row: FenceRow) -> Result<(), StorageFailure> {
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

impl Answers {
    fn push(&mut self, attempt: String, token: i64, row: &AttemptRow) {
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

fn decode<T: Record>(key: &[u8], value: &[u8]) -> Result<T, StorageFailure> {
    codec::decode(value).map_err(|error| corrupt(T::NAME, key.escape_ascii(), error))
}

impl Outbox {
    fn push(&mut self, id: ClaimId, row: OutboxRow) {
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
        self.part.push(super::part_of(PlayerId::new(row.player)));
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

impl Payments {
    fn push(&mut self, key: &[u8], row: PaymentRow) -> Result<(), StorageFailure> {
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

fn bad_key(key: &[u8]) -> StorageFailure {
    corrupt("written", key.escape_ascii(), "its key is not of its kind")
}

/// A time that a column holds.
fn clamped(at_ms: u64) -> i64 {
    millis(crate::types::UnixMillis::new(at_ms))
}
