//! What operators and configuration may do.

use std::time::Duration;

use super::{ManualClock, applied, claim, event, gold, is_sound, resource, seen, token};
use crate::audit::Expectations;
use crate::config::LedgerBuilder;
use crate::core::ClaimOutcome;
use crate::error::{ClaimError, StoreError};
use crate::limits::{DATABASE_PAGE_ROWS_MAX, PAGE_ROWS_MAX};
use crate::types::{Amount, Claim};

pub(super) async fn unfenced_claims_are_taken_only_where_allowed(strict: LedgerBuilder, open: LedgerBuilder) {
    let unfenced = || Claim::unfenced_builder(42, event("week-34"), 500).item("gold");
    let strict = strict.open();
    let Ok(refused) = unfenced().build() else {
        unreachable!("the claim is valid");
    };
    let error = strict.claim(refused).await.err();
    assert!(matches!(error, Some(ClaimError::UnfencedNotAllowed)), "{error:?}");
    assert!(error.is_some_and(|e| !e.may_have_applied() && !e.is_retryable()));
    assert!(matches!(strict.get(42, &event("week-34")).await, Ok(None)));

    let ledger = open.allow_unfenced().open();
    let first = applied(claim(&ledger, unfenced().attempt("a")).await);
    assert_eq!(first.token(), None, "it is marked");
    assert_eq!(
        claim(&ledger, unfenced().attempt("b")).await,
        ClaimOutcome::Replayed(first.clone())
    );
    assert_eq!(
        claim(&ledger, unfenced().attempt("a")).await,
        ClaimOutcome::Replayed(first)
    );
    assert_eq!(seen(&ledger, "lock:reward:42").await, None);
    let report = ledger.audit().await;
    assert!(
        report.as_ref().is_ok_and(|r| r.unfenced == 1 && r.is_clean()),
        "{report:?}"
    );
}

pub(super) async fn refusals_are_forgotten_in_time_and_claims_never(open: LedgerBuilder) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let clock = ManualClock::at(DAY_MS);
    let ledger = open
        .clock(clock.clone())
        .refusals_kept(Duration::from_secs(30 * 24 * 60 * 60))
        .open();
    let first = applied(claim(&ledger, gold(102, 42, "week-33").attempt("won")).await);
    assert_eq!(first.recorded_at().get(), DAY_MS);
    let refused = || gold(101, 42, "week-34").attempt("lost");
    assert!(matches!(
        claim(&ledger, refused()).await,
        ClaimOutcome::Stale { seen, .. } if seen == token(102)
    ));
    applied(claim(&ledger, gold(103, 42, "week-35")).await);

    clock.set(31 * DAY_MS);
    assert!(
        matches!(claim(&ledger, refused()).await, ClaimOutcome::Stale { seen, .. } if seen == token(102)),
        "after exactly thirty days the first refusal is still known"
    );
    clock.set(31 * DAY_MS + 1);
    assert!(
        matches!(claim(&ledger, refused()).await, ClaimOutcome::Stale { seen, .. } if seen == token(103)),
        "after that it is decided anew"
    );
    clock.set(1_000 * DAY_MS);
    let late = claim(&ledger, gold(102, 42, "week-33").attempt("won")).await;
    assert_eq!(
        late,
        ClaimOutcome::Replayed(first),
        "an accepted attempt is known for ever"
    );
    is_sound(&ledger).await;
}

pub(super) async fn an_operator_resets_a_fence_with_a_reason(open: LedgerBuilder) {
    let ledger = open.clock(ManualClock::at(77)).open();
    applied(claim(&ledger, gold(900, 42, "week-34")).await);
    let name = resource("lock:reward:42");
    assert!(
        ledger.reset_fence(&name, None, "").await.is_err(),
        "a reason is needed"
    );
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(900));

    let state = ledger
        .reset_fence(&name, Some(token(10)), "the issuer lost its counter")
        .await;
    let reset = state.ok().and_then(|state| state.last_reset);
    assert!(
        reset.is_some_and(|r| {
            r.from == Some(token(900)) && r.at.get() == 77 && &*r.reason == "the issuer lost its counter"
        }),
        "the reset is on record"
    );
    let stale = claim(&ledger, gold(9, 42, "week-35")).await;
    assert!(matches!(stale, ClaimOutcome::Stale { .. }));
    applied(claim(&ledger, gold(11, 42, "week-35")).await);
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(11));
    let kept = ledger.fence(&name).await;
    assert!(
        kept.is_ok_and(|state| state.is_some_and(|state| state.last_reset.is_some())),
        "it stays on record"
    );

    assert!(ledger.reset_fence(&name, None, "from the start").await.is_ok());
    applied(claim(&ledger, gold(1, 42, "week-36")).await);
    is_sound(&ledger).await;
}

pub(super) async fn an_audit_counts_what_is_there(open: LedgerBuilder) {
    let amount = |value| Amount::new(value).unwrap_or_else(|_| unreachable!("amounts are above zero"));
    let declared = Expectations::new().kind("weekly", amount(500));
    let Ok(declared) = declared else {
        unreachable!("one expectation fits");
    };
    let ledger = open.expect_amounts(declared).open();
    // More than one page of each table, so that pages follow each other.
    const _: () = assert!(40 * 15 > PAGE_ROWS_MAX && 40 * 15 > DATABASE_PAGE_ROWS_MAX);
    for player in 0..40_i64 {
        for rank in 0..15 {
            let name = format!("s:player-{player}:rank-{rank}:weekly");
            applied(claim(&ledger, gold(1, player, &name)).await);
        }
    }
    let report = ledger.audit().await;
    assert!(
        report.as_ref().is_ok_and(|r| {
            (
                r.claims,
                r.players,
                r.outbox_rows,
                r.attempts,
                r.granted,
                r.unfenced,
            ) == (600, 40, 600, 600, 300_000, 0)
                && r.is_clean()
        }),
        "{report:?}"
    );

    let given = Expectations::new().event(event("s:player-7:rank-3:weekly"), amount(501));
    let Ok(given) = given else {
        unreachable!("one expectation fits");
    };
    let mut found = Vec::new();
    let report = ledger
        .audit_against(&given, |violation| found.push(violation.check()))
        .await;
    assert_eq!(found, ["amount"]);
    assert!(report.is_ok_and(|r| r.violations_found == 1));
}

pub(super) async fn a_closed_ledger_says_so(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(1, 42, "week-34")).await);
    assert!(ledger.close().await.is_ok());
    assert!(ledger.close().await.is_ok(), "closing twice is harmless");
    let Ok(late) = gold(1, 42, "week-35").build() else {
        unreachable!("the claim is valid");
    };
    let error = ledger.claim(late).await.err();
    assert!(
        matches!(error, Some(ClaimError::Store(StoreError::Closed))),
        "{error:?}"
    );
    assert!(error.is_some_and(|e| !e.may_have_applied()));
    assert!(matches!(ledger.ended().await, crate::store::Health::Closed));
}
