//! K9: times that are longer than the truth.

use super::*;
use crate::history::{Outage, Promise, check_times};

const PROMISE: Promise = Promise {
    commit: 100_000,
    leader_change: 200_000,
};

/// A client says that it holds for so long.
fn hold(token: u64, at: Micros, ttl_ms: u64) -> Record {
    Record {
        op: Op::Hold,
        ..grant(token, at, at, ttl_ms)
    }
}

fn told(token: u64, call: Micros, ttl_ms: u64) -> Record {
    Record {
        ttl_ms: Some(ttl_ms),
        ..read(Some(token), call, call + 10)
    }
}

#[track_caller]
fn judge(records: &[Record], outages: &[Outage]) -> bool {
    let (found, judged) = check_times(records, outages, PROMISE);
    assert!(
        found.iter().all(|violation| violation.rule == Rule::HonestTime),
        "{found:#?}"
    );
    assert!(judged.told > 0, "nothing was judged");
    found.is_empty()
}

#[track_caller]
fn is_honest(records: &[Record]) {
    assert!(judge(records, &[]));
}

#[track_caller]
fn is_not(records: &[Record]) {
    assert!(!judge(records, &[]));
}

#[test]
fn a_holder_that_counts_from_the_answer_is_seen() {
    // Its answer took half a second.
    let granted = grant(1, 0, 500_000, 1_000);
    is_honest(&[granted.clone(), hold(1, 500_000, 499)]);
    is_not(&[granted.clone(), hold(1, 500_000, 1_000)]);
    is_not(&[granted, hold(1, 500_000, 500)]);
}

#[test]
fn a_holder_counts_from_its_last_good_renewal() {
    let granted = grant(1, 0, 10, 1_000);
    let renewed = renewal(1, 800_000, 800_010, 1_000);
    is_honest(&[granted.clone(), renewed.clone(), hold(1, 900_000, 899)]);
    is_not(&[granted.clone(), renewed, hold(1, 900_000, 950)]);
    // What was refused, is under way or was never answered lengthens nothing.
    for no_word in [
        unanswered(renewal(1, 800_000, 0, 1_000)),
        renewal(1, 800_000, 900_001, 1_000),
        Record {
            outcome: Outcome::Fail,
            ..renewal(1, 800_000, 800_010, 1_000)
        },
    ] {
        is_honest(&[granted.clone(), no_word.clone(), hold(1, 900_000, 99)]);
        is_not(&[granted.clone(), no_word, hold(1, 900_000, 200)]);
    }
}

#[test]
fn a_holder_that_forgets_a_shorter_renewal_or_its_release_is_seen() {
    let granted = grant(1, 0, 10, 1_000);
    let shorter = unanswered(renewal(1, 100_000, 0, 100));
    is_honest(&[granted.clone(), shorter.clone(), hold(1, 150_000, 40)]);
    is_not(&[granted.clone(), shorter, hold(1, 150_000, 800)]);
    let released = unanswered(release(1, 100_000, 0));
    is_not(&[granted.clone(), released.clone(), hold(1, 150_000, 1)]);
    is_honest(&[
        granted.clone(),
        released,
        hold(1, 150_000, 0),
        hold(1, 90_000, 900),
    ]);
    is_not(&[granted, hold(2, 150_000, 1)]);
}

#[test]
fn somebody_who_is_told_more_than_a_lease_can_last_is_seen() {
    let granted = grant(1, 0, 500_000, 1_000);
    // Nobody knows when it was granted: at the answer, at the latest.
    is_honest(&[granted.clone(), told(1, 500_001, 1_000)]);
    is_honest(&[granted.clone(), told(1, 900_000, 601)]);
    is_not(&[granted, told(1, 900_000, 650)]);
}

#[test]
fn a_retry_that_is_told_the_whole_time_again_is_seen() {
    let first = under("r", grant(1, 0, 10, 1_000));
    let again = |ttl| under("r", grant(1, 500_000, 500_010, ttl));
    is_honest(&[first.clone(), again(500)]);
    is_not(&[first, again(1_000)]);
}

#[test]
fn an_outage_may_leave_more_than_there_was_by_its_length() {
    let outage = Outage {
        from: 100_000,
        to: 400_000,
    };
    let granted = grant(1, 0, 10, 1_000);
    assert!(judge(&[granted.clone(), told(1, 500_000, 1_000)], &[outage]));
    assert!(!judge(&[granted, told(1, 500_000, 1_003)], &[outage]));
}

#[test]
fn what_was_seen_before_a_release_or_a_force_is_honest_however_late_the_answer() {
    let granted = grant(1, 0, 10, 1_000);
    let force = |call, returned| attempt(Op::Force, call, returned);
    for end in [release(1, 100_000, 100_010), force(100_000, 100_010)] {
        let asked = |at| Record {
            returned: Some(200_000),
            ..told(1, at, 900)
        };
        is_honest(&[granted.clone(), end.clone(), asked(99_999)]);
        // Whoever asks after that is told a time that there is not, by a store that is late as well.
        let (found, _) = check_times(&[granted.clone(), end, asked(100_011)], &[], PROMISE);
        assert!(
            found.iter().any(|violation| violation.rule == Rule::HonestTime),
            "{found:#?}"
        );
    }
}
