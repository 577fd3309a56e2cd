//! Reading rows back as what they mean.

use lease_core::LeaseName;

use crate::error::{Cause, StorageFailure};
use crate::event_id::RewardEventId;
use crate::store::codec::{self, Record};
use crate::store::outbox_records::{OutboxRow, ReversalRow, SubjectRow};
use crate::store::records::{FenceRow, HeadRow, InvalidRow};
use crate::store::rows::Rows;
use crate::store::{ClaimRecord, keys};
use crate::types::{ClaimId, Delivery, FenceState, PlayerId, Receipt, Reversal};

/// Where the ledger stands.
pub(crate) fn read_head(rows: &dyn Rows) -> Result<HeadRow, StorageFailure> {
    Ok(read(rows, keys::HEAD)?.unwrap_or_default())
}

/// The receipt of a player's event.
pub(crate) fn read_receipt(
    rows: &dyn Rows,
    player: PlayerId,
    event: &RewardEventId,
) -> Result<Option<Receipt>, StorageFailure> {
    let key = keys::claim(player, event);
    rows.get(&key)?
        .map(|value| Receipt::from_bytes(value).map_err(|source| corrupt("claim", &key, source)))
        .transpose()
}

/// What is known of a resource's tokens.
pub(crate) fn read_fence_state(
    rows: &dyn Rows,
    resource: &LeaseName,
) -> Result<Option<FenceState>, StorageFailure> {
    read_fence(rows, resource)?
        .map(|row| fence_state(resource, &row))
        .transpose()
}

pub(crate) fn fence_state(resource: &LeaseName, row: &FenceRow) -> Result<FenceState, StorageFailure> {
    row.state()
        .map_err(|source| corrupt(FenceRow::NAME, &keys::fence(resource), source))
}

pub(crate) fn read_fence(rows: &dyn Rows, resource: &LeaseName) -> Result<Option<FenceRow>, StorageFailure> {
    read(rows, &keys::fence(resource))
}

/// A row by its key.
pub(crate) fn read<T: Record>(rows: &dyn Rows, key: &[u8]) -> Result<Option<T>, StorageFailure> {
    rows.get(key)?.map(|value| decode(key, &value)).transpose()
}

pub(crate) fn decode<T: Record>(key: &[u8], value: &[u8]) -> Result<T, StorageFailure> {
    codec::decode(value).map_err(|source| corrupt(T::NAME, key, source))
}

pub(crate) fn corrupt(record: &'static str, key: &[u8], source: impl Into<Cause>) -> StorageFailure {
    StorageFailure::CorruptRow {
        record,
        key: key.escape_ascii().to_string(),
        source: source.into(),
    }
}

/// The reversal of a claim.
pub(crate) fn read_reversal(rows: &dyn Rows, claim_id: ClaimId) -> Result<Option<Reversal>, StorageFailure> {
    let key = keys::reversal(claim_id);
    read::<ReversalRow>(rows, &key)?
        .map(|row| {
            row.reversal(claim_id)
                .map_err(|source| corrupt(ReversalRow::NAME, &key, source))
        })
        .transpose()
}

/// An outbox row with what it is about.
pub(crate) fn join_delivery(
    rows: &dyn Rows,
    id: ClaimId,
    row: &OutboxRow,
) -> Result<Delivery, StorageFailure> {
    let key = keys::outbox(id);
    let bad = |source: InvalidRow| corrupt(OutboxRow::NAME, &key, source);
    let event = row.event().map_err(bad)?;
    let receipt = read_receipt(rows, row.player(), &event)?.ok_or_else(|| bad(InvalidRow::ClaimMissing))?;
    let reversal = match row.subject {
        SubjectRow::Grant => None,
        SubjectRow::Reversal { claim_id } => {
            let reversal = read_reversal(rows, ClaimId::new(claim_id))?;
            Some(reversal.ok_or_else(|| bad(InvalidRow::ClaimMissing))?)
        }
    };
    Ok(Delivery::new(id, receipt, reversal, row.progress()))
}

/// A claim with what became of it.
pub(crate) fn join_record(rows: &dyn Rows, receipt: Receipt) -> Result<ClaimRecord, StorageFailure> {
    let claim_id = receipt.claim_id();
    let key = keys::outbox(claim_id);
    let row: OutboxRow = read(rows, &key)?
        .ok_or_else(|| corrupt(OutboxRow::NAME, &key, "it is missing, and its claim is there"))?;
    Ok(ClaimRecord::new(
        receipt,
        row.progress(),
        read_reversal(rows, claim_id)?,
    ))
}
