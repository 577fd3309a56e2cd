//! The table of a service that trusts its lock: looked up and inserted under the lock, so that no unique key seems needed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reward_ledger::RewardEventId;

use super::{Pay, Start, Told};

/// Payments of rewards, and payment attempts of the order.
#[derive(Debug, Default)]
pub(crate) struct Table(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    payments: Vec<RewardEventId>,
    attempts: Vec<String>,
}

impl Table {
    /// `SELECT count(*) FROM payment WHERE player = .. AND event = ..`
    pub(super) fn look(&self, event: &RewardEventId) -> u64 {
        let rows = self.rows();
        rows.payments
            .iter()
            .filter(|paid| *paid == event)
            .map(|_| 1)
            .sum()
    }

    /// `INSERT INTO payment ..`
    pub(super) fn pay(&self, pay: &Pay) -> Told {
        let mut rows = self.rows();
        rows.payments.push(pay.event.clone());
        Told::Done(format!("payment {}", rows.payments.len()))
    }

    pub(super) fn payments(&self) -> u64 {
        self.rows().payments.iter().map(|_| 1).sum()
    }

    pub(super) fn look_order(&self) -> u64 {
        self.rows().attempts.iter().map(|_| 1).sum()
    }

    pub(super) fn start(&self, start: &Start) -> Told {
        let mut rows = self.rows();
        rows.attempts.push(start.attempt.clone());
        Told::Done(format!("attempt {}", rows.attempts.len()))
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
