//! The checker is shown histories that are wrong in one way each: it must say in which.

mod honest;
mod late;

use super::{Micros, Op, Outcome, Record, Rule, check};

/// An attempt on lease `a` from one microsecond to another, with an answer.
fn attempt(op: Op, call: Micros, returned: Micros) -> Record {
    Record {
        process: 1,
        op,
        resource: "a".to_owned(),
        request_id: None,
        call,
        returned: Some(returned),
        outcome: Outcome::Ok,
        token: None,
        ttl_ms: None,
    }
}

fn grant(token: u64, call: Micros, returned: Micros, ttl_ms: u64) -> Record {
    Record {
        token: Some(token),
        ttl_ms: Some(ttl_ms),
        ..attempt(Op::Acquire, call, returned)
    }
}

fn renewal(token: u64, call: Micros, returned: Micros, ttl_ms: u64) -> Record {
    Record {
        op: Op::Renew,
        ..grant(token, call, returned, ttl_ms)
    }
}

fn release(token: u64, call: Micros, returned: Micros) -> Record {
    Record {
        token: Some(token),
        ..attempt(Op::Release, call, returned)
    }
}

fn read(token: Option<u64>, call: Micros, returned: Micros) -> Record {
    Record {
        token,
        ..attempt(Op::Read, call, returned)
    }
}

fn under(request: &str, record: Record) -> Record {
    Record {
        request_id: Some(request.to_owned()),
        ..record
    }
}

fn of(resource: &str, record: Record) -> Record {
    Record {
        resource: resource.to_owned(),
        ..record
    }
}

fn unanswered(record: Record) -> Record {
    Record {
        returned: None,
        outcome: Outcome::Unknown,
        ..record
    }
}

#[track_caller]
fn breaks(rules: &[Rule], records: &[Record]) {
    let found = check(records);
    let mut broken: Vec<Rule> = found.iter().map(|violation| violation.rule).collect();
    broken.sort_unstable();
    broken.dedup();
    assert_eq!(broken, rules, "{found:#?}");
}

#[test]
fn a_right_history_breaks_no_rule() {
    breaks(
        &[],
        &[
            grant(1, 0, 10, 1_000),
            renewal(1, 500_000, 500_010, 1_000),
            read(Some(1), 600_000, 600_010),
            of("b", grant(2, 600_000, 600_020, 9_000)),
            release(1, 700_000, 700_010),
            read(None, 700_020, 700_030),
            grant(3, 700_005, 700_020, 1_000),
            // Its end is the store's word, and comes in time.
            grant(4, 1_700_020, 1_700_030, 1_000),
        ],
    );
}

#[test]
fn tokens_that_fall_or_come_twice_are_seen() {
    let twice = [grant(5, 0, 10, 1), of("b", grant(5, 5, 20, 1))];
    breaks(&[Rule::TokenOrder], &twice);
    let falling = [grant(5, 0, 10, 1), of("b", grant(4, 20, 30, 1))];
    breaks(&[Rule::TokenOrder, Rule::TokenFloor], &falling);
    // At the same time they may come in either order.
    breaks(&[], &[grant(5, 0, 10, 1), of("b", grant(4, 5, 30, 1))]);
}

#[test]
fn a_token_below_one_that_was_only_seen_is_seen() {
    let refused = Record {
        outcome: Outcome::Fail,
        ..grant(9, 0, 10, 1)
    };
    breaks(&[Rule::TokenFloor], &[refused, grant(8, 20, 30, 1)]);
    breaks(
        &[Rule::TokenFloor],
        &[of("b", read(Some(9), 0, 10)), grant(9, 20, 30, 1)],
    );
}

#[test]
fn two_certain_holders_are_seen() {
    let both = [grant(1, 0, 10, 1_000), grant(2, 20, 30, 1_000)];
    breaks(&[Rule::MutualExclusion, Rule::NoEarlyExpiry], &both);
    let after_a_renewal = [
        grant(1, 0, 10, 1_000),
        renewal(1, 900_000, 900_010, 1_000),
        grant(2, 1_500_000, 1_500_010, 1_000),
    ];
    breaks(&[Rule::MutualExclusion, Rule::NoEarlyExpiry], &after_a_renewal);
}

#[test]
fn a_holder_without_a_deadline_is_certain_for_ever() {
    let unending = Record {
        ttl_ms: None,
        ..grant(1, 0, 10, 1)
    };
    let taken = [unending.clone(), grant(2, 9_000_000_000, 9_000_000_010, 1)];
    breaks(&[Rule::MutualExclusion, Rule::NoEarlyExpiry], &taken);
    breaks(&[], &[unending, release(1, 20, 30), grant(2, 25, 35, 1)]);
}

#[test]
fn a_grant_before_the_end_of_another_is_seen_even_if_it_was_over_at_once() {
    // Its answer came so late that its own holder was never certain.
    let brief = [grant(1, 0, 10, 1_000), grant(2, 20, 5_000, 1)];
    breaks(&[Rule::NoEarlyExpiry], &brief);
}

#[test]
fn a_read_that_shows_somebody_else_or_nobody_is_seen() {
    breaks(
        &[Rule::NoEarlyExpiry],
        &[grant(1, 0, 10, 1_000), read(None, 20, 30)],
    );
    breaks(
        &[Rule::NoEarlyExpiry],
        &[grant(1, 0, 10, 1_000), read(Some(2), 20, 30)],
    );
    // Not certain yet, or not any more, at some moment of the read.
    breaks(&[], &[grant(1, 0, 10, 1_000), read(None, 5, 30)]);
    breaks(&[], &[grant(1, 0, 10, 1_000), read(None, 20, 999_500)]);
    breaks(
        &[],
        &[
            grant(1, 0, 10, 1_000),
            unanswered(release(1, 15, 0)),
            read(None, 20, 30),
        ],
    );
    let shortened = unanswered(renewal(1, 15, 0, 1));
    breaks(
        &[],
        &[grant(1, 0, 10, 1_000), shortened, read(None, 2_000, 2_010)],
    );
}

#[test]
fn a_renewal_that_is_refused_too_early_is_seen() {
    let refused = |call| Record {
        outcome: Outcome::Fail,
        ..renewal(1, call, call + 10, 1_000)
    };
    breaks(&[Rule::NoEarlyExpiry], &[grant(1, 0, 10, 1_000), refused(20)]);
    breaks(&[], &[grant(1, 0, 10, 1_000), refused(999_500)]);
    breaks(
        &[],
        &[grant(1, 0, 10, 1_000), unanswered(release(1, 15, 0)), refused(20)],
    );
}

#[test]
fn a_renewal_after_anothers_grant_is_seen() {
    let records = [
        grant(1, 0, 10, 1),
        grant(2, 2_000, 2_010, 1),
        renewal(1, 2_020, 2_030, 1),
    ];
    let found = check(&records);
    assert!(
        found
            .iter()
            .any(|violation| violation.rule == Rule::NoZombieRenewal),
        "{found:#?}"
    );
    let refused = Record {
        outcome: Outcome::Fail,
        ..renewal(1, 2_020, 2_030, 1)
    };
    breaks(&[], &[grant(1, 0, 10, 1), grant(2, 2_000, 2_010, 1), refused]);
}

#[test]
fn a_token_that_serves_after_its_release_is_seen() {
    let granted = || under("r", grant(1, 0, 10, 1_000));
    for revived in [
        under("r", grant(1, 40, 50, 1_000)),
        renewal(1, 40, 50, 1_000),
        read(Some(1), 40, 50),
    ] {
        breaks(&[Rule::NoResurrection], &[granted(), release(1, 20, 30), revived]);
    }
    // While the release was under way it may have come first.
    breaks(&[], &[granted(), release(1, 20, 30), read(Some(1), 25, 50)]);
}

#[test]
fn one_request_with_two_tokens_is_seen() {
    let lost = unanswered(Record {
        token: None,
        ..under("r", grant(0, 0, 0, 1))
    });
    let again = |token, call| under("r", grant(token, call, call + 10, 1));
    let two = [
        lost.clone(),
        again(1, 20),
        unanswered(release(1, 31, 0)),
        again(2, 35),
    ];
    breaks(&[Rule::OneTokenPerRequest], &two);
    // A retry counts from the request's first attempt, so its token may be lower than one granted in between.
    breaks(
        &[],
        &[lost, of("b", grant(2, 5, 10, 1)), again(1, 20), again(1, 40)],
    );
}
