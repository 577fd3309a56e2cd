//! The outbox: its rows, and the lists by which publishers and people find them.
//!
//! A player with open rows stands once in its partition's list of heads, under the time at which its first open row is due.
//! So one player whose row is refused again and again never hides another.

use super::Transaction;
use super::read::{corrupt, join_delivery, read, read_fence};
use crate::core::delivery;
use crate::error::StorageFailure;
use crate::limits::LEASED_ROWS_OF_PLAYER_MAX;
use crate::store::codec::Record;
use crate::store::outbox_records::{OutboxRow, StateRow};
use crate::store::rows::Rows;
use crate::store::{AmendRequest, Amended, Amendment, LeaseRequest, LeasedRows, SettleRequest, Share, keys};
use crate::types::{ClaimId, Delivery, PlayerId, Settled, UnixMillis};

impl Transaction<'_> {
    /// Leases due rows: to each partition its part of the batch, then what is left to whoever has more.
    pub(crate) fn lease_outbox(&mut self, request: &LeaseRequest) -> Result<LeasedRows, StorageFailure> {
        let mut leased = LeasedRows::default();
        let mut shares = Vec::with_capacity(request.shares.len());
        for share in &request.shares {
            if self.pass_guard(share)? {
                shares.push(share);
            } else {
                leased.lost.push(share.partition);
            }
        }
        let part = request.rows_max.div_ceil(shares.len().max(1));
        for rows_max in [part, request.rows_max] {
            for share in &shares {
                let left = request.rows_max.saturating_sub(leased.deliveries.len());
                self.lease_share(share, request, rows_max.min(left), &mut leased.deliveries)?;
            }
        }
        leased.deliveries.sort_by_key(|delivery| delivery.id);
        Ok(leased)
    }

    /// Whether the publisher's lease on the partition is the newest that the ledger knows.
    fn pass_guard(&mut self, share: &Share) -> Result<bool, StorageFailure> {
        let Some(guard) = &share.guard else {
            return Ok(true);
        };
        let seen = read_fence(&self.rows, &guard.resource)?.map_or(0, |row| row.token);
        if guard.token.get() < seen {
            return Ok(false);
        }
        if guard.token.get() > seen {
            self.raise_fence(guard)?;
        }
        Ok(true)
    }

    fn lease_share(
        &mut self,
        share: &Share,
        request: &LeaseRequest,
        rows_max: usize,
        leased: &mut Vec<Delivery>,
    ) -> Result<(), StorageFailure> {
        let enough = leased.len().saturating_add(rows_max);
        for (key, _) in self.rows.scan(&keys::heads_of(share.partition), None, rows_max)? {
            let (due, player) = keys::read_head(&key)
                .ok_or_else(|| corrupt("head of a player", &key, "its key is not that of a head"))?;
            if due > request.at || leased.len() >= enough {
                break;
            }
            let left = enough.saturating_sub(leased.len());
            self.lease_player(player, request, left, leased)?;
        }
        Ok(())
    }

    fn lease_player(
        &mut self,
        player: PlayerId,
        request: &LeaseRequest,
        rows_max: usize,
        leased: &mut Vec<Delivery>,
    ) -> Result<(), StorageFailure> {
        let rows_max = rows_max.min(LEASED_ROWS_OF_PLAYER_MAX);
        for (key, _) in self.rows.scan(&keys::open_of(player), None, rows_max)? {
            let id = listed(&key)?;
            let row = self.outbox_row(id)?;
            let Some(progress) = delivery::lease(&row.progress(), &request.owner, request.at, request.until)
            else {
                break;
            };
            let next = row.with(&progress);
            leased.push(join_delivery(&self.rows, id, &next)?);
            self.change_outbox(id, &row, &next)?;
        }
        Ok(())
    }

    /// Writes verdicts, each if its epoch is still that of the row.
    pub(crate) fn settle_outbox(&mut self, request: &SettleRequest) -> Result<Vec<Settled>, StorageFailure> {
        let mut answers = Vec::with_capacity(request.settlements.len());
        for settlement in &request.settlements {
            let Some(row) = read::<OutboxRow>(&self.rows, &keys::outbox(settlement.id))? else {
                answers.push(Settled::Missing);
                continue;
            };
            let progress = row.progress();
            let next = delivery::settle(&progress, settlement.epoch, &settlement.verdict, request.at);
            let Some(next) = next else {
                answers.push(Settled::Superseded);
                continue;
            };
            self.change_outbox(settlement.id, &row, &row.with(&next))?;
            answers.push(Settled::Done);
        }
        Ok(answers)
    }

    /// Does what a person says about a row.
    pub(crate) fn amend_outbox(&mut self, request: &AmendRequest) -> Result<Amended, StorageFailure> {
        let Some(row) = read::<OutboxRow>(&self.rows, &keys::outbox(request.id))? else {
            return Ok(Amended::NotFound);
        };
        let progress = row.progress();
        let next = match &request.amendment {
            Amendment::Retry => delivery::retry(&progress, request.at, self.first_due(row.player())?),
            Amendment::Discard(reason) => delivery::discard(&progress, reason, request.at),
        };
        let Some(next) = next else {
            return Ok(Amended::Refused(join_delivery(&self.rows, request.id, &row)?));
        };
        if matches!(request.amendment, Amendment::Retry) && self.is_taken_back_outside(request.id, &row)? {
            return Ok(Amended::TakenBack(join_delivery(&self.rows, request.id, &row)?));
        }
        let next = row.with(&next);
        self.change_outbox(request.id, &row, &next)?;
        Ok(Amended::Done(join_delivery(&self.rows, request.id, &next)?))
    }

    /// Whether the row grants what the outside may have been told to take back. Granted now, it would stand.
    fn is_taken_back_outside(&self, id: ClaimId, row: &OutboxRow) -> Result<bool, StorageFailure> {
        let claim = row.claim_id(id);
        if claim != id {
            return Ok(false);
        }
        let Some(reversal) = self.reversal_of(claim)? else {
            return Ok(false);
        };
        Ok(delivery::may_be_done(&self.outbox_row(reversal.id)?.progress()))
    }

    /// A new row. Where it is the player's highest, as all but restored ones are, its place is behind the others.
    pub(super) fn insert_outbox(&mut self, id: ClaimId, row: &OutboxRow) -> Result<(), StorageFailure> {
        self.relist(row.player(), |transaction| transaction.put_outbox(id, None, row))
    }

    /// A row that moves on.
    fn change_outbox(
        &mut self,
        id: ClaimId,
        before: &OutboxRow,
        row: &OutboxRow,
    ) -> Result<(), StorageFailure> {
        self.relist(row.player(), |transaction| {
            transaction.put_outbox(id, Some(before), row)
        })
    }

    /// Makes a change to a player's rows, and moves the player in the list of heads.
    fn relist(
        &mut self,
        player: PlayerId,
        change: impl FnOnce(&mut Self) -> Result<(), StorageFailure>,
    ) -> Result<(), StorageFailure> {
        let before = self.first_due(player)?;
        change(self)?;
        let after = self.first_due(player)?;
        if before != after {
            if let Some(due) = before {
                self.rows.remove(keys::head(player, due));
            }
            if let Some(due) = after {
                self.rows.put(keys::head(player, due), Vec::new());
            }
        }
        Ok(())
    }

    /// When the first open row of a player is due.
    fn first_due(&self, player: PlayerId) -> Result<Option<UnixMillis>, StorageFailure> {
        match self.rows.scan(&keys::open_of(player), None, 1)?.first() {
            Some((key, _)) => Ok(self.outbox_row(listed(key)?)?.due()),
            None => Ok(None),
        }
    }

    fn put_outbox(
        &mut self,
        id: ClaimId,
        before: Option<&OutboxRow>,
        row: &OutboxRow,
    ) -> Result<(), StorageFailure> {
        let is_dead = |row: &OutboxRow| matches!(row.state, StateRow::Dead { .. });
        let was = (
            before.is_some_and(|row| row.due().is_some()),
            before.is_some_and(is_dead),
        );
        let is = (row.due().is_some(), is_dead(row));
        let (open, dead) = (&mut self.head.outbox_open, &mut self.head.outbox_dead);
        for (was, is, count, key) in [
            (was.0, is.0, open, keys::open(row.player(), id)),
            (was.1, is.1, dead, keys::dead(id)),
        ] {
            match (was, is) {
                (false, true) => {
                    *count = count.saturating_add(1);
                    self.rows.put(key, Vec::new());
                }
                (true, false) => {
                    *count = count.saturating_sub(1);
                    self.rows.remove(key);
                }
                (true, true) | (false, false) => {}
            }
        }
        self.put(keys::outbox(id), row)
    }

    fn outbox_row(&self, id: ClaimId) -> Result<OutboxRow, StorageFailure> {
        let key = keys::outbox(id);
        read(&self.rows, &key)?.ok_or_else(|| corrupt(OutboxRow::NAME, &key, "it is listed and not there"))
    }
}

fn listed(key: &[u8]) -> Result<ClaimId, StorageFailure> {
    keys::read_number(key)
        .ok_or_else(|| corrupt("list of open rows", key, "its key does not end with a number"))
}
