//! The order of the checks, each rule by a test of its own.

use lease_core::{Fence, FenceToken, LeaseName};

use super::{Attempt, ClaimOutcome, ConflictSubject, Decision, NextClaim, Protections, View, decide};
use crate::event_id::RewardEventId;
use crate::types::{Claim, ClaimField, ClaimId, Receipt, UnixMillis};

const AT: UnixMillis = UnixMillis::new(1_000);

fn token(number: u64) -> FenceToken {
    FenceToken::new(number).unwrap()
}

fn fence(number: u64) -> Fence {
    Fence::new(LeaseName::new("lock:reward:player-42").unwrap(), token(number))
}

fn event() -> RewardEventId {
    RewardEventId::parse("week-34:player-42:rank-3").unwrap()
}

/// Attempt `try-1` for 500 gold, with this token.
fn claim(number: u64) -> Claim {
    claim_of(number, "gold", 500, "try-1")
}

fn claim_of(number: u64, item: &str, amount: i64, attempt: &str) -> Claim {
    Claim::builder(fence(number), 42, event(), amount)
        .item(item)
        .attempt(attempt)
        .build()
        .unwrap()
}

fn unfenced(attempt: &str) -> Claim {
    Claim::unfenced_builder(42, event(), 500)
        .item("gold")
        .attempt(attempt)
        .build()
        .unwrap()
}

/// Nothing seen, nothing granted, next is claim 7.
fn blank() -> View {
    View {
        attempt: Attempt::Unknown,
        seen: None,
        applied: None,
        next: NextClaim {
            claim_id: ClaimId::new(7),
            at: AT,
        },
    }
}

/// The event was granted to another attempt, as claim 5 with token 101.
fn granted() -> View {
    View {
        seen: Some(token(101)),
        applied: Some(first_receipt()),
        ..blank()
    }
}

fn first_receipt() -> Receipt {
    Receipt::issue(
        &claim_of(101, "gold", 500, "try-0"),
        ClaimId::new(5),
        UnixMillis::new(10),
    )
}

fn run(view: &View, claim: &Claim) -> Decision {
    let decision = decide(view, claim, Protections::ALL);
    assert_eq!(
        decision,
        decide(view, claim, Protections::ALL),
        "deciding is pure"
    );
    decision
}

#[track_caller]
fn writes_nothing(decision: &Decision) {
    assert_eq!(decision.effects, super::Effects::default());
}

#[test]
fn a_first_claim_is_applied_and_raises_the_fence() {
    let decision = run(&blank(), &claim(101));
    let receipt = Receipt::issue(&claim(101), ClaimId::new(7), AT);
    assert_eq!(decision.outcome, ClaimOutcome::Applied(receipt.clone()));
    assert_eq!(decision.effects.raise, Some(fence(101)));
    assert_eq!(decision.effects.insert, Some(receipt.clone()));
    assert_eq!(
        decision.effects.remember,
        Some(ClaimOutcome::Replayed(receipt)),
        "a retry of it is a replay"
    );
}

#[test]
fn the_same_attempt_gets_its_first_answer_again_although_its_token_is_stale_by_now() {
    let answer = ClaimOutcome::Replayed(first_receipt());
    let view = View {
        attempt: Attempt::Answered(claim(101).body(), answer.clone()),
        seen: Some(token(200)),
        ..granted()
    };
    let decision = run(&view, &claim(101));
    assert_eq!(decision.outcome, answer);
    writes_nothing(&decision);
}

#[test]
fn a_repeated_refusal_keeps_its_refusal_although_the_event_was_granted_since() {
    let refusal = ClaimOutcome::Stale {
        presented: token(101),
        seen: token(102),
        applied: None,
    };
    let view = View {
        attempt: Attempt::Answered(claim(101).body(), refusal.clone()),
        ..granted()
    };
    let decision = run(&view, &claim(101));
    assert_eq!(decision.outcome, refusal);
    writes_nothing(&decision);
}

#[test]
fn a_used_attempt_id_with_another_body_conflicts_and_names_each_field() {
    let other = Claim::builder(
        Fence::new(LeaseName::new("lock:other").unwrap(), token(101)),
        43,
        RewardEventId::parse("week-35").unwrap(),
        501,
    )
    .item("gems")
    .attempt("try-1")
    .build()
    .unwrap();
    for attempt in [
        Attempt::Bound(other.body()),
        Attempt::Answered(other.body(), ClaimOutcome::Replayed(first_receipt())),
    ] {
        let decision = run(&View { attempt, ..blank() }, &claim(101));
        assert_eq!(
            decision.outcome,
            ClaimOutcome::Conflict {
                subject: ConflictSubject::Attempt,
                fields: vec![
                    ClaimField::Resource,
                    ClaimField::Player,
                    ClaimField::Event,
                    ClaimField::Item,
                    ClaimField::Amount
                ],
            }
        );
        writes_nothing(&decision);
    }
}

#[test]
fn an_attempt_conflict_is_found_before_a_stale_token() {
    let view = View {
        attempt: Attempt::Bound(claim_of(90, "gold", 1, "try-1").body()),
        seen: Some(token(200)),
        ..granted()
    };
    let decision = run(&view, &claim(100));
    assert!(matches!(
        decision.outcome,
        ClaimOutcome::Conflict {
            subject: ConflictSubject::Attempt,
            ..
        }
    ));
}

#[test]
fn a_message_delivered_again_under_a_new_token_goes_on_to_the_fence_and_the_event() {
    let bound = Attempt::Bound(claim(101).body());
    let replay = View {
        attempt: bound.clone(),
        ..granted()
    };
    assert_eq!(
        run(&replay, &claim(102)).outcome,
        ClaimOutcome::Replayed(first_receipt())
    );
    let stale = View {
        attempt: bound,
        seen: Some(token(200)),
        ..granted()
    };
    assert!(matches!(
        run(&stale, &claim(102)).outcome,
        ClaimOutcome::Stale { .. }
    ));
}

#[test]
fn a_stale_token_is_refused_and_shown_the_receipt() {
    let decision = run(&granted(), &claim(100));
    let refusal = ClaimOutcome::Stale {
        presented: token(100),
        seen: token(101),
        applied: Some(first_receipt()),
    };
    assert_eq!(decision.outcome, refusal);
    assert_eq!(decision.effects.remember, Some(refusal));
}

#[test]
fn a_stale_token_is_refused_before_the_event_is_looked_at() {
    let decision = run(&granted(), &claim_of(100, "gems", 1, "try-1"));
    assert!(matches!(decision.outcome, ClaimOutcome::Stale { .. }));
}

#[test]
fn a_refusal_never_moves_the_fence_and_never_binds_the_event() {
    let view = View {
        seen: Some(token(101)),
        ..blank()
    };
    let refused = run(&view, &claim(100));
    assert_eq!((refused.effects.raise, refused.effects.insert), (None, None));
    let next_holder = run(&view, &claim_of(101, "gold", 500, "try-2"));
    assert!(matches!(next_holder.outcome, ClaimOutcome::Applied(_)));
}

#[test]
fn an_equal_token_is_accepted_and_the_fence_stays() {
    let view = View {
        seen: Some(token(101)),
        ..blank()
    };
    let decision = run(&view, &claim(101));
    assert!(matches!(decision.outcome, ClaimOutcome::Applied(_)));
    assert_eq!(decision.effects.raise, None);
}

#[test]
fn a_taken_event_is_replayed_to_an_equal_claim_and_raises_the_fence() {
    let decision = run(&granted(), &claim(102));
    assert_eq!(decision.outcome, ClaimOutcome::Replayed(first_receipt()));
    assert_eq!(decision.effects.raise, Some(fence(102)));
    assert_eq!(decision.effects.insert, None);
    assert_eq!(decision.effects.remember, Some(decision.outcome));
}

#[test]
fn a_taken_event_conflicts_with_another_item_or_amount_and_raises_the_fence() {
    for (item, amount, fields) in [
        ("gems", 500, vec![ClaimField::Item]),
        ("gold", 501, vec![ClaimField::Amount]),
        ("", 1, vec![ClaimField::Item, ClaimField::Amount]),
    ] {
        let decision = run(&granted(), &claim_of(102, item, amount, "try-1"));
        let conflict = ClaimOutcome::Conflict {
            subject: ConflictSubject::Event,
            fields,
        };
        assert_eq!(decision.outcome, conflict);
        assert_eq!(decision.effects.raise, Some(fence(102)));
        assert_eq!(decision.effects.insert, None);
        assert_eq!(decision.effects.remember, Some(conflict));
    }
}

#[test]
fn the_resource_of_the_first_claim_does_not_matter_to_its_event() {
    let elsewhere = Claim::builder(
        Fence::new(LeaseName::new("lock:other").unwrap(), token(1)),
        42,
        event(),
        500,
    )
    .item("gold")
    .build()
    .unwrap();
    let view = View {
        seen: None,
        ..granted()
    };
    assert_eq!(
        run(&view, &elsewhere).outcome,
        ClaimOutcome::Replayed(first_receipt())
    );
}

#[test]
fn an_unfenced_claim_is_held_by_the_event_key_alone_and_never_moves_the_fence() {
    let first = run(&blank(), &unfenced("try-1"));
    let ClaimOutcome::Applied(receipt) = &first.outcome else {
        panic!("{first:?}");
    };
    assert_eq!(receipt.token(), None, "it is marked");
    assert_eq!(first.effects.raise, None);

    let second = run(&granted(), &unfenced("try-2"));
    assert_eq!(second.outcome, ClaimOutcome::Replayed(first_receipt()));
    assert_eq!(second.effects.raise, None);
}

#[test]
fn the_highest_token_of_all_is_taken() {
    let decision = run(&granted(), &claim(i64::MAX.cast_unsigned()));
    assert!(matches!(decision.outcome, ClaimOutcome::Replayed(_)));
}

/// The negative controls are real: without the rule, the wrong thing happens.
#[test]
fn without_a_protection_the_wrong_thing_happens() {
    use super::Protection;

    let stale = Protections::all_without(Protection::Fencing);
    let view = View {
        seen: Some(token(101)),
        ..blank()
    };
    assert!(matches!(
        decide(&view, &claim(100), stale).outcome,
        ClaimOutcome::Applied(_)
    ));

    let twice = Protections::all_without(Protection::UniqueEvent);
    assert!(matches!(
        decide(&granted(), &claim(102), twice).outcome,
        ClaimOutcome::Applied(_)
    ));
}
