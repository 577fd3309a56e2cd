use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::window::Caution;
use super::*;

const CAUTION: Caution = Caution {
    rate_error_ppm: 1_000,
    margin: Duration::from_millis(100),
};
const ONE: HoldId = HoldId(1);
const TWO: HoldId = HoldId(2);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn granted(sent_ms: u64, ttl_ms: u64) -> Window {
    CAUTION.granted(at(sent_ms), Duration::ZERO, ms(ttl_ms))
}

/// A lease of 6 s that was granted at 0: renewed at 2,000, over at 5,894.
fn roster_of_one() -> Roster {
    let mut roster = Roster::default();
    roster.insert(ONE, ms(6_000), granted(0, 6_000), Moment::NEVER);
    roster
}

fn wanted(_: HoldId) -> Standing {
    Standing::Wanted
}

fn lost(decision: &Decision) -> &[HoldId] {
    assert!(decision.renew.is_empty(), "{decision:?}");
    &decision.lost
}

#[test]
fn a_lease_is_renewed_after_a_third_and_not_before() {
    let mut roster = roster_of_one();
    let early = roster.decide(at(1_999), wanted);
    assert_eq!(
        early,
        Decision {
            wake_at: Some(at(2_000)),
            ..Decision::default()
        }
    );
    let due = roster.decide(at(2_000), wanted);
    assert_eq!(due.renew, [ONE]);
    assert_eq!(
        due.wake_at,
        Some(at(5_894)),
        "only the deadline is left to wait for"
    );
    assert_eq!(roster.decide(at(2_001), wanted).renew, [], "it is in flight");
}

#[test]
fn c10_the_loss_is_raised_at_the_deadline_although_a_renewal_is_in_flight() {
    let mut roster = roster_of_one();
    assert_eq!(roster.decide(at(2_000), wanted).renew, [ONE]);
    assert!(lost(&roster.decide(at(5_893), wanted)).is_empty());
    assert_eq!(lost(&roster.decide(at(5_894), wanted)), [ONE]);
    assert_eq!(roster.len(), 0);
}

#[test]
fn c14_a_suspend_past_the_deadline_is_a_loss_before_it_is_a_renewal() {
    let mut roster = roster_of_one();
    let resumed = roster.decide(at(300_000), wanted);
    assert_eq!(resumed.lost, [ONE]);
    assert_eq!(resumed.renew, []);
}

#[test]
fn c31_a_failed_renewal_is_tried_again_until_the_deadline() {
    let mut roster = roster_of_one();
    let mut now = at(2_000);
    let mut attempts = 0;
    loop {
        let decision = roster.decide(now, wanted);
        if !decision.lost.is_empty() {
            break;
        }
        if !decision.renew.is_empty() {
            attempts += 1;
            roster.failed(ONE, now, u64::MAX / 3);
        }
        now = roster.decide(now, wanted).wake_at.unwrap();
    }
    assert_eq!(now, at(5_894));
    assert!((5..100).contains(&attempts), "{attempts} attempts");
}

#[test]
fn a_confirmed_renewal_starts_over() {
    let mut roster = roster_of_one();
    assert_eq!(roster.decide(at(2_000), wanted).renew, [ONE]);
    roster.renewed(ONE, CAUTION.renewed(at(2_000), ms(6_000)));
    assert_eq!(roster.decide(at(2_001), wanted).wake_at, Some(at(4_000)));
    assert_eq!(roster.decide(at(4_000), wanted).renew, [ONE]);
}

#[test]
fn an_answer_about_a_lease_that_is_gone_changes_nothing() {
    let mut roster = roster_of_one();
    assert_eq!(roster.decide(at(2_000), wanted).renew, [ONE]);
    assert_eq!(roster.decide(at(6_000), wanted).lost, [ONE]);
    roster.renewed(ONE, CAUTION.renewed(at(2_000), ms(6_000)));
    roster.failed(ONE, at(6_000), 0);
    assert_eq!(roster.decide(at(9_000), wanted), Decision::default());
}

#[test]
fn whoever_has_a_sixth_behind_it_comes_along() {
    let mut roster = roster_of_one();
    roster.insert(TWO, ms(6_000), granted(900, 6_000), Moment::NEVER);
    assert_eq!(roster.decide(at(2_000), wanted).renew, [ONE, TWO]);
    let mut apart = roster_of_one();
    apart.insert(TWO, ms(6_000), granted(1_100, 6_000), Moment::NEVER);
    assert_eq!(apart.decide(at(2_000), wanted).renew, [ONE]);
}

#[test]
fn c13_an_unfed_lease_is_not_renewed_and_not_released_but_lost_at_its_deadline() {
    let mut roster = roster_of_one();
    let mut now = at(2_000);
    while roster.len() > 0 {
        let decision = roster.decide(now, |_| Standing::Withheld);
        assert_eq!(decision.renew, []);
        assert!(decision.lost.is_empty() || now == at(5_894));
        now = decision.wake_at.unwrap_or(now);
    }
}

#[test]
fn a_lease_that_is_fed_again_in_time_is_renewed_again() {
    let mut roster = roster_of_one();
    let unfed = roster.decide(at(2_000), |_| Standing::Withheld);
    let next = unfed.wake_at.unwrap();
    assert!(next <= at(2_200));
    assert_eq!(roster.decide(next, wanted).renew, [ONE]);
}

#[test]
fn c13_a_maximum_hold_ends_a_lease_that_would_stand_longer() {
    let mut roster = Roster::default();
    roster.insert(ONE, ms(6_000), granted(0, 6_000), at(7_000));
    assert_eq!(roster.decide(at(2_000), wanted).renew, [ONE]);
    roster.renewed(ONE, CAUTION.renewed(at(2_000), ms(6_000)));
    assert_eq!(
        roster.decide(at(4_000), wanted),
        Decision {
            wake_at: Some(at(7_000)),
            ..Decision::default()
        },
        "it stands until 7,894 and needs no further renewal"
    );
    assert_eq!(roster.decide(at(7_000), wanted).lost, [ONE]);
}

#[test]
fn c03_what_is_over_is_forgotten_without_a_word() {
    let mut roster = roster_of_one();
    assert_eq!(roster.decide(at(2_000), |_| Standing::Over), Decision::default());
    assert_eq!(roster.len(), 0);
}

/// The rules once more, without any index: every lease is looked at each time.
#[derive(Default)]
struct Naive {
    leases: BTreeMap<HoldId, NaiveLease>,
}

#[derive(Clone, Copy)]
struct NaiveLease {
    window: Window,
    maximum_until: Moment,
    ttl: Duration,
    next: Moment,
    join: Moment,
    failures: u32,
    in_flight: bool,
}

impl Naive {
    fn decide(&mut self, now: Moment, standing: impl Fn(HoldId) -> Standing) -> (Vec<HoldId>, Vec<HoldId>) {
        let (mut lost, mut renew) = (Vec::new(), Vec::new());
        for (id, lease) in self.leases.clone() {
            let end = lease.window.deadline.min(lease.maximum_until);
            let may_renew = !lease.in_flight && lease.window.deadline < lease.maximum_until;
            let due = may_renew && lease.next <= now;
            match standing(id) {
                Standing::Over if end <= now || due => drop(self.leases.remove(&id)),
                Standing::Over => {}
                _ if end <= now => {
                    self.leases.remove(&id);
                    lost.push(id);
                }
                Standing::Wanted if due => renew.push(id),
                Standing::Withheld if due => {
                    let lease = self.leases.get_mut(&id).unwrap();
                    lease.next = now.after((lease.ttl / 32).max(ms(1)));
                    lease.failures = 0;
                }
                Standing::Wanted | Standing::Withheld => {}
            }
        }
        if !renew.is_empty() {
            for (id, lease) in &self.leases {
                let may_join = !lease.in_flight && lease.window.deadline < lease.maximum_until;
                let join = if lease.failures == 0 {
                    lease.join
                } else {
                    lease.next
                };
                if may_join && join <= now && standing(*id) == Standing::Wanted && !renew.contains(id) {
                    renew.push(*id);
                }
            }
        }
        for id in &renew {
            self.leases.get_mut(id).unwrap().in_flight = true;
        }
        renew.sort();
        (lost, renew)
    }

    fn renewed(&mut self, id: HoldId, window: Window) {
        if let Some(lease) = self.leases.get_mut(&id) {
            *lease = NaiveLease {
                window,
                next: window.renew_at,
                join: window.join_at,
                failures: 0,
                in_flight: false,
                ..*lease
            };
        }
    }

    fn failed(&mut self, id: HoldId, now: Moment, random: u64) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.failures += 1;
            let backoff = Backoff {
                base: lease.ttl / 32,
                cap: lease.ttl / 8,
            };
            lease.next = now.after(backoff.delay(lease.failures, random).max(ms(1)));
            lease.in_flight = false;
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Grant {
        id: u64,
        ttl_ms: u64,
        hold_ms: Option<u64>,
    },
    Pass {
        millis: u64,
    },
    Confirm {
        id: u64,
    },
    Fail {
        id: u64,
        random: u64,
    },
    Become {
        id: u64,
        standing: u8,
    },
    Forget {
        id: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0_u64..6;
    prop_oneof![
        2 => (id.clone(), 200_u64..6_000, proptest::option::of(1_u64..9_000))
            .prop_map(|(id, ttl_ms, hold_ms)| Step::Grant { id, ttl_ms, hold_ms }),
        6 => (0_u64..900).prop_map(|millis| Step::Pass { millis }),
        3 => id.clone().prop_map(|id| Step::Confirm { id }),
        2 => (id.clone(), any::<u64>()).prop_map(|(id, random)| Step::Fail { id, random }),
        1 => (id.clone(), 0_u8..3).prop_map(|(id, standing)| Step::Become { id, standing }),
        1 => id.prop_map(|id| Step::Forget { id }),
    ]
}

proptest! {
    #[test]
    fn the_roster_decides_as_the_rules_say(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut roster, mut naive) = (Roster::default(), Naive::default());
        let standings: RefCell<BTreeMap<HoldId, Standing>> = RefCell::default();
        let standing = |id| standings.borrow().get(&id).copied().unwrap_or(Standing::Wanted);
        let mut sent: BTreeMap<HoldId, (Moment, Duration)> = BTreeMap::new();
        let mut now = at(1);
        for step in steps {
            match step {
                Step::Grant { id, ttl_ms, hold_ms } => {
                    let (id, ttl) = (HoldId(id), ms(ttl_ms));
                    let window = CAUTION.granted(now, Duration::ZERO, ttl);
                    let maximum_until = hold_ms.map_or(Moment::NEVER, |hold| now.after(ms(hold)));
                    roster.insert(id, ttl, window, maximum_until);
                    let (next, join) = (window.renew_at, window.join_at);
                    let lease = NaiveLease { window, maximum_until, ttl, next, join, failures: 0, in_flight: false };
                    naive.leases.insert(id, lease);
                    standings.borrow_mut().remove(&id);
                    sent.remove(&id);
                }
                Step::Pass { millis } => now = now.after(ms(millis)),
                Step::Confirm { id } => if let Some((at, ttl)) = sent.remove(&HoldId(id)) {
                    let window = CAUTION.renewed(at, ttl);
                    roster.renewed(HoldId(id), window);
                    naive.renewed(HoldId(id), window);
                },
                Step::Fail { id, random } => if sent.remove(&HoldId(id)).is_some() {
                    roster.failed(HoldId(id), now, random);
                    naive.failed(HoldId(id), now, random);
                },
                Step::Become { id, standing } => {
                    let standing = match standing {
                        0 => Standing::Wanted,
                        1 => Standing::Withheld,
                        _ => Standing::Over,
                    };
                    standings.borrow_mut().insert(HoldId(id), standing);
                }
                Step::Forget { id } => {
                    roster.remove(HoldId(id));
                    naive.leases.remove(&HoldId(id));
                }
            }
            let mut decision = roster.decide(now, standing);
            decision.lost.sort();
            decision.renew.sort();
            let (lost, renew) = naive.decide(now, standing);
            prop_assert_eq!(&decision.lost, &lost);
            prop_assert_eq!(&decision.renew, &renew);
            prop_assert_eq!(roster.len(), naive.leases.len());
            prop_assert!(decision.wake_at.is_none_or(|wake_at| wake_at > now), "no busy loop");
            for id in renew {
                sent.insert(id, (now, naive.leases[&id].ttl));
            }
            // Nobody is in the roster beyond the end of its lease.
            for lease in naive.leases.values() {
                prop_assert!(lease.window.deadline.min(lease.maximum_until) > now || !standings.borrow().is_empty());
            }
            prop_assert_eq!(roster.alarms.len(), roster.entries.len());
        }
    }
}
