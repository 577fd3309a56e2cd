//! Until when the holder of each lease can be certain of it, from what it was told so far.

use std::collections::BTreeMap;

use super::ends::AttemptId;
use super::grants::end_of;
use super::record::{Micros, Op, Outcome, Record};

/// What the holder of one lease knows.
#[derive(Debug)]
struct Known {
    /// When the last good word was asked for, and the end by it.
    called: Micros,
    until: Micros,
    /// Renewals that were asked for since then and have no answer: they may have shortened the lease.
    open: BTreeMap<AttemptId, (Micros, Micros)>,
    /// When its release was first asked for.
    released: Micros,
}

/// The holders of all leases.
#[derive(Debug, Default)]
pub(super) struct Certain {
    leases: BTreeMap<(String, u64), Known>,
}

impl Certain {
    /// An attempt was sent.
    pub(super) fn called(&mut self, attempt: AttemptId, record: &Record) {
        let Some(known) = self.of(record) else {
            return;
        };
        match record.op {
            Op::Renew => {
                known.open.insert(attempt, (record.call, told_until(record)));
            }
            Op::Release => known.released = known.released.min(record.call),
            Op::Acquire | Op::Force | Op::Read | Op::Hold => {}
        }
    }

    /// An attempt was answered.
    pub(super) fn answered(&mut self, attempt: AttemptId, record: &Record) {
        let Some(token) = record.token else {
            return;
        };
        let good = record.outcome == Outcome::Ok && matches!(record.op, Op::Acquire | Op::Renew);
        if good {
            let key = (record.resource.clone(), token);
            let known = self.leases.entry(key).or_insert_with(|| Known {
                called: 0,
                until: 0,
                open: BTreeMap::new(),
                released: Micros::MAX,
            });
            if record.call >= known.called {
                known.called = record.call;
                known.until = told_until(record);
            }
        }
        if let Some(known) = self.of(record) {
            known.open.remove(&attempt);
        }
    }

    /// Until when the holder of a lease can be certain of it; 0 if nobody was told that it has it.
    pub(super) fn until(&self, resource: &str, token: u64) -> Micros {
        let Some(known) = self.leases.get(&(resource.to_owned(), token)) else {
            return 0;
        };
        let younger = known.open.values().filter(|(called, _)| *called > known.called);
        let shortened = younger.map(|(_, until)| *until).min();
        known
            .until
            .min(shortened.unwrap_or(Micros::MAX))
            .min(known.released)
    }

    fn of(&mut self, record: &Record) -> Option<&mut Known> {
        self.leases.get_mut(&(record.resource.clone(), record.token?))
    }
}

fn told_until(record: &Record) -> Micros {
    record.ttl_ms.map_or(Micros::MAX, |ttl| end_of(record.call, ttl))
}
