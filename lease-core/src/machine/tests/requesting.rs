//! Request ids: the retry of a lost answer, and the memory that it rests on.

use super::words::*;
use crate::machine::{Command, EndReason, LimitKind, Limits, Outcome, Refusal};

fn memory(request_memory_ms: u64) -> Command {
    Command::SetLimits(Limits {
        request_memory_ms,
        ..Limits::default()
    })
}

fn ended(number: u64, reason: EndReason) -> Outcome {
    Outcome::Ended {
        token: Some(token(number)),
        reason,
    }
}

#[test]
fn retry_gets_same_token_and_remaining_as_of_the_retry() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50).requested("r"));
    let again = lab.at(30, ask("L", "a", 50).requested("r"));
    let told = Outcome::Granted {
        token: t,
        remaining_ms: Some(20),
        waited_ms: 0,
    };
    assert_eq!(again, told);
    assert_eq!(lab.deadline("L").as_millis(), 50, "a retry is no renewal");
    assert_eq!(lab.machine.stats().last_token, t.get(), "a retry takes no token");
    assert_eq!(lab.effects, []);
}

#[test]
fn a_retry_after_a_renewal_sees_the_renewed_deadline() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50).requested("r"));
    lab.at(30, renew("L", t, 100));
    let again = lab.at(60, ask("L", "a", 50).requested("r"));
    assert!(matches!(
        again,
        Outcome::Granted {
            remaining_ms: Some(70),
            ..
        }
    ));
}

#[test]
fn a_retry_at_the_deadline_is_told_that_it_ended() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50).requested("r"));
    let again = lab.at(50, ask("L", "a", 50).requested("r"));
    assert_eq!(again, ended(1, EndReason::Expired));
}

#[test]
fn a_retry_that_arrives_as_its_wait_is_granted_gets_that_grant() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    let attempt = |number| ask("L", "b", 20).waiting(1_000, caller(number)).requested("r");
    lab.at(1, attempt(1));
    assert_eq!(granted(&lab.at(50, attempt(2))), token(2));
    assert_eq!(granted(lab.told(caller(1)).unwrap()), token(2));
}

#[test]
fn a_retry_of_a_wait_that_is_due_queues_anew() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 500));
    let attempt = |number| ask("L", "b", 20).waiting(10, caller(number)).requested("r");
    lab.at(1, attempt(1));
    lab.at(2, ask("L", "c", 20).waiting(1_000, caller(2)));
    assert_eq!(lab.at(11, attempt(3)), Outcome::Queued);
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Held(_))));
    lab.at(12, force("L", ""));
    assert_eq!(lab.holder("L").as_deref(), Some("c"), "the old place is gone");
}

#[test]
fn a_retry_without_a_wait_gives_the_place_up() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 500));
    lab.at(1, ask("L", "b", 20).waiting(100, caller(1)).requested("r"));
    let outcome = lab.at(2, ask("L", "b", 20).requested("r"));
    assert!(matches!(outcome, Outcome::Held(_)));
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Held(_))));
    assert_eq!(lab.waiters(), 0);
}

#[test]
fn the_scope_of_a_request_is_its_database_name_and_owner() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50).requested("r"));
    let others = [
        ask("M", "a", 50).requested("r"),
        ask("L", "a", 50).in_database(1).requested("r"),
    ];
    for other in others {
        lab.grant(1, other);
    }
    for other in [
        ask("L", "b", 50).requested("r"),
        ask("L", "a", 50).requested("r2"),
    ] {
        assert!(matches!(lab.at(2, other), Outcome::Held(_)));
    }
}

#[test]
fn ended_request_never_granted_again_within_memory() {
    let mut lab = Lab::new();
    lab.at(0, memory(1_000));
    let t = lab.grant(0, ask("L", "a", 50).requested("r"));
    lab.at(10, release("L", t));
    for at in [11, 500, 1_010] {
        let again = lab.at(at, ask("L", "a", 50).requested("r").waiting(9, caller(1)));
        assert_eq!(again, ended(1, EndReason::Released), "at {at}");
        assert_eq!(lab.holder("L"), None);
    }
    assert_eq!(
        lab.grant(1_011, ask("L", "a", 50).requested("r")),
        token(2),
        "forgotten"
    );
}

#[test]
fn a_held_or_waiting_request_is_remembered_however_long() {
    let mut lab = Lab::new();
    lab.at(0, memory(10));
    lab.grant(0, ask("L", "a", 100_000).requested("r"));
    lab.at(1, ask("L", "b", 20).waiting(100_000, caller(1)).requested("r"));
    let again = lab.at(50_000, ask("L", "a", 5).requested("r"));
    assert_eq!(granted(&again), token(1));
    let again = ask("L", "b", 20).waiting(100_000, caller(2)).requested("r");
    assert_eq!(lab.at(50_000, again), Outcome::Queued);
    assert_eq!(lab.waiters(), 1);
}

#[test]
fn a_wait_that_ran_out_may_be_asked_again_under_its_request_id() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(1, ask("L", "b", 20).waiting(10, caller(1)).requested("r"));
    lab.at(11, Command::Tick);
    assert_eq!(lab.machine.stats().requests, 0);
    assert_eq!(lab.grant(50, ask("L", "b", 20).requested("r")), token(2));
}

#[test]
fn request_memory_full_refuses_and_evicts_nothing() {
    let mut lab = Lab::new();
    lab.at(
        0,
        Command::SetLimits(Limits {
            requests_max: 3,
            request_memory_ms: 1_000,
            ..Limits::default()
        }),
    );
    let over = lab.grant(0, ask("A", "a", 50).requested("r"));
    lab.at(1, release("A", over));
    lab.grant(2, ask("B", "a", 5_000).requested("r"));
    lab.at(3, ask("B", "b", 20).waiting(5_000, caller(1)).requested("r"));
    let full = refused(Refusal::Limit {
        kind: LimitKind::Requests,
        max: 3,
    });
    assert_eq!(lab.at(4, ask("C", "a", 50).requested("r")), full);
    assert_eq!(lab.at(4, cancel("C", "a", "never-came")), full);
    lab.grant(4, ask("C", "a", 50));
    // All three are still known.
    assert_eq!(
        lab.at(5, ask("A", "a", 50).requested("r")),
        ended(1, EndReason::Released)
    );
    assert_eq!(granted(&lab.at(5, ask("B", "a", 50).requested("r"))), token(2));
    assert_eq!(lab.at(5, cancel("B", "b", "r")), Outcome::Cancelled);
    // The first one's time of memory is over.
    lab.grant(1_002, ask("D", "a", 50).requested("r"));
}

#[test]
fn cancel_before_arrival() {
    let mut lab = Lab::new();
    assert_eq!(lab.at(0, cancel("L", "a", "r")), Outcome::NotFound);
    let late = lab.at(1, ask("L", "a", 50).requested("r").waiting(100, caller(1)));
    assert_eq!(
        late,
        Outcome::Ended {
            token: None,
            reason: EndReason::Cancelled
        }
    );
    assert_eq!(lab.holder("L"), None);
    assert_eq!(lab.waiters(), 0);
    lab.grant(2, ask("L", "a", 50).requested("r2"));
}

#[test]
fn a_cancelled_wait_is_never_granted_to_a_late_copy() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    let attempt = ask("L", "b", 20).waiting(1_000, caller(1)).requested("r");
    lab.at(1, attempt.clone());
    assert_eq!(lab.at(2, cancel("L", "b", "r")), Outcome::Cancelled);
    lab.at(3, release("L", t));
    let copy = lab.at(4, attempt);
    assert_eq!(
        copy,
        Outcome::Ended {
            token: None,
            reason: EndReason::Cancelled
        }
    );
}

#[test]
fn cancelling_a_granted_request_releases_its_lease() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50).requested("r"));
    lab.at(1, ask("L", "b", 20).waiting(1_000, caller(1)));
    assert_eq!(lab.at(2, cancel("L", "a", "r")), Outcome::Released { token: t });
    assert_eq!(granted(lab.told(caller(1)).unwrap()), token(2));
    assert_eq!(lab.at(3, cancel("L", "a", "r")), Outcome::NotFound);
    assert_eq!(lab.holder("L").as_deref(), Some("b"));
}

#[test]
fn cancelling_a_request_whose_lease_is_due_ends_nothing_but_that() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50).requested("r"));
    lab.at(1, ask("L", "b", 20).waiting(1_000, caller(1)).requested("r"));
    assert_eq!(lab.at(50, cancel("L", "a", "r")), Outcome::NotFound);
    assert_eq!(lab.holder("L").as_deref(), Some("b"));
    let again = lab.at(51, ask("L", "a", 50).requested("r"));
    assert_eq!(again, ended(1, EndReason::Expired));
}

#[test]
fn cancelling_again_does_not_prolong_the_memory() {
    let mut lab = Lab::new();
    lab.at(0, memory(100));
    lab.at(0, cancel("L", "a", "r"));
    lab.at(90, cancel("L", "a", "r"));
    lab.grant(101, ask("L", "a", 50).requested("r"));
}
