//! The writes of a transaction by table, and their way into the tables.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::{
    Answers, Attempts, Claims, Columns, Fences, Ledger, Outbox, OutboxMoves, Payments, Reversals, bad_key,
    clamped,
};
use super::fetch::corrupt;
use super::link::Link;
use super::rows::LoadedRows;
use super::statements as sql;
use super::trouble::Trouble;
use super::{millis, signed};
use crate::error::StorageFailure;
use crate::store::codec::{self, Record};
use crate::store::keys;
use crate::store::outbox_records::{OutboxRow, ReversalRow};
use crate::store::records::{AttemptRow, LedgerRow};
use crate::store::rows::{Rows as _, Writes};
use crate::types::{AttemptId, ClaimId, Receipt};

/// All writes of one group.
#[derive(Debug, Default)]
pub(super) struct Changes {
    fences: Fences,
    claims: Claims,
    reversals: Reversals,
    ledger: Ledger,
    outbox: Outbox,
    outbox_moved: OutboxMoves,
    attempts: Attempts,
    answers: Answers,
    payments: Payments,
    forgotten: Forgotten,
    /// When each claim and reversal of this group was made.
    made_at: BTreeMap<ClaimId, i64>,
}

/// Answers that go.
#[derive(Debug, Default)]
struct Forgotten {
    attempt: Vec<String>,
    token: Vec<i64>,
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
        self.claims.push(&receipt, at_ms, value);
        Ok(())
    }

    fn reversal(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageFailure> {
        let row: ReversalRow = decode(key, value)?;
        let claim_id = keys::read_number(key).ok_or_else(|| bad_key(key))?;
        let at_ms = clamped(row.at_ms);
        self.made_at.insert(ClaimId::new(row.id), at_ms);
        self.reversals.push(claim_id, at_ms, row);
        Ok(())
    }

    fn ledger_row(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageFailure> {
        let row: LedgerRow = decode(key, value)?;
        let (player, id) = keys::read_ledger(key).ok_or_else(|| bad_key(key))?;
        let at_ms = self.made_at.get(&id).copied().unwrap_or_default();
        self.ledger.push(id, player, at_ms, row);
        Ok(())
    }

    fn outbox_row(&mut self, key: &[u8], value: &[u8], rows: &LoadedRows) -> Result<(), StorageFailure> {
        let row: OutboxRow = decode(key, value)?;
        let id = keys::read_outbox(key).ok_or_else(|| bad_key(key))?;
        match rows.get(key)? {
            Some(before) => self.outbox_moved.push(id, &decode(key, &before)?, row),
            None => self.outbox.push(id, row),
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
            self.attempts.push(&attempt, row);
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
                source: "another session wrote the same claim, used the same attempt id, or leased the same outbox row meanwhile".into(),
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

fn decode<T: Record>(key: &[u8], value: &[u8]) -> Result<T, StorageFailure> {
    codec::decode(value).map_err(|error| corrupt(T::NAME, key.escape_ascii(), error))
}
