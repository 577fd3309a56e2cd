//! K4: leases that outlive their time.

use super::*;
use crate::history::{Judged, Outage, Promise, check_times};

/// A commit takes a tenth of a second at the most.
const PROMISE: Promise = Promise {
    commit: 100_000,
    leader_change: 200_000,
};
/// By when a lease of a second that was granted by 10 must be over.
const OVER_BY: Micros = 10 + 1_000_000 + 1_000 + 100_000;

fn refused(token: Option<u64>, call: Micros) -> Record {
    Record {
        outcome: Outcome::Fail,
        token,
        ttl_ms: Some(1_000),
        ..attempt(Op::Acquire, call, call + 10)
    }
}

#[track_caller]
fn judge(records: &[Record], outages: &[Outage]) -> (bool, u64) {
    let (found, Judged { ends, .. }) = check_times(records, outages, PROMISE);
    assert!(
        found
            .iter()
            .all(|violation| violation.rule == Rule::BoundedLateExpiry),
        "{found:#?}"
    );
    (found.is_empty(), ends)
}

#[track_caller]
fn is_late(records: &[Record]) {
    let (right, _) = judge(records, &[]);
    assert!(!right, "nothing was seen");
}

#[track_caller]
fn is_in_time(records: &[Record]) {
    let (right, judged) = judge(records, &[]);
    assert!(right && judged > 0, "{judged} judged");
}

#[test]
fn a_refusal_past_the_end_of_the_lease_that_it_names_is_seen() {
    is_in_time(&[grant(1, 0, 10, 1_000), refused(Some(1), OVER_BY)]);
    is_late(&[grant(1, 0, 10, 1_000), refused(Some(1), OVER_BY + 1)]);
    // Nobody knows when within its time a long attempt was refused.
    let long = Record {
        returned: Some(OVER_BY + 5_000_000),
        ..refused(Some(1), OVER_BY)
    };
    is_in_time(&[grant(1, 0, 10, 1_000), long]);
    is_late(&[grant(1, 0, 10, 1_000), read(Some(1), OVER_BY + 1, OVER_BY + 2)]);
}

#[test]
fn a_lease_that_was_renewed_is_over_by_its_last_renewal() {
    let renewed = renewal(1, 500_000, 500_010, 1_000);
    is_in_time(&[
        grant(1, 0, 10, 1_000),
        renewed.clone(),
        refused(Some(1), 500_000 + OVER_BY),
    ]);
    is_late(&[
        grant(1, 0, 10, 1_000),
        renewed,
        refused(Some(1), 500_000 + OVER_BY + 1),
    ]);
    // A refused one changes nothing.
    let lost = Record {
        outcome: Outcome::Fail,
        ..renewal(1, 900_000, 900_010, 1_000)
    };
    is_late(&[grant(1, 0, 10, 1_000), lost, refused(Some(1), OVER_BY + 1)]);
}

#[test]
fn a_renewal_without_an_answer_may_have_been_applied_at_the_last_moment_and_once() {
    let lost = unanswered(renewal(1, 500_000, 0, 1_000));
    let twice = OVER_BY - 10 + OVER_BY;
    is_in_time(&[grant(1, 0, 10, 1_000), lost.clone(), refused(Some(1), twice)]);
    is_late(&[grant(1, 0, 10, 1_000), lost, refused(Some(1), twice + 1)]);
}

#[test]
fn a_lease_without_a_deadline_is_never_late() {
    let unending = Record {
        ttl_ms: None,
        ..grant(1, 0, 10, 1)
    };
    is_in_time(&[unending.clone(), refused(Some(1), 9_000_000_000)]);
    let ended = release(1, 20, 30);
    is_late(&[unending, ended, refused(Some(1), 9_000_000_000)]);
}

#[test]
fn a_refusal_for_a_lease_that_was_released_or_followed_is_seen() {
    let released = [grant(1, 0, 10, 1_000), release(1, 20, 30)];
    let after = |record| [released.to_vec(), vec![record]].concat();
    is_late(&after(refused(Some(1), 31)));
    is_in_time(&after(refused(Some(1), 30)));
    is_late(&[
        grant(1, 0, 10, 1_000),
        grant(2, 20, 30, 1_000),
        refused(Some(1), 31),
    ]);
    let ended = Record {
        outcome: Outcome::Ended,
        token: Some(1),
        ..attempt(Op::Acquire, 20, 30)
    };
    is_late(&[grant(1, 0, 10, 1_000), ended, refused(Some(1), 31)]);
}

#[test]
fn a_holder_who_was_only_seen_counts_from_the_first_sight_with_the_longest_time_asked_for() {
    let lost = unanswered(Record {
        token: None,
        ..under("r", grant(0, 0, 0, 1_000))
    });
    let seen = refused(Some(1), 500_000);
    is_in_time(&[lost.clone(), seen.clone(), refused(Some(1), 500_000 + OVER_BY)]);
    is_late(&[lost, seen, refused(Some(1), 500_000 + OVER_BY + 1)]);
}

#[test]
fn a_refusal_that_names_nobody_is_seen_once_nobody_can_hold_the_lease() {
    is_in_time(&[grant(1, 0, 10, 1_000), refused(None, OVER_BY)]);
    is_late(&[grant(1, 0, 10, 1_000), refused(None, OVER_BY + 1)]);
    is_late(&[refused(None, 10)]);
    // Somebody of whom nobody heard may hold it: nothing can be said.
    let lost = unanswered(Record {
        token: None,
        ..under("r", grant(0, 20, 0, 1_000))
    });
    let with_lost = [grant(1, 0, 10, 1_000), lost, refused(None, OVER_BY + 1)];
    assert_eq!(judge(&with_lost, &[]), (true, 0));
    // Its retry has the outcome of both.
    let retried = under("r", grant(2, 1_000_100, 1_000_110, 1));
    let settled = [with_lost.to_vec(), vec![retried, refused(None, 2_000_000)]].concat();
    is_late(&settled);
}

#[test]
fn an_outage_lengthens_a_lease_by_no_more_than_itself() {
    let outage = Outage {
        from: 500_000,
        to: 3_500_000,
    };
    let longer = OVER_BY + 3_000_000 + 200_000;
    let with = |call| [grant(1, 0, 10, 1_000), refused(Some(1), call)];
    assert_eq!(judge(&with(longer), &[outage]), (true, 1));
    assert_eq!(judge(&with(longer + 1), &[outage]), (false, 1));
    // One that was over before it, and one that began after it, are not longer for it.
    let after = Outage {
        from: OVER_BY + 1,
        to: 9_000_000,
    };
    assert_eq!(judge(&with(OVER_BY + 1), &[after]), (false, 1));
    let later = [
        grant(1, 3_500_000, 3_500_010, 1_000),
        refused(Some(1), 3_500_001 + OVER_BY),
    ];
    assert_eq!(judge(&later, &[outage]), (false, 1));
    // Two of them add up.
    let [one, other] = [600_000, 1_200_000].map(|from| Outage {
        from,
        to: from + 100_000,
    });
    assert_eq!(judge(&with(OVER_BY + 600_000), &[other, one]), (true, 1));
    assert_eq!(judge(&with(OVER_BY + 600_001), &[other, one]), (false, 1));
}

#[test]
fn of_one_moment_an_answer_is_known_to_whoever_asks_then() {
    // In simulated time much happens at once.
    let at_once = [
        grant(1, 0, 0, 1_000),
        release(1, 5, 5),
        grant(2, 5, 5, 1_000),
        refused(Some(2), 5),
    ];
    is_in_time(&at_once);
    let stale = [at_once.to_vec(), vec![refused(Some(1), 6)]].concat();
    is_late(&stale);
}
