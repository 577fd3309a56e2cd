//! The audit: walks all rows in bounded steps and names every violated invariant.
//!
//! What is wrong with one row is [`check`]'s business, what the tables hold the store's.

mod check;
mod expectations;
mod outside;
mod report;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use expectations::Expectations;
pub use outside::OutsideRecords;
pub use report::{AuditReport, Violation};

use crate::error::StoreError;
use crate::store::{Cursor, Entry, Store, Table};
use crate::types::{ClaimId, PlayerId};
use check::Checker;

/// What a ledger is held to besides its own invariants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Against<'a> {
    pub(crate) expectations: &'a [&'a Expectations],
    /// What the outside says it did.
    pub(crate) outside: Option<&'a OutsideRecords>,
}

/// Audits `store`, handing each violation to `found`, and the number of rows looked at to `progress`.
pub(crate) async fn audit(
    store: &dyn Store,
    against: Against<'_>,
    found: impl FnMut(&Violation),
    progress: impl FnMut(u64),
) -> Result<AuditReport, StoreError> {
    let upto = store.complete_upto().await?;
    let mut checker = Checker::new(against, found, progress);
    walk_players(store, upto, &mut checker).await?;
    for table in [Table::Outbox, Table::Attempts, Table::Payments] {
        let mut walk = Walk::new(store, table);
        while let Some(entry) = walk.next().await? {
            checker.entry(&entry);
        }
    }
    Ok(checker.finish())
}

/// Walks claims and ledger rows side by side, both in the order of players, so that each player's sums are compared
/// without keeping any other's. Sums leave out what was granted after the audit began.
async fn walk_players<F: FnMut(&Violation), P: FnMut(u64)>(
    store: &dyn Store,
    upto: ClaimId,
    checker: &mut Checker<'_, F, P>,
) -> Result<(), StoreError> {
    let mut claims = Walk::new(store, Table::Claims);
    let mut ledger = Walk::new(store, Table::Ledger);
    loop {
        let (claimant, holder) = (claims.player(checker).await?, ledger.player(checker).await?);
        let Some(player) = claimant.into_iter().chain(holder).min() else {
            return Ok(());
        };
        let granted = sum_player(&mut claims, player, upto, checker).await?;
        let held = sum_player(&mut ledger, player, upto, checker).await?;
        checker.player(player, granted, held);
    }
}

/// Checks the rows of one player and adds up their amounts.
async fn sum_player<F: FnMut(&Violation), P: FnMut(u64)>(
    walk: &mut Walk<'_>,
    player: PlayerId,
    upto: ClaimId,
    checker: &mut Checker<'_, F, P>,
) -> Result<i128, StoreError> {
    let mut sum = 0_i128;
    while walk.player(checker).await? == Some(player) {
        let Some(entry) = walk.next().await? else {
            break;
        };
        checker.entry(&entry);
        let amounts = match &entry {
            Entry::Claim(claim) => claim.amounts(),
            Entry::Ledger(row) => [Some((row.claim_id, row.line.amount)), None],
            Entry::Outbox(_) | Entry::Attempt(_) | Entry::Payment(_) | Entry::Unreadable { .. } => {
                [None, None]
            }
        };
        for (_, amount) in amounts.into_iter().flatten().filter(|(id, _)| *id <= upto) {
            sum = sum.saturating_add(i128::from(amount));
        }
    }
    Ok(sum)
}

/// Goes through one table, a page at a time.
struct Walk<'a> {
    store: &'a dyn Store,
    table: Table,
    read: VecDeque<Entry>,
    from: From,
}

/// Where the next page starts.
enum From {
    Start,
    After(Cursor),
    End,
}

impl<'a> Walk<'a> {
    const fn new(store: &'a dyn Store, table: Table) -> Self {
        Self {
            store,
            table,
            read: VecDeque::new(),
            from: From::Start,
        }
    }

    async fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        self.fill().await?;
        Ok(self.read.pop_front())
    }

    /// Whose the next row is. Rows that do not read back belong to nobody: they are checked and left behind.
    async fn player<F: FnMut(&Violation), P: FnMut(u64)>(
        &mut self,
        checker: &mut Checker<'_, F, P>,
    ) -> Result<Option<PlayerId>, StoreError> {
        loop {
            self.fill().await?;
            match self.read.front().map(Entry::player) {
                None => return Ok(None),
                Some(Some(player)) => return Ok(Some(player)),
                Some(None) => {
                    if let Some(entry) = self.read.pop_front() {
                        checker.entry(&entry);
                    }
                }
            }
        }
    }

    async fn fill(&mut self) -> Result<(), StoreError> {
        while self.read.is_empty() {
            match self.read_on().await? {
                Some(page) => self.read.extend(page),
                None => break,
            }
        }
        Ok(())
    }

    async fn read_on(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        let after = match &self.from {
            From::Start => None,
            From::After(cursor) => Some(cursor.clone()),
            From::End => return Ok(None),
        };
        let page = self.store.page(self.table, after).await?;
        self.from = page.next.map_or(From::End, From::After);
        Ok(Some(page.entries))
    }
}
