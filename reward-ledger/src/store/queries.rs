//! Claims and outbox rows, found by what people know of them; a bounded page at a time, going on from a key.

use super::outbox_records::{OutboxRow, SubjectRow};
use super::records::LedgerRow;
use super::rows::{Row, Rows};
use super::transaction::{corrupt, decode, join_delivery, join_record, read, read_receipt};
use super::{ClaimRecord, Cursor, Deliveries, OutboxQuery, Query, Records, keys};
use crate::error::StorageFailure;
use crate::types::ClaimId;

/// The next claims of a query. A page may be short, or empty, and not be the last.
pub(crate) fn find(
    rows: &dyn Rows,
    query: &Query,
    after: Option<&Cursor>,
    rows_max: usize,
) -> Result<Records, StorageFailure> {
    let prefix = match query {
        Query::All => keys::OUTBOX.to_vec(),
        Query::Player(player) => keys::ledger_of(*player),
        Query::Event(event) => keys::by_event(event),
        Query::Resource(resource) => keys::by_token(resource, None),
        Query::Token(fence) => keys::by_token(&fence.resource, Some(fence.token)),
        Query::Time { .. } => keys::BY_TIME.to_vec(),
    };
    let start = match query {
        Query::Time { from, .. } => Some(keys::by_time(*from)),
        Query::All | Query::Player(_) | Query::Event(_) | Query::Resource(_) | Query::Token(_) => None,
    };
    // A cursor of another query must not lead out of this one's rows.
    let after = after
        .map(Cursor::as_bytes)
        .filter(|key| key.starts_with(&prefix))
        .map(<[u8]>::to_vec)
        .max(start);
    let found = rows.scan(&prefix, after.as_deref(), rows_max)?;
    let mut next = match found.last() {
        Some((key, _)) if found.len() == rows_max => Some(Cursor::from_bytes(key)),
        Some(_) | None => None,
    };
    let mut records = Vec::with_capacity(found.len());
    for row in &found {
        if let Query::Time { to, .. } = query
            && row.0.as_slice() >= keys::by_time(to.next()).as_slice()
        {
            next = None;
            break;
        }
        if is_of_a_claim(query, row)? {
            records.push(record(rows, &row.0)?);
        }
    }
    Ok(Records { records, next })
}

/// Whether a row stands for a claim; ledger and outbox hold rows of reversals as well.
fn is_of_a_claim(query: &Query, (key, value): &Row) -> Result<bool, StorageFailure> {
    Ok(match query {
        Query::All => decode::<OutboxRow>(key, value)?.subject == SubjectRow::Grant,
        Query::Player(_) => decode::<LedgerRow>(key, value)?.amount > 0,
        Query::Event(_) | Query::Resource(_) | Query::Token(_) | Query::Time { .. } => true,
    })
}

/// The claim whose number a key ends with.
fn record(rows: &dyn Rows, key: &[u8]) -> Result<ClaimRecord, StorageFailure> {
    let missing = || corrupt("list of claims", key, "its claim is not there");
    let id = keys::read_number(key).ok_or_else(missing)?;
    let outbox: OutboxRow = read(rows, &keys::outbox(id))?.ok_or_else(missing)?;
    let event = outbox.event().map_err(|source| corrupt("outbox", key, source))?;
    let receipt = read_receipt(rows, outbox.player(), &event)?.ok_or_else(missing)?;
    join_record(rows, receipt)
}

/// The next outbox rows of a query.
pub(crate) fn deliveries(
    rows: &dyn Rows,
    query: OutboxQuery,
    after: Option<ClaimId>,
    rows_max: usize,
) -> Result<Deliveries, StorageFailure> {
    let prefix = match query {
        OutboxQuery::All => keys::OUTBOX.to_vec(),
        OutboxQuery::Dead => keys::DEAD.to_vec(),
        OutboxQuery::OpenOf(player) => keys::open_of(player),
    };
    let after = after.map(|id| [prefix.as_slice(), &id.get().to_be_bytes()].concat());
    let found = rows.scan(&prefix, after.as_deref(), rows_max)?;
    let mut deliveries = Vec::with_capacity(found.len());
    for (key, _) in &found {
        let missing = || corrupt("list of outbox rows", key, "its row is not there");
        let id = keys::read_number(key).ok_or_else(missing)?;
        let row: OutboxRow = read(rows, &keys::outbox(id))?.ok_or_else(missing)?;
        deliveries.push(join_delivery(rows, id, &row)?);
    }
    let next = match deliveries.last() {
        Some(last) if found.len() == rows_max => Some(last.id),
        Some(_) | None => None,
    };
    Ok(Deliveries { deliveries, next })
}
