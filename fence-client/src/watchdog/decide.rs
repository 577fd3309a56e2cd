//! What the watchdog does next: renew, wait, or raise a loss. Pure: time and randomness are arguments.
//!
//! The rules, each held by a test:
//! - A lease is renewed once a third of its remaining time is over. Whatever has a sixth of it behind it comes along,
//!   so that the leases of a client end up in one request.
//! - A renewal that failed is tried again, after a backoff that fits the lease, until the deadline.
//! - At its deadline, or at its maximum hold, a lease is lost, also while a renewal is in flight.
//! - Nothing is renewed whose holder does not feed it, or has asked for its release.
//!
//! It leaves to others: sending, the validity that callers see ([`crate::hold`]), and why a lease is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::window::Window;
use crate::backoff::Backoff;
use crate::clock::Moment;

/// Names one lease within its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HoldId(pub(crate) u64);

/// Whether a lease is to be renewed, as its handle has it at the time of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Yes.
    Wanted,
    /// Not now: it is not fed, or its release is under way. That may change until the deadline.
    Withheld,
    /// It is over: released, or lost.
    Over,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Decision {
    /// These are lost.
    pub(crate) lost: Vec<HoldId>,
    /// These go into one renewal.
    pub(crate) renew: Vec<HoldId>,
    /// Decide again at this point; `None` if there is nothing to wait for.
    pub(crate) wake_at: Option<Moment>,
}

/// One lease as the watchdog schedules it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    ttl: Duration,
    window: Window,
    maximum_until: Moment,
    attempt: Attempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// The next one is due at this point.
    Due { at: Moment, failures: u32 },
    /// One is on its way.
    InFlight { failures: u32 },
}

impl Entry {
    /// Where the lease is lost unless a renewal is confirmed before.
    fn end(&self) -> Moment {
        self.window.deadline.min(self.maximum_until)
    }

    /// When something is to be done.
    fn alarm(&self) -> Moment {
        match self.attempt {
            Attempt::Due { at, .. } if self.is_renewable() => at.min(self.end()),
            Attempt::Due { .. } | Attempt::InFlight { .. } => self.end(),
        }
    }

    /// When it may come along with others; `None` if it may not.
    fn join_at(&self) -> Option<Moment> {
        match self.attempt {
            Attempt::Due { failures: 0, .. } if self.is_renewable() => Some(self.window.join_at),
            Attempt::Due { at, .. } if self.is_renewable() => Some(at),
            Attempt::Due { .. } | Attempt::InFlight { .. } => None,
        }
    }

    /// A lease that reaches its maximum hold before its deadline needs no renewal.
    fn is_renewable(&self) -> bool {
        self.window.deadline < self.maximum_until
    }

    /// Pauses between attempts that fit the time to live: from a 32nd of it up to an eighth, so that several attempts
    /// fit between the first failure and the deadline.
    fn backoff(&self) -> Backoff {
        let part = |parts| self.ttl.checked_div(parts).unwrap_or_default();
        Backoff {
            base: part(32),
            cap: part(8),
        }
    }
}

/// Shortest pause before the next attempt, so that full jitter never makes a busy loop.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// All leases of a client.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    entries: BTreeMap<HoldId, Entry>,
    alarms: BTreeSet<(Moment, HoldId)>,
    joins: BTreeSet<(Moment, HoldId)>,
}

impl Roster {
    /// Takes a lease in.
    pub(crate) fn insert(&mut self, id: HoldId, ttl: Duration, window: Window, maximum_until: Moment) {
        self.remove(id);
        let attempt = Attempt::Due {
            at: window.renew_at,
            failures: 0,
        };
        self.put(
            id,
            Entry {
                ttl,
                window,
                maximum_until,
                attempt,
            },
        );
    }

    /// Forgets a lease.
    pub(crate) fn remove(&mut self, id: HoldId) {
        self.take(id);
    }

    /// Whether a lease is in the schedule.
    pub(crate) fn contains(&self, id: HoldId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Number of leases.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What to do at `now`. Whatever it says to renew counts as in flight from here on.
    pub(crate) fn decide(&mut self, now: Moment, standing: impl Fn(HoldId) -> Standing) -> Decision {
        let mut decision = Decision::default();
        while let Some((at, id)) = self.alarms.first().copied()
            && at <= now
        {
            self.on_alarm(id, now, &standing, &mut decision);
        }
        if !decision.renew.is_empty() {
            let joining: Vec<_> = self
                .joins
                .iter()
                .take_while(|(at, _)| *at <= now)
                .copied()
                .collect();
            for (_, id) in joining {
                if standing(id) == Standing::Wanted {
                    self.start(id, &mut decision);
                }
            }
        }
        decision.wake_at = self.alarms.first().map(|(at, _)| *at);
        decision
    }

    /// A renewal was confirmed.
    pub(crate) fn renewed(&mut self, id: HoldId, window: Window) {
        self.change(id, |entry| {
            entry.window = window;
            entry.attempt = Attempt::Due {
                at: window.renew_at,
                failures: 0,
            };
        });
    }

    /// A renewal failed, or nobody knows.
    pub(crate) fn failed(&mut self, id: HoldId, now: Moment, random: u64) {
        self.change(id, |entry| {
            let (Attempt::InFlight { failures } | Attempt::Due { failures, .. }) = entry.attempt;
            let failures = failures.saturating_add(1);
            let pause = entry.backoff().delay(failures, random).max(PAUSE_MIN);
            entry.attempt = Attempt::Due {
                at: now.after(pause),
                failures,
            };
        });
    }

    fn on_alarm(
        &mut self,
        id: HoldId,
        now: Moment,
        standing: &impl Fn(HoldId) -> Standing,
        decision: &mut Decision,
    ) {
        let Some(entry) = self.entries.get(&id).copied() else {
            return;
        };
        match standing(id) {
            Standing::Over => self.remove(id),
            Standing::Wanted | Standing::Withheld if entry.end() <= now => {
                self.remove(id);
                decision.lost.push(id);
            }
            Standing::Wanted => self.start(id, decision),
            Standing::Withheld => self.change(id, |entry| {
                // Often enough that a lease that is fed again in time is saved.
                let pause = entry.backoff().base.max(PAUSE_MIN);
                entry.attempt = Attempt::Due {
                    at: now.after(pause),
                    failures: 0,
                };
            }),
        }
    }

    fn start(&mut self, id: HoldId, decision: &mut Decision) {
        self.change(id, |entry| {
            if let Attempt::Due { failures, .. } = entry.attempt {
                entry.attempt = Attempt::InFlight { failures };
            }
        });
        decision.renew.push(id);
    }

    fn change(&mut self, id: HoldId, change: impl FnOnce(&mut Entry)) {
        if let Some(mut entry) = self.take(id) {
            change(&mut entry);
            self.put(id, entry);
        }
    }

    fn put(&mut self, id: HoldId, entry: Entry) {
        self.alarms.insert((entry.alarm(), id));
        self.joins.extend(entry.join_at().map(|at| (at, id)));
        self.entries.insert(id, entry);
    }

    fn take(&mut self, id: HoldId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.alarms.remove(&(entry.alarm(), id));
        if let Some(at) = entry.join_at() {
            self.joins.remove(&(at, id));
        }
        Some(entry)
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
