//! Pages of rows for an audit, each row joined with what it should match.

use super::codec::{self, Record};
use super::records::{AttemptRow, LedgerRow, OutboxRow};
use super::rows::Rows;
use super::transaction::{read, read_fence_state, read_receipt};
use super::{
    AttemptEntry, AttemptStanding, ClaimEntry, Cursor, Entry, LedgerEntry, LedgerLine, OutboxEntry, Page,
    Table, keys,
};
use crate::error::StorageFailure;
use crate::event_id::RewardEventId;
use crate::limits::PAGE_ROWS_MAX;
use crate::types::{Authority, PlayerId, Receipt};

/// The next page of a table. Rows that do not read back are entries, too: an audit names them and goes on.
pub(crate) fn page(rows: &impl Rows, table: Table, after: Option<&Cursor>) -> Result<Page, StorageFailure> {
    let prefix = match table {
        Table::Claims => keys::CLAIMS,
        Table::Ledger => keys::LEDGER,
        Table::Outbox => keys::OUTBOX,
        Table::Attempts => keys::ATTEMPTS,
    };
    let found = rows.scan(prefix, after.map(|cursor| cursor.0.as_slice()), PAGE_ROWS_MAX)?;
    let next = match found.last() {
        Some((key, _)) if found.len() == PAGE_ROWS_MAX => Some(Cursor(key.clone())),
        Some(_) | None => None,
    };
    let entries = found
        .iter()
        .map(|(key, value)| entry(rows, table, key, value))
        .collect::<Result<_, _>>()?;
    Ok(Page { entries, next })
}

/// A problem of the row itself, as against one of reading at all.
enum Problem {
    Row(String),
    Storage(StorageFailure),
}

impl From<StorageFailure> for Problem {
    fn from(failure: StorageFailure) -> Self {
        match failure {
            StorageFailure::CorruptRow { .. } => Self::Row(failure.to_string()),
            StorageFailure::Files { .. } | StorageFailure::WriterDied => Self::Storage(failure),
        }
    }
}

fn entry(rows: &impl Rows, table: Table, key: &[u8], value: &[u8]) -> Result<Entry, StorageFailure> {
    let entry = match table {
        Table::Claims => claim(rows, key, value),
        Table::Ledger => ledger(rows, key, value),
        Table::Outbox => outbox(rows, key, value),
        Table::Attempts => attempt(rows, key, value),
    };
    match entry {
        Ok(entry) => Ok(entry),
        Err(Problem::Row(problem)) => Ok(Entry::Unreadable { table, problem }),
        Err(Problem::Storage(failure)) => Err(failure),
    }
}

fn claim(rows: &impl Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let (player, event) = keys::read_claim(key).ok_or_else(|| bad_key(key))?;
    let receipt = Receipt::from_bytes(value).map_err(|error| bad_value(key, &error))?;
    let ledger = read::<LedgerRow>(rows, &keys::ledger(receipt.player(), receipt.claim_id()))?;
    let outbox = read::<OutboxRow>(rows, &keys::outbox(receipt.claim_id()))?;
    let fence = match receipt.authority() {
        Authority::Fenced(fence) => read_fence_state(rows, &fence.resource)?,
        Authority::Unfenced => None,
    };
    Ok(Entry::Claim(ClaimEntry {
        player,
        event,
        receipt,
        ledger: ledger.map(line),
        outbox: outbox.map(|row| (PlayerId::new(row.player), row.event)),
        fence,
    }))
}

fn ledger(rows: &impl Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let (player, claim_id) = keys::read_ledger(key).ok_or_else(|| bad_key(key))?;
    let row: LedgerRow = decode(key, value)?;
    let event = RewardEventId::stored(&row.event).map_err(|error| bad_value(key, &error))?;
    Ok(Entry::Ledger(LedgerEntry {
        player,
        claim_id,
        claim: read_receipt(rows, player, &event)?,
        line: line(row),
    }))
}

fn outbox(rows: &impl Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let claim_id = keys::read_outbox(key).ok_or_else(|| bad_key(key))?;
    let row: OutboxRow = decode(key, value)?;
    let event = RewardEventId::stored(&row.event).map_err(|error| bad_value(key, &error))?;
    let player = PlayerId::new(row.player);
    Ok(Entry::Outbox(OutboxEntry {
        claim_id,
        player,
        claim: read_receipt(rows, player, &event)?,
        event: row.event,
    }))
}

fn attempt(rows: &impl Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let (attempt, _) = keys::read_attempt(key).ok_or_else(|| bad_key(key))?;
    let row: AttemptRow = decode(key, value)?;
    let body = row.body().map_err(|error| bad_value(key, &error))?;
    let standing = if row.is_refusal() {
        AttemptStanding::Refused
    } else {
        AttemptStanding::Accepted
    };
    Ok(Entry::Attempt(AttemptEntry {
        attempt,
        claim: read_receipt(rows, body.player, &body.event)?,
        body,
        standing,
    }))
}

fn line(row: LedgerRow) -> LedgerLine {
    LedgerLine {
        event: row.event,
        item: row.item,
        amount: row.amount,
    }
}

fn decode<T: Record>(key: &[u8], value: &[u8]) -> Result<T, Problem> {
    codec::decode(value).map_err(|error| bad_value(key, &error))
}

fn bad_key(key: &[u8]) -> Problem {
    Problem::Row(format!("the key {} is of no known form", key.escape_ascii()))
}

fn bad_value(key: &[u8], error: &dyn std::error::Error) -> Problem {
    let mut text = format!("the row {} does not read back: {error}", key.escape_ascii());
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    Problem::Row(text)
}
