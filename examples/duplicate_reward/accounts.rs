//! The table of a service that trusts its lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reward_ledger::RewardEventId;

use crate::Counted;

/// One row.
#[derive(Debug, Clone)]
struct Payment {
    player: i64,
    event: RewardEventId,
    amount: i64,
}

/// Payments as many services keep them: looked up and inserted under the lock, so that no unique key seems needed.
#[derive(Debug, Default)]
pub(crate) struct Accounts(Mutex<Vec<Payment>>);

impl Accounts {
    /// `SELECT count(*) FROM payment WHERE player = .. AND event = ..`
    pub(crate) fn count(&self, player: i64, event: &RewardEventId) -> usize {
        let of_event = |payment: &&Payment| payment.player == player && payment.event == *event;
        self.rows().iter().filter(of_event).count()
    }

    /// `INSERT INTO payment ..`; the number of the row.
    pub(crate) fn insert(&self, player: i64, event: &RewardEventId, amount: i64) -> usize {
        let mut rows = self.rows();
        rows.push(Payment {
            player,
            event: event.clone(),
            amount,
        });
        rows.len()
    }

    /// What the table holds, added up.
    pub(crate) fn counted(&self) -> Counted {
        let rows = self.rows();
        Counted {
            payments: rows.iter().map(|_| 1).sum(),
            gold: rows.iter().map(|payment| i128::from(payment.amount)).sum(),
        }
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Payment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
