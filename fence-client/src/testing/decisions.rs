//! The watchdog's decisions and the arithmetic of deadlines, without tasks, clock and sockets: for a simulation that drives the
//! very rules that the client follows.
//!
//! Points in time are durations since a start of the simulation's choosing, on the simulated client's own clock.

use std::time::Duration;

use crate::clock::Moment;
use crate::config::Settings;
use crate::watchdog::{Caution, Decision, HoldId, Roster, Standing, Window};

/// By how much a client gives a lease up before the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlineRule(Caution);

impl DeadlineRule {
    /// The rule for leases of this ttl under the default settings; `None` if the client would refuse so short a ttl.
    #[must_use]
    pub fn of_defaults(ttl: Duration) -> Option<Self> {
        let (_, caution) = Settings::default().caution(ttl).ok()?;
        Some(Self(caution))
    }

    /// A rule of this clock rate error, in parts per million, and this margin.
    #[must_use]
    pub const fn new(rate_error_ppm: u32, margin: Duration) -> Self {
        Self(Caution {
            rate_error_ppm,
            margin,
        })
    }

    /// What a grant is good for whose request left at `sent`, which waited for `waited` and had `remaining` left.
    #[must_use]
    pub fn granted(self, sent: Duration, waited: Duration, remaining: Duration) -> LeaseWindow {
        LeaseWindow(self.0.granted(moment(sent), waited, remaining))
    }

    /// What a renewal is good for whose request left at `sent`, with `remaining` left.
    #[must_use]
    pub fn renewed(self, sent: Duration, remaining: Duration) -> LeaseWindow {
        LeaseWindow(self.0.renewed(moment(sent), remaining))
    }
}

/// What one answer of the store is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseWindow(Window);

impl LeaseWindow {
    /// The lease is not held from here on. An answer that comes at this point or later revives nothing: whoever gets
    /// it releases the lease by its token.
    #[must_use]
    pub const fn deadline(self) -> Duration {
        START.until(self.0.deadline)
    }

    /// The lease is renewed from here on.
    #[must_use]
    pub const fn renew_at(self) -> Duration {
        START.until(self.0.renew_at)
    }
}

/// Whether a lease is to be renewed, as its holder has it at the time of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Yes.
    Wanted,
    /// Not now: it is not fed, or its release is under way.
    Withheld,
    /// It is over: released, or lost.
    Over,
}

/// What a client is to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Todo {
    /// These leases are lost. The schedule has forgotten them.
    pub lost: Vec<u64>,
    /// These go into one renewal, and count as in flight until [`Schedule::renewed`] or [`Schedule::failed`].
    pub renew: Vec<u64>,
    /// Ask again at this point; `None` if there is nothing to wait for.
    pub wake_at: Option<Duration>,
}

/// The leases of one client as its watchdog schedules them. A lease's number is the simulation's own.
#[derive(Debug, Default)]
pub struct Schedule(Roster);

impl Schedule {
    /// Takes a lease in; at `maximum_until` it is lost also if it is renewed.
    pub fn insert(
        &mut self,
        lease: u64,
        ttl: Duration,
        window: LeaseWindow,
        maximum_until: Option<Duration>,
    ) {
        let maximum_until = maximum_until.map_or(Moment::NEVER, moment);
        self.0.insert(HoldId(lease), ttl, window.0, maximum_until);
    }

    /// Forgets a lease.
    pub fn remove(&mut self, lease: u64) {
        self.0.remove(HoldId(lease));
    }

    /// Whether a lease is scheduled: neither lost nor removed.
    #[must_use]
    pub fn contains(&self, lease: u64) -> bool {
        self.0.contains(HoldId(lease))
    }

    /// What to do at `now`.
    pub fn decide(&mut self, now: Duration, wish: impl Fn(u64) -> Wish) -> Todo {
        let Decision { lost, renew, wake_at } = self.0.decide(moment(now), |id| match wish(id.0) {
            Wish::Wanted => Standing::Wanted,
            Wish::Withheld => Standing::Withheld,
            Wish::Over => Standing::Over,
        });
        Todo {
            lost: lost.into_iter().map(|id| id.0).collect(),
            renew: renew.into_iter().map(|id| id.0).collect(),
            wake_at: wake_at.map(|at| START.until(at)),
        }
    }

    /// A renewal was confirmed, before the deadline so far.
    pub fn renewed(&mut self, lease: u64, window: LeaseWindow) {
        self.0.renewed(HoldId(lease), window.0);
    }

    /// A renewal failed, or nobody knows; `random` spreads the pause before the next one.
    pub fn failed(&mut self, lease: u64, now: Duration, random: u64) {
        self.0.failed(HoldId(lease), moment(now), random);
    }
}

/// Where the simulation's time begins on the client's scale: so far on that a deadline before its start exists.
const START: Moment = Moment::from_nanos(1 << 40);

fn moment(since_start: Duration) -> Moment {
    START.after(since_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_schedule_renews_and_gives_up_as_the_client_does() {
        let rule = DeadlineRule::of_defaults(ms(6_000)).unwrap();
        assert_eq!(rule, DeadlineRule::new(1_000, ms(120)));
        let window = rule.granted(ms(0), ms(0), ms(6_000));
        assert_eq!((window.renew_at(), window.deadline()), (ms(2_000), ms(5_874)));
        let mut schedule = Schedule::default();
        schedule.insert(7, ms(6_000), window, None);
        let early = schedule.decide(ms(1_999), |_| Wish::Wanted);
        assert_eq!((early.renew, early.wake_at), (vec![], Some(ms(2_000))));
        assert_eq!(schedule.decide(ms(2_000), |_| Wish::Wanted).renew, [7]);
        schedule.failed(7, ms(2_100), 0);
        assert_eq!(schedule.decide(ms(2_101), |_| Wish::Wanted).renew, [7]);
        schedule.renewed(7, rule.renewed(ms(2_101), ms(6_000)));
        assert_eq!(
            schedule.decide(ms(2_102), |_| Wish::Withheld).wake_at,
            Some(ms(4_101))
        );
        assert_eq!(schedule.decide(ms(7_975), |_| Wish::Withheld).lost, [7]);
        assert!(!schedule.contains(7));
    }

    #[test]
    fn a_ttl_that_the_client_refuses_has_no_rule_and_a_short_answer_is_over_at_once() {
        assert_eq!(DeadlineRule::of_defaults(ms(15)), None);
        let window = DeadlineRule::new(1_000, ms(100)).renewed(ms(10), ms(50));
        assert_eq!(window.deadline(), Duration::ZERO);
    }
}
