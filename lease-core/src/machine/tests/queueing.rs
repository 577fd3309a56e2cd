//! The queue of a name.

use super::words::*;
use crate::machine::{Command, EndReason, Holder, Outcome, Refusal, SetCondition};

fn woken_with(lab: &Lab, number: u64) -> &Outcome {
    lab.told(caller(number)).unwrap()
}

/// `a` holds L until 50, then b, c and d wait in this order.
fn a_queue() -> Lab {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    for (number, name) in [(1, "b"), (2, "c"), (3, "d")] {
        let outcome = lab.at(number, ask("L", name, 20).waiting(1_000, caller(number)));
        assert_eq!(outcome, Outcome::Queued);
    }
    lab
}

#[test]
fn the_queue_is_served_in_order_of_arrival() {
    let mut lab = a_queue();
    for (at, number, name) in [(50, 1, "b"), (70, 2, "c"), (90, 3, "d")] {
        lab.at(at, Command::Tick);
        assert_eq!(lab.holder("L").as_deref(), Some(name));
        let told = granted(woken_with(&lab, number));
        assert_eq!(lab.machine.get(&key("L")).unwrap().token, told);
    }
    lab.at(110, Command::Tick);
    assert_eq!(lab.machine.stats().leases, 0);
}

#[test]
fn a_grant_from_the_queue_says_how_long_the_attempt_waited_and_what_remains() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(15, ask("L", "b", 20).waiting(1_000, caller(1)));
    lab.at(60, Command::Tick);
    let told = Outcome::Granted {
        token: token(2),
        remaining_ms: Some(20),
        waited_ms: 45,
    };
    assert_eq!(woken_with(&lab, 1), &told);
    assert_eq!(lab.deadline("L").as_millis(), 80, "counted from the grant");
}

#[test]
fn the_head_is_granted_whatever_way_the_lease_ends() {
    let ways: [(u64, Command); 7] = [
        (10, release("L", token(1))),
        (10, release_by_owner("L", "a")),
        (10, force("L", "gone")),
        (10, delete("L")),
        (10, cancel("L", "a", "r")),
        (50, Command::Tick),
        (50, ask("L", "z", 1).into()),
    ];
    for (at, way) in ways {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "a", 50).requested("r"));
        lab.at(1, ask("L", "b", 20).waiting(1_000, caller(1)));
        lab.at(at, way.clone());
        assert_eq!(lab.holder("L").as_deref(), Some("b"), "{way:?}");
        assert_eq!(granted(woken_with(&lab, 1)), token(2), "{way:?}");
    }
}

#[test]
fn a_due_wait_ends_before_anything_is_granted() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(1, ask("L", "b", 20).waiting(49, caller(1)));
    lab.at(2, ask("L", "c", 20).waiting(1_000, caller(2)));
    // Both fall due at 50; b's wait goes first, though b is the head.
    lab.at(50, Command::Tick);
    let Outcome::Held(holder) = woken_with(&lab, 1) else {
        panic!("b was told {:?}", woken_with(&lab, 1));
    };
    assert_eq!(holder.owner, owner("a"));
    assert_eq!(lab.holder("L").as_deref(), Some("c"));
}

#[test]
fn a_due_wait_ends_also_when_the_lease_is_given_up_in_that_very_entry() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 500));
    lab.at(1, ask("L", "b", 20).waiting(49, caller(1)));
    lab.at(2, ask("L", "c", 20).waiting(1_000, caller(2)));
    lab.at(50, release("L", t));
    assert!(matches!(woken_with(&lab, 1), Outcome::Held(_)));
    assert_eq!(granted(woken_with(&lab, 2)), token(2));
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_before_and_says_who_holds() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 500));
    lab.at(10, ask("L", "b", 20).waiting(30, caller(1)));
    lab.at(39, Command::Tick);
    assert_eq!(lab.told(caller(1)), None);
    lab.at(40, Command::Tick);
    let holder = Holder {
        token: token(1),
        owner: owner("a"),
        remaining_ms: Some(460),
        held_for_ms: 40,
        waiters: 0,
    };
    assert_eq!(woken_with(&lab, 1), &Outcome::Held(holder));
    lab.at(500, Command::Tick);
    assert_eq!(lab.told(caller(1)), None, "a wait that is over never wins later");
    assert_eq!(lab.holder("L"), None);
}

#[test]
fn a_wait_of_zero_milliseconds_is_no_wait() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    let outcome = lab.at(1, ask("L", "b", 20).waiting(0, caller(1)));
    assert!(matches!(outcome, Outcome::Held(_)));
    assert_eq!(lab.waiters(), 0);
}

#[test]
fn a_wait_longer_than_time_itself_saturates() {
    let mut lab = Lab::new();
    lab.grant(7, ask("L", "a", 50));
    lab.at(8, ask("L", "b", 20).waiting(u64::MAX, caller(1)));
    lab.at(57, Command::Tick);
    assert_eq!(granted(woken_with(&lab, 1)), token(2));
}

#[test]
fn cancelling_a_wait_wakes_its_caller_and_lets_the_next_one_move_up() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(1, ask("L", "b", 20).waiting(1_000, caller(1)).requested("r"));
    lab.at(2, ask("L", "c", 20).waiting(1_000, caller(2)));
    assert_eq!(lab.at(3, cancel("L", "b", "r")), Outcome::Cancelled);
    assert_eq!(woken_with(&lab, 1), &Outcome::Cancelled);
    lab.at(50, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("c"));
}

#[test]
fn a_superseding_set_leaves_the_queue_standing() {
    let mut lab = a_queue();
    lab.at(10, set("L", "z", px(100), SetCondition::Always));
    assert_eq!(lab.waiters(), 3);
    lab.at(110, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("b"));
}

#[test]
fn a_set_on_a_held_name_never_queues() {
    let mut lab = a_queue();
    let outcome = lab.at(10, set("L", "z", px(100), SetCondition::IfAbsent));
    let current = Some(owner("a"));
    assert_eq!(outcome, Outcome::NotStored { current });
    assert_eq!(lab.waiters(), 3);
}

#[test]
fn shortening_a_lease_brings_the_head_forward() {
    let mut lab = a_queue();
    lab.at(10, pexpire("L", 5));
    assert_eq!(lab.machine.next_due().unwrap().as_millis(), 15);
    lab.at(15, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("b"));
}

#[test]
fn one_attachment_parks_one_caller() {
    let mut lab = a_queue();
    lab.grant(4, ask("M", "a", 50));
    let outcome = lab.at(5, ask("M", "b", 20).waiting(1_000, caller(1)));
    assert_eq!(outcome, refused(Refusal::AttachmentInUse));
    assert_eq!(lab.waiters(), 3);
}

#[test]
fn when_tokens_run_out_whoever_stands_in_line_is_told_so() {
    let mut lab = a_queue();
    let floor = crate::limits::ISSUED_TOKEN_MAX;
    lab.at(10, Command::RaiseTokenFloor { floor });
    lab.at(50, Command::Tick);
    for number in 1..=3 {
        assert_eq!(woken_with(&lab, number), &refused(Refusal::TokensExhausted));
    }
    let stats = lab.machine.stats();
    assert_eq!((stats.leases, stats.waiters, stats.bytes), (0, 0, 0));
    assert_eq!(lab.machine.next_due(), None);
    assert_eq!(lab.at(51, renew("L", token(1), 5)), lost(EndReason::Expired));
}
