//! Callers that are gone, and those that come back: attachments and incarnations.

use super::words::*;
use crate::limits::DETACHED_WAIT_MS;
use crate::machine::{Command, Outcome, Refusal};

/// `a` holds L until 5,000; b waits with a request id, c behind it without one.
fn two_in_line() -> Lab {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 5_000));
    lab.at(1, b_asks(caller(1)));
    lab.at(2, ask("L", "c", 20).waiting(60_000, caller(2)));
    lab
}

fn b_asks(attachment: crate::types::Attachment) -> Ask {
    ask("L", "b", 20).waiting(60_000, attachment).requested("r")
}

#[test]
fn a_detached_wait_keeps_its_place_two_seconds_and_is_not_granted() {
    let mut lab = two_in_line();
    assert_eq!(lab.at(100, detach(caller(1))), Outcome::Done);
    lab.at(100 + DETACHED_WAIT_MS - 1, Command::Tick);
    assert_eq!(lab.told(caller(1)), None);
    assert_eq!(lab.waiters(), 2);
    lab.at(100 + DETACHED_WAIT_MS, Command::Tick);
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Held(_))));
    assert_eq!(lab.waiters(), 1);
}

#[test]
fn a_detached_wait_is_passed_over() {
    let mut lab = two_in_line();
    lab.at(4_000, detach(caller(1)));
    lab.at(5_000, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("c"));
    assert_eq!(lab.told(caller(1)), None);
}

#[test]
fn a_retry_takes_the_detached_place_again_with_a_new_wait() {
    let mut lab = two_in_line();
    lab.at(100, detach(caller(1)));
    assert_eq!(lab.at(1_500, b_asks(caller(3))), Outcome::Queued);
    assert_eq!(lab.told(caller(1)), Some(&Outcome::Moved));
    lab.at(5_000, Command::Tick);
    let told = Outcome::Granted {
        token: token(2),
        remaining_ms: Some(20),
        waited_ms: 3_500,
    };
    assert_eq!(
        lab.told(caller(3)),
        Some(&told),
        "before c, counted from the retry"
    );
}

#[test]
fn who_comes_back_to_a_name_that_is_free_meanwhile_gets_it_at_once() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 5_000));
    lab.at(1, b_asks(caller(1)));
    lab.at(2, detach(caller(1)));
    lab.at(3, release("L", t));
    assert_eq!(lab.holder("L"), None, "nobody is there to be granted anything");
    assert_eq!(lab.at(4, b_asks(caller(2))), Outcome::Queued);
    assert_eq!(granted(lab.told(caller(2)).unwrap()), token(2));
}

#[test]
fn a_name_that_only_a_gone_caller_awaits_is_free_for_others() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 5_000));
    lab.at(1, b_asks(caller(1)));
    lab.at(2, detach(caller(1)));
    lab.at(3, release("L", t));
    lab.grant(4, ask("L", "z", 9_000));
    lab.at(2_002, Command::Tick);
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Held(_))));
}

#[test]
fn a_wait_without_a_request_id_ends_with_its_connection() {
    let mut lab = two_in_line();
    assert_eq!(lab.at(100, detach(caller(2))), Outcome::Done);
    assert!(matches!(lab.told(caller(2)), Some(Outcome::Held(_))));
    assert_eq!(lab.waiters(), 1);
    assert_eq!(lab.at(101, detach(caller(2))), Outcome::NotFound);
}

#[test]
fn detaching_again_does_not_prolong_the_place() {
    let mut lab = two_in_line();
    lab.at(100, detach(caller(1)));
    lab.at(1_000, detach(caller(1)));
    lab.at(100 + DETACHED_WAIT_MS, Command::Tick);
    assert_eq!(lab.waiters(), 1);
}

#[test]
fn detaching_does_not_prolong_a_wait_that_ends_sooner() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 5_000));
    lab.at(1, ask("L", "b", 20).waiting(99, caller(1)).requested("r"));
    lab.at(50, detach(caller(1)));
    lab.at(100, Command::Tick);
    assert_eq!(lab.waiters(), 0);
}

#[test]
fn late_detach_cannot_hit_the_successor() {
    let mut lab = two_in_line();
    lab.at(100, b_asks(caller(3)));
    assert_eq!(lab.at(101, detach(caller(1))), Outcome::NotFound);
    lab.at(5_000, Command::Tick);
    assert_eq!(granted(lab.told(caller(3)).unwrap()), token(2));
}

#[test]
fn a_late_copy_of_an_earlier_attempt_cannot_take_the_wait_back() {
    let mut lab = two_in_line();
    lab.at(100, b_asks(caller(3)));
    // The first attempt's entry was proposed twice; its caller is gone.
    assert_eq!(lab.at(101, b_asks(caller(1))), Outcome::Moved);
    assert_eq!(lab.told(caller(3)), None);
    lab.at(5_000, Command::Tick);
    assert_eq!(granted(lab.told(caller(3)).unwrap()), token(2));
}

#[test]
fn a_copy_of_the_attempt_that_waits_changes_nothing() {
    let mut lab = two_in_line();
    assert_eq!(lab.at(4_000, b_asks(caller(1))), Outcome::Queued);
    lab.at(4_500, detach(caller(1)));
    assert_eq!(
        lab.at(4_600, b_asks(caller(1))),
        Outcome::Queued,
        "its caller stays gone"
    );
    lab.at(5_000, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("c"));
    assert_eq!(lab.told(caller(1)), None);
}

#[test]
fn a_copy_of_an_attempt_whose_wait_is_over_is_told_so_and_does_not_queue_again() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 5_000));
    let attempt = ask("L", "b", 20).waiting(10, caller(1)).requested("r");
    lab.at(1, attempt.clone());
    let outcome = lab.at(11, attempt);
    assert!(matches!(outcome, Outcome::Held(_)));
    assert_eq!(lab.told(caller(1)), Some(&outcome));
    assert_eq!(lab.waiters(), 0);
}

#[test]
fn a_retry_from_another_node_moves_the_wait_there() {
    let mut lab = two_in_line();
    let elsewhere = parked_at(2, 1, 0);
    assert_eq!(lab.at(100, b_asks(elsewhere)), Outcome::Queued);
    assert_eq!(lab.told(caller(1)), Some(&Outcome::Moved));
    lab.at(5_000, Command::Tick);
    assert_eq!(granted(lab.told(elsewhere).unwrap()), token(2));
}

#[test]
fn a_retry_onto_an_attachment_in_use_is_refused_and_moves_nothing() {
    let mut lab = two_in_line();
    assert_eq!(lab.at(100, b_asks(caller(2))), refused(Refusal::AttachmentInUse));
    assert_eq!(lab.effects, []);
}

#[test]
fn ghosts_of_an_earlier_incarnation_are_not_granted() {
    let mut lab = two_in_line();
    lab.at(4_900, node_started(1, 2));
    assert!(
        matches!(lab.told(caller(2)), Some(Outcome::Held(_))),
        "no request id: over at once"
    );
    lab.at(5_000, Command::Tick);
    assert_eq!(lab.holder("L"), None, "nobody is left to be granted");
    lab.at(4_900 + DETACHED_WAIT_MS, Command::Tick);
    assert_eq!(lab.told(caller(1)), Some(&Outcome::WaitOver));
    assert_eq!(lab.machine.stats().bytes, 0);
}

#[test]
fn a_new_life_leaves_its_own_callers_and_other_nodes_alone() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    let (other_node, this_life) = (parked_at(2, 1, 0), parked_at(1, 2, 0));
    lab.at(1, ask("L", "b", 20).waiting(1_000, other_node));
    lab.at(2, ask("L", "c", 20).waiting(1_000, this_life));
    lab.at(3, node_started(1, 2));
    assert_eq!(lab.effects, []);
    assert_eq!(lab.waiters(), 2);
}

#[test]
fn stale_incarnation_refused() {
    let mut lab = two_in_line();
    let stale = refused(Refusal::StaleIncarnation { known: 2 });
    assert_eq!(lab.at(10, node_started(1, 2)), Outcome::Done);
    assert_eq!(lab.at(11, node_started(1, 1)), stale);
    assert_eq!(
        lab.at(11, node_started(1, 2)),
        Outcome::Done,
        "the same one again is fine"
    );
    let held = ask("L", "d", 20).waiting(1_000, caller(9));
    assert_eq!(lab.at(12, held), stale, "it may not queue");
    let free = ask("M", "d", 20).waiting(1_000, caller(9));
    assert_eq!(lab.at(13, free), stale, "nor be granted: whoever asked is gone");
    assert_eq!(
        lab.at(14, b_asks(caller(1))),
        stale,
        "nor attach its own wait again"
    );
    assert_eq!(lab.at(15, b_asks(caller(7))), stale);
    assert_eq!(lab.at(16, b_asks(parked_at(1, 2, 0))), Outcome::Queued);
}

#[test]
fn a_lost_node_takes_its_callers_with_it_up_to_the_incarnation_known() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    let (old, new) = (parked_at(1, 4, 0), parked_at(1, 5, 0));
    lab.at(1, ask("L", "b", 20).waiting(1_000, old));
    lab.at(2, ask("L", "c", 20).waiting(1_000, new));
    let lost = Command::NodeLost {
        node: 1,
        incarnation: 4,
    };
    assert_eq!(lab.at(3, lost), Outcome::Done);
    assert!(matches!(lab.told(old), Some(Outcome::Held(_))));
    assert_eq!(lab.told(new), None);
    // A node that was only cut off may go on serving.
    assert_eq!(
        lab.at(4, ask("L", "d", 20).waiting(1_000, parked_at(1, 4, 1))),
        Outcome::Queued
    );
}

#[test]
fn a_grant_with_a_request_id_stays_for_the_retry_when_its_caller_is_gone() {
    let mut lab = two_in_line();
    lab.at(5_000, Command::Tick);
    assert_eq!(
        lab.at(5_001, detach(caller(1))),
        Outcome::NotFound,
        "the grant came first"
    );
    let retry = lab.at(5_010, b_asks(caller(3)));
    let told = Outcome::Granted {
        token: token(2),
        remaining_ms: Some(10),
        waited_ms: 0,
    };
    assert_eq!(retry, told);
}
