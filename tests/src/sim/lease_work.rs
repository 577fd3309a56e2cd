//! Work under a lease, with the client library's own decisions: when to renew, when to give up.

use std::time::Duration;

use fence_client::testing::decisions::{DeadlineRule, LeaseWindow, Schedule, Wish};
use lease_core::FenceToken;
use lease_store::runtime::AsyncRuntime as _;
use lease_store::simulation::NodeRt;

use super::belief::Belief;
use super::client::{Client, FORCED, Granted, Renewed, millis};
use super::note::now;
use crate::history::{Micros, Op, Record};

/// The only lease of a schedule.
const LEASE: u64 = 1;
/// A renewal's answer is waited for this long, if the deadline is not before.
const RENEWAL_WITHIN: Duration = Duration::from_millis(500);
/// What a client says at one moment lies before what it asks for next.
const A_STEP: Duration = Duration::from_micros(2);
/// Leases that a client remembers to come back to too late.
const OLD_MAX: usize = 20;

/// How the work ends, if the lease is not lost before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// The lease is released.
    Release,
    /// The worker dies, and says nothing.
    Die,
}

impl Client {
    /// Works for a while, renews as the watchdog does, and releases at the end.
    pub(super) async fn work_under(&mut self, granted: Granted) {
        let Granted { name, token, ttl, .. } = granted.clone();
        let Some(rule) = DeadlineRule::of_defaults(ttl) else {
            panic!("harness: a ttl of {ttl:?} is too short for the client");
        };
        let window = rule.granted(granted.sent, granted.waited, granted.remaining);
        if window.deadline() <= self.local() {
            // An answer that came too late: the lease is given back, and never used.
            self.stage.notes().count("grant came too late");
            return self.release(&name, token).await;
        }
        let mut schedule = Schedule::default();
        schedule.insert(LEASE, ttl, window, None);
        let mut held = self.believe(&granted, window);
        NodeRt::sleep(A_STEP).await;
        let works_for = self.random.below(millis(ttl) * 3);
        let works_until = self.local() + Duration::from_millis(works_for);
        let plan = match self.random.percent(85) {
            true => Plan::Release,
            false => Plan::Die,
        };
        let mut holds = true;
        while holds && self.local() < works_until {
            let todo = schedule.decide(self.local(), |_| Wish::Wanted);
            if !todo.lost.is_empty() {
                self.stage.notes().count("lease lost by deadline");
                holds = false;
            } else if todo.renew.is_empty() {
                let wake_at = todo.wake_at.unwrap_or(works_until).min(works_until);
                NodeRt::sleep(wake_at.saturating_sub(self.local())).await;
            } else {
                holds = self.renew_once(&mut schedule, rule, &mut held).await;
                NodeRt::sleep(A_STEP).await;
            }
        }
        let finishes = holds && plan == Plan::Release && self.local() < held.local_deadline;
        // One that lost its lease gives it back all the same, as the client does; one that died may come back and do so.
        let releases = finishes || self.random.percent(30);
        // One that stood still past its deadline does not believe in it when it goes on: it looks at its clock first.
        let ended = if releases {
            now().min(held.deadline)
        } else {
            held.deadline
        };
        // Whoever uses force ends exclusion at once: its holder learns of it at its next renewal.
        if name != FORCED {
            self.stage.notes().belief(Belief {
                client: self.id,
                resource: name.clone(),
                token: token.get(),
                from: held.from,
                to: ended.min(held.lost_at),
            });
        }
        if self.old.len() >= OLD_MAX {
            self.old.remove(0);
        }
        self.old.push((name.clone(), token, ttl));
        if releases {
            self.release(&name, token).await;
        }
    }

    /// A renewal that the schedule asked for; whether the lease may still stand.
    async fn renew_once(&mut self, schedule: &mut Schedule, rule: DeadlineRule, held: &mut Held) -> bool {
        let sent = self.local();
        let left = held.local_deadline.saturating_sub(sent);
        let within = RENEWAL_WITHIN.min(left);
        let renewed = self.renew((&held.name, held.token, held.ttl), within).await;
        let came_at = self.local();
        match renewed {
            // A word that comes after the deadline revives nothing.
            Renewed::Yes(_) if came_at >= held.local_deadline => false,
            Renewed::Yes(remaining) => {
                let window = rule.renewed(sent, remaining);
                schedule.renewed(LEASE, window);
                self.extend(held, window);
                true
            }
            Renewed::Lost => {
                held.lost_at = now();
                false
            }
            Renewed::Unknown => {
                let chance = self.random.bits();
                schedule.failed(LEASE, came_at, chance);
                true
            }
        }
    }

    /// From here on the client believes that it holds the lease.
    fn believe(&self, granted: &Granted, window: LeaseWindow) -> Held {
        let mut held = Held {
            name: granted.name.clone(),
            token: granted.token,
            ttl: granted.ttl,
            from: now(),
            deadline: 0,
            local_deadline: Duration::ZERO,
            lost_at: Micros::MAX,
        };
        self.extend(&mut held, window);
        held
    }

    fn extend(&self, held: &mut Held, window: LeaseWindow) {
        held.local_deadline = window.deadline();
        held.deadline = self.true_time_of(window.deadline());
        self.say_that_it_holds(&held.name, held.token.get(), window);
    }

    fn say_that_it_holds(&self, name: &str, token: u64, window: LeaseWindow) {
        let (call, until) = (now(), self.true_time_of(window.deadline()));
        let record = Record {
            token: Some(token),
            ttl_ms: Some(until.saturating_sub(call) / 1_000),
            ..self.record(Op::Hold, name, call)
        };
        self.stage.notes().record(record);
    }

    /// The true time at which the client's clock shows a point that lies ahead, rounded down.
    fn true_time_of(&self, local: Duration) -> Micros {
        let ahead = local.saturating_sub(self.local()).as_nanos();
        let rate = u128::try_from(1_000_000_i64 + i64::from(self.ppm)).unwrap_or(1_000_000);
        let ahead_us = ahead * 1_000 / rate;
        now() + Micros::try_from(ahead_us).unwrap_or(Micros::MAX)
    }
}

/// What a client knows of the lease that it holds.
#[derive(Debug, Clone)]
struct Held {
    name: String,
    token: FenceToken,
    ttl: Duration,
    from: Micros,
    /// Until when it believes so, in true time and on its own clock.
    deadline: Micros,
    local_deadline: Duration,
    /// When it was told that the lease is over.
    lost_at: Micros,
}
