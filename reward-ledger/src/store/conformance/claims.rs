//! The outcomes, one by one.

use lease_core::Fence;

use super::{applied, claim, event, gold, is_sound, resource, seen, token};
use crate::config::LedgerBuilder;
use crate::core::{ClaimOutcome, ConflictSubject};
use crate::types::{Claim, ClaimField, PlayerId};

pub(super) async fn a_claim_is_applied_once_and_replayed_byte_for_byte(open: LedgerBuilder) {
    let ledger = open.open();
    let first = applied(claim(&ledger, gold(101, 42, "week-34").attempt("try-1")).await);
    assert_eq!(first.player(), PlayerId::new(42));
    assert_eq!(first.token(), Some(token(101)));
    assert_eq!(first.attempt().as_str(), "try-1");

    for again in ["try-1", "try-2"] {
        let outcome = claim(&ledger, gold(101, 42, "week-34").attempt(again)).await;
        assert!(matches!(outcome, ClaimOutcome::Replayed(_)), "{outcome:?}");
        let bytes = outcome.receipt().map(|receipt| receipt.as_bytes().to_vec());
        assert_eq!(bytes.as_deref(), Some(first.as_bytes()), "{again}");
    }
    let read = ledger.get(42, &event("week-34")).await;
    assert_eq!(
        read.ok().flatten().as_ref().map(|r| r.as_bytes()),
        Some(first.as_bytes())
    );
    assert!(matches!(ledger.get(42, &event("week-35")).await, Ok(None)));
    is_sound(&ledger).await;
}

pub(super) async fn a_stale_token_is_refused_and_shown_the_receipt(open: LedgerBuilder) {
    let ledger = open.open();
    let first = applied(claim(&ledger, gold(102, 42, "week-34")).await);
    let refused = claim(&ledger, gold(101, 42, "week-34")).await;
    assert_eq!(
        refused,
        ClaimOutcome::Stale {
            presented: token(101),
            seen: token(102),
            applied: Some(first),
        }
    );
    assert!(matches!(
        claim(&ledger, gold(101, 42, "week-35")).await,
        ClaimOutcome::Stale { applied: None, .. }
    ));
    assert!(
        matches!(ledger.get(42, &event("week-35")).await, Ok(None)),
        "a stale holder gets no other event either"
    );
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(102));
    is_sound(&ledger).await;
}

pub(super) async fn a_refusal_binds_the_attempt_and_never_the_event(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(102, 42, "week-33")).await);
    let refused = claim(&ledger, gold(101, 42, "week-34")).await;
    assert!(matches!(refused, ClaimOutcome::Stale { .. }));
    applied(claim(&ledger, gold(102, 42, "week-34")).await);
    is_sound(&ledger).await;
}

pub(super) async fn a_refused_attempt_keeps_its_first_refusal(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(102, 42, "week-33")).await);
    let stale = || gold(101, 42, "week-34").attempt("try-stale");
    let first = claim(&ledger, stale()).await;
    applied(claim(&ledger, gold(103, 42, "week-34")).await);
    assert_eq!(
        claim(&ledger, stale()).await,
        first,
        "seen 102 and no receipt, as told before"
    );

    let other = || gold(103, 42, "week-34").item("gems").attempt("try-conflict");
    let first = claim(&ledger, other()).await;
    assert!(matches!(first, ClaimOutcome::Conflict { .. }));
    applied(claim(&ledger, gold(104, 42, "week-35")).await);
    assert_eq!(
        claim(&ledger, other()).await,
        first,
        "its token is stale by now, its answer stays"
    );
    is_sound(&ledger).await;
}

pub(super) async fn an_accepted_attempt_is_answered_also_when_its_token_is_stale_by_now(open: LedgerBuilder) {
    let ledger = open.open();
    let a = || gold(101, 42, "week-34").attempt("a");
    let first = applied(claim(&ledger, a()).await);
    let replayed = claim(&ledger, gold(102, 42, "week-34").attempt("b")).await;
    assert_eq!(replayed, ClaimOutcome::Replayed(first.clone()));
    assert_eq!(claim(&ledger, a()).await, ClaimOutcome::Replayed(first.clone()));
    let new_attempt = claim(&ledger, gold(101, 42, "week-34").attempt("c")).await;
    assert!(
        matches!(new_attempt, ClaimOutcome::Stale { applied: Some(receipt), .. } if receipt == first),
        "another attempt of the stale holder is told so"
    );
    is_sound(&ledger).await;
}

pub(super) async fn a_message_delivered_again_under_a_new_token_is_replayed(open: LedgerBuilder) {
    let ledger = open.open();
    let message = |number| gold(number, 42, "week-34").attempt("message-9");
    let first = applied(claim(&ledger, message(101)).await);
    for number in [103, 102, 103, 101] {
        let outcome = claim(&ledger, message(number)).await;
        match number {
            102 => assert!(matches!(outcome, ClaimOutcome::Stale { .. }), "{outcome:?}"),
            _ => assert_eq!(outcome, ClaimOutcome::Replayed(first.clone()), "{number}"),
        }
    }
    is_sound(&ledger).await;
}

pub(super) async fn one_attempt_id_for_two_events_is_a_conflict(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(101, 42, "week-34").attempt("try-1")).await);
    for number in [101, 102] {
        let outcome = claim(&ledger, gold(number, 42, "week-35").attempt("try-1")).await;
        assert_eq!(
            outcome,
            ClaimOutcome::Conflict {
                subject: ConflictSubject::Attempt,
                fields: vec![ClaimField::Event],
            }
        );
    }
    assert_eq!(
        seen(&ledger, "lock:reward:42").await,
        Some(101),
        "it never moves the fence"
    );
    assert!(matches!(ledger.get(42, &event("week-35")).await, Ok(None)));
    is_sound(&ledger).await;
}

pub(super) async fn a_taken_event_conflicts_and_names_the_fields(open: LedgerBuilder) {
    let ledger = open.open();
    let fence = |number| Fence::new(resource("lock:reward:42"), token(number));
    let first = applied(claim(&ledger, gold(101, 42, "week-34")).await);
    let other = Claim::builder(fence(101), 42, event("week-34"), 501).item("gems");
    assert_eq!(
        claim(&ledger, other).await,
        ClaimOutcome::Conflict {
            subject: ConflictSubject::Event,
            fields: vec![ClaimField::Item, ClaimField::Amount],
        }
    );
    let kept = ledger.get(42, &event("week-34")).await;
    assert_eq!(kept.ok().flatten(), Some(first), "the first claim is untouched");
    is_sound(&ledger).await;
}

pub(super) async fn accepted_replayed_and_conflicting_claims_raise_the_fence(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(5, 42, "week-34")).await);
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(5));
    let replayed = claim(&ledger, gold(7, 42, "week-34")).await;
    assert!(matches!(replayed, ClaimOutcome::Replayed(_)));
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(7));
    let conflict = claim(&ledger, gold(9, 42, "week-34").item("gems")).await;
    assert!(matches!(conflict, ClaimOutcome::Conflict { .. }));
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(9));
    let stale = claim(&ledger, gold(8, 42, "week-34")).await;
    assert!(matches!(stale, ClaimOutcome::Stale { .. }));
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(9));
    is_sound(&ledger).await;
}

pub(super) async fn fences_of_different_resources_do_not_compare(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(900, 1, "week-34")).await);
    applied(claim(&ledger, gold(1, 2, "week-34")).await);
    assert_eq!(seen(&ledger, "lock:reward:1").await, Some(900));
    assert_eq!(seen(&ledger, "lock:reward:2").await, Some(1));
    assert_eq!(seen(&ledger, "lock:reward:3").await, None);
    is_sound(&ledger).await;
}

pub(super) async fn two_rewards_of_one_player_are_both_granted(open: LedgerBuilder) {
    let ledger = open.open();
    let first = applied(claim(&ledger, gold(1, 42, "week-34")).await);
    let second = applied(claim(&ledger, gold(1, 42, "week-35")).await);
    assert!(second.claim_id() > first.claim_id());
    is_sound(&ledger).await;
}

pub(super) async fn extreme_values_are_kept(open: LedgerBuilder) {
    let ledger = open.open();
    let highest = i64::MAX.cast_unsigned();
    for (player, bytes) in [(i64::MIN, 1), (-1, 2), (0, 1_023), (i64::MAX, 1_024)] {
        let name: Vec<u8> = (0..bytes).map(|at| u8::try_from(at % 256).unwrap_or(0)).collect();
        let Ok(name) = lease_core::LeaseName::new(name) else {
            unreachable!("names have 1 to 1,024 bytes");
        };
        let builder = Claim::builder(
            Fence::new(name, token(highest)),
            player,
            event(&"e".repeat(256)),
            i64::MAX,
        )
        .item("i".repeat(128))
        .attempt("a".repeat(120) + &bytes.to_string());
        let receipt = applied(claim(&ledger, builder.clone()).await);
        assert_eq!(
            claim(&ledger, builder).await,
            ClaimOutcome::Replayed(receipt.clone())
        );
        assert_eq!(
            (receipt.player().get(), receipt.amount().get(), receipt.token()),
            (player, i64::MAX, Some(token(highest)))
        );
    }
    is_sound(&ledger).await;
}
