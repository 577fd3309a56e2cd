//! The states of an outbox row: whatever publishers and people do, and in whatever order their messages arrive.

use proptest::prelude::*;

use super::delivery::{begin, discard, due, lease, retry, settle};
use crate::types::{DeliveryProgress, DeliveryState, Doubt, Note, PublisherId, Reason, UnixMillis, Verdict};

const LEASE_MS: u64 = 10;

fn at(millis: u64) -> UnixMillis {
    UnixMillis::new(millis)
}

fn leased(row: &DeliveryProgress, now: u64) -> Option<DeliveryProgress> {
    lease(row, &PublisherId::new("p"), at(now), at(now + LEASE_MS))
}

#[test]
fn a_lease_that_ran_out_counts_as_a_try_of_unknown_outcome() {
    let first = leased(&begin(at(5)), 5).unwrap();
    assert_eq!(due(&first), Some(at(15)));
    assert_eq!(leased(&first, 14), None);
    let second = leased(&first, 15).unwrap();
    assert_eq!(
        (second.tries, second.first_sent, second.doubt, second.epoch),
        (1, Some(at(5)), Doubt::Unknown, 2)
    );
}

#[test]
fn a_released_row_was_never_sent() {
    let first = leased(&begin(at(5)), 5).unwrap();
    let back = settle(&first, 1, &Verdict::Released, at(6)).unwrap();
    assert_eq!((back.tries, back.first_sent, due(&back)), (0, None, Some(at(6))));
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Lease,
    /// A verdict under the epoch that is this many leases old.
    Settle(u64, Verdict),
    Retry(Option<u64>),
    Discard,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let doubt = prop_oneof![Just(Doubt::NotDone), Just(Doubt::Unknown)];
    let verdict = prop_oneof![
        Just(Verdict::Delivered),
        (0_u64..60, doubt.clone()).prop_map(|(due, doubt)| Verdict::Again {
            due: at(due),
            doubt,
            note: Note::new("again"),
        }),
        doubt.prop_map(|doubt| Verdict::Dead {
            doubt,
            note: Note::new("dead"),
        }),
        Just(Verdict::Released),
    ];
    let step = prop_oneof![
        (1_u64..12).prop_map(Step::Wait),
        Just(Step::Lease),
        (0_u64..3, verdict).prop_map(|(age, verdict)| Step::Settle(age, verdict)),
        prop::option::of(0_u64..700).prop_map(Step::Retry),
        Just(Step::Discard),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// Epochs only rise; a verdict of an earlier lease, or none, touches nothing; what is delivered stays so; a leased row
    /// is nobody else's before its end; a row that may have been sent never reads as unsent again.
    #[test]
    fn a_row_moves_only_for_whom_it_is_leased_to(steps in steps()) {
        let mut row = begin(at(0));
        let mut now = 0;
        for step in steps {
            let before = row.clone();
            let next = match &step {
                Step::Wait(span) => {
                    now += span;
                    None
                }
                Step::Lease => leased(&row, now),
                Step::Settle(age, verdict) => settle(&row, row.epoch.saturating_sub(*age), verdict, at(now)),
                Step::Retry(front) => retry(&row, at(now), front.map(at)),
                Step::Discard => discard(&row, &Reason::new("by hand").unwrap(), at(now)),
            };
            let Some(next) = next else { continue };
            prop_assert!(next.epoch >= before.epoch);
            prop_assert!(before.first_sent.is_none() || next.first_sent == before.first_sent);
            match (&before.state, &step) {
                (DeliveryState::Delivered { .. }, _) => prop_assert!(false, "{step:?} moved a delivered row"),
                (DeliveryState::Leased { until, .. }, Step::Lease) => prop_assert!(until.get() <= now),
                (DeliveryState::Leased { .. }, Step::Settle(age, _)) => prop_assert_eq!(*age, 0),
                (_, Step::Settle(..)) => prop_assert!(false, "{step:?} moved a row that was not leased"),
                (DeliveryState::Dead { .. } | DeliveryState::Discarded { .. }, Step::Lease) => {
                    prop_assert!(false, "a dead row was leased")
                }
                (state, Step::Retry(front)) => {
                    prop_assert!(!state.is_open());
                    let due = due(&next).unwrap();
                    prop_assert!(due >= at(now) && front.is_none_or(|front| due >= at(front)));
                }
                (state, Step::Discard) => prop_assert!(!state.is_open()),
                _ => {}
            }
            row = next;
        }
    }
}
