//! One transaction over ordered rows: read the view, ask the core, lay the writes over the rows.
//!
//! Applying the writes as one, and making them durable, is the store's own business.

mod archive;
mod claims;
mod outbox;
mod payments;
mod read;

pub(crate) use archive::archive;
pub(crate) use payments::{read_payment, read_payments};
use read::read_fence;
pub(crate) use read::{
    corrupt, decode, join_delivery, join_record, read, read_fence_state, read_head, read_receipt,
    read_reversal,
};

use super::codec::{self, Record};
use super::records::{FenceRow, HeadRow, ResetRow};
use super::rows::{Overlay, Rows, Writes};
use super::{ResetRequest, Standing, keys};
use crate::core::Protections;
use crate::error::StorageFailure;
use crate::limits::PRUNE_ROWS_MAX;
use crate::types::{ClaimId, FenceState, UnixMillis};

/// A transaction in the making; it may answer many requests, each on top of the ones before it.
pub(crate) struct Transaction<'a> {
    rows: Overlay<'a>,
    head: HeadRow,
    protections: Protections,
    /// Refusals from before this were looked for already.
    forgotten: Option<UnixMillis>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn begin(rows: &'a dyn Rows, protections: Protections) -> Result<Self, StorageFailure> {
        Ok(Self {
            head: read_head(rows)?,
            rows: Overlay::new(rows),
            protections,
            forgotten: None,
        })
    }

    /// The rows with this transaction's writes.
    pub(crate) const fn rows(&self) -> &Overlay<'a> {
        &self.rows
    }

    /// How far the ledger has come, this transaction included.
    pub(crate) const fn standing(&self) -> Standing {
        Standing {
            last: ClaimId::new(self.head.last_claim),
            outbox_open: self.head.outbox_open,
            outbox_dead: self.head.outbox_dead,
        }
    }

    /// What is to be written, if anything is, and the number of the commit that writes it.
    pub(crate) fn finish(mut self) -> Result<Option<(Writes, u64)>, StorageFailure> {
        if self.rows.is_clean() {
            return Ok(None);
        }
        self.head.commits = self.head.commits.saturating_add(1);
        let commit = self.head.commits;
        let head = self.head;
        self.put(keys::HEAD.to_vec(), &head)?;
        Ok(Some((self.rows.into_writes(), commit)))
    }

    /// Does `work` on top of what was done; what it wrote counts only if its answer is good.
    fn all_or_nothing<T, N>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<Result<T, N>, StorageFailure>,
    ) -> Result<Result<T, N>, StorageFailure> {
        let mut inner = Transaction {
            rows: Overlay::new(&self.rows),
            head: self.head,
            protections: self.protections,
            forgotten: self.forgotten,
        };
        let answer = work(&mut inner)?;
        if answer.is_ok() {
            let head = inner.head;
            let writes = inner.rows.into_writes();
            self.head = head;
            self.rows.absorb(writes);
        }
        Ok(answer)
    }

    /// Sets a fence as an operator says.
    pub(crate) fn reset_fence(&mut self, request: &ResetRequest) -> Result<FenceState, StorageFailure> {
        let before = read_fence(&self.rows, &request.resource)?;
        let row = FenceRow {
            token: request.to.map_or(0, |token| token.get()),
            last_reset: Some(ResetRow {
                from: before.map_or(0, |row| row.token),
                at_ms: request.at.get(),
                reason: request.reason.to_string(),
            }),
        };
        let key = keys::fence(&request.resource);
        self.put(key.clone(), &row)?;
        row.state()
            .map_err(|source| corrupt(FenceRow::NAME, &key, source))
    }

    /// Forgets refused attempts from before `before`; a bounded number, so a backlog goes over several calls.
    pub(crate) fn forget_refusals(&mut self, before: UnixMillis) -> Result<(), StorageFailure> {
        if self.forgotten.is_some_and(|done| done >= before) {
            return Ok(());
        }
        self.forgotten = Some(before);
        if !self.refusal_is_due(before)? {
            return Ok(());
        }
        for (key, _) in self.rows.scan(keys::REFUSALS, None, PRUNE_ROWS_MAX)? {
            let (at, attempt, token) = keys::read_refusal(&key)
                .ok_or_else(|| corrupt("refusal", &key, "its key is not that of a refusal"))?;
            if at >= before {
                break;
            }
            self.rows.remove(keys::attempt(&attempt, token));
            self.rows.remove(key);
        }
        Ok(())
    }

    fn refusal_is_due(&self, before: UnixMillis) -> Result<bool, StorageFailure> {
        let oldest = self.rows.scan(keys::REFUSALS, None, 1)?;
        Ok(oldest
            .first()
            .and_then(|(key, _)| keys::read_refusal(key))
            .is_some_and(|(at, ..)| at < before))
    }

    fn put<T: Record>(&mut self, key: Vec<u8>, record: &T) -> Result<(), StorageFailure> {
        let value = codec::encode(record).map_err(|source| StorageFailure::Files {
            action: "encode a row",
            source: source.into(),
        })?;
        self.rows.put(key, value);
        Ok(())
    }
}
