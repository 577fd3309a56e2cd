//! Pages of rows for an audit, each row joined with what it should match.

use super::codec::{self, Record};
use super::outbox_records::{OutboxRow, StateRow, SubjectRow};
use super::records::{AttemptRow, LedgerRow};
use super::rows::Rows;
use super::transaction::{
    join_delivery, read, read_fence_state, read_payment, read_payments, read_receipt, read_reversal,
};
use super::{
    AttemptEntry, AttemptStanding, ClaimEntry, Cursor, Entry, LedgerEntry, LedgerLine, Listing, OutboxEntry,
    Page, PaymentEntry, ReversalEntry, Table, keys,
};
use crate::error::StorageFailure;
use crate::event_id::RewardEventId;
use crate::types::{Authority, ClaimId, PlayerId, Receipt};

/// The next page of a table, of at most `rows_max` rows. Rows that do not read back are entries, too: an audit names them and goes on.
pub(crate) fn page(
    rows: &dyn Rows,
    table: Table,
    after: Option<&Cursor>,
    rows_max: usize,
) -> Result<Page, StorageFailure> {
    let prefix = match table {
        Table::Claims => keys::CLAIMS,
        Table::Ledger => keys::LEDGER,
        Table::Outbox => keys::OUTBOX,
        Table::Attempts => keys::ATTEMPTS,
        Table::Payments => keys::PAYMENTS,
    };
    let found = rows.scan(prefix, after.map(|cursor| cursor.0.as_slice()), rows_max)?;
    let next = match found.last() {
        Some((key, _)) if found.len() == rows_max => Some(Cursor(key.clone())),
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
            StorageFailure::Files { .. }
            | StorageFailure::Database { .. }
            | StorageFailure::UnsafeSetting { .. }
            | StorageFailure::WriterDied => Self::Storage(failure),
        }
    }
}

fn entry(rows: &dyn Rows, table: Table, key: &[u8], value: &[u8]) -> Result<Entry, StorageFailure> {
    let entry = match table {
        Table::Claims => claim(rows, key, value),
        Table::Ledger => ledger(rows, key, value),
        Table::Outbox => outbox(rows, key, value),
        Table::Attempts => attempt(rows, key, value),
        Table::Payments => payment(rows, key),
    };
    match entry {
        Ok(entry) => Ok(entry),
        Err(Problem::Row(problem)) => Ok(Entry::Unreadable { table, problem }),
        Err(Problem::Storage(failure)) => Err(failure),
    }
}

fn claim(rows: &dyn Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let (player, event) = keys::read_claim(key).ok_or_else(|| bad_key(key))?;
    let receipt = Receipt::from_bytes(value).map_err(|error| bad_value(key, &error))?;
    let ledger = read::<LedgerRow>(rows, &keys::ledger(receipt.player(), receipt.claim_id()))?;
    let outbox = read::<OutboxRow>(rows, &keys::outbox(receipt.claim_id()))?;
    let fence = match receipt.authority() {
        Authority::Fenced(fence) => read_fence_state(rows, &fence.resource)?,
        Authority::Unfenced => None,
    };
    let reversal = match read_reversal(rows, receipt.claim_id())? {
        Some(reversal) => Some(ReversalEntry {
            ledger: read::<LedgerRow>(rows, &keys::ledger(reversal.player, reversal.id))?.map(line),
            outbox: read::<OutboxRow>(rows, &keys::outbox(reversal.id))?.map(|row| row.claim_id(reversal.id)),
            reversal,
        }),
        None => None,
    };
    Ok(Entry::Claim(ClaimEntry {
        player,
        event,
        reversal,
        receipt,
        ledger: ledger.map(line),
        outbox: outbox.map(|row| (PlayerId::new(row.player), row.event)),
        fence,
    }))
}

fn ledger(rows: &dyn Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let (player, claim_id) = keys::read_ledger(key).ok_or_else(|| bad_key(key))?;
    let row: LedgerRow = decode(key, value)?;
    let event = RewardEventId::stored(&row.event).map_err(|error| bad_value(key, &error))?;
    let claim = read_receipt(rows, player, &event)?;
    let reversal = match &claim {
        Some(claim) => read_reversal(rows, claim.claim_id())?,
        None => None,
    };
    Ok(Entry::Ledger(LedgerEntry {
        player,
        claim_id,
        claim,
        reversed_by: reversal.map(|reversal| reversal.id),
        line: line(row),
    }))
}

fn outbox(rows: &dyn Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
    let id = keys::read_outbox(key).ok_or_else(|| bad_key(key))?;
    let row: OutboxRow = decode(key, value)?;
    let about = row.claim_id(id);
    let event = row.event().map_err(|error| bad_value(key, &error))?;
    let claim = read_receipt(rows, row.player(), &event)?;
    let is_there = claim.is_some_and(|claim| claim.claim_id() == about)
        && match row.subject {
            SubjectRow::Grant => true,
            SubjectRow::Reversal { .. } => {
                read_reversal(rows, about)?.is_some_and(|reversal| reversal.id == id)
            }
        };
    let delivery = if is_there {
        Some(join_delivery(rows, id, &row)?)
    } else {
        None
    };
    Ok(Entry::Outbox(OutboxEntry {
        id,
        player: row.player(),
        about,
        delivery,
        listing: listing(rows, id, &row)?,
        event: row.event,
    }))
}

/// Whether the row stands in the lists that its state puts it in, and in no other.
fn listing(rows: &dyn Rows, id: ClaimId, row: &OutboxRow) -> Result<Listing, Problem> {
    let player = row.player();
    let open = rows.get(&keys::open(player, id))?.is_some();
    let dead = rows.get(&keys::dead(id))?.is_some();
    let is_dead = matches!(row.state, StateRow::Dead { .. });
    if open != row.due().is_some() || dead != is_dead {
        return Ok(Listing::Wrong);
    }
    let is_first = open
        && rows
            .scan(&keys::open_of(player), None, 1)?
            .first()
            .is_some_and(|(key, _)| *key == keys::open(player, id));
    let is_found = match row.due() {
        Some(due) if is_first => rows.get(&keys::head(player, due))?.is_some(),
        Some(_) | None => true,
    };
    Ok(if is_found { Listing::Right } else { Listing::Wrong })
}

fn payment(rows: &dyn Rows, key: &[u8]) -> Result<Entry, Problem> {
    let attempt = keys::read_payment(key).ok_or_else(|| bad_key(key))?;
    let attempt = read_payment(rows, &attempt)?.ok_or_else(|| bad_key(key))?;
    let active = read_payments(rows, &attempt.order)?
        .iter()
        .filter(|attempt| attempt.is_active())
        .count();
    Ok(Entry::Payment(Box::new(PaymentEntry { attempt, active })))
}

fn attempt(rows: &dyn Rows, key: &[u8], value: &[u8]) -> Result<Entry, Problem> {
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
