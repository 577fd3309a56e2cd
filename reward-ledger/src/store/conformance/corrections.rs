//! Batches, and grants that are taken back.
#![expect(clippy::indexing_slicing, reason = "a suite fails by panicking")]

use super::{applied, claim, event, gold, is_sound, seen};
use crate::config::LedgerBuilder;
use crate::core::{BatchOutcome, ClaimOutcome, ReversalOutcome};
use crate::error::ClaimError;
use crate::ledger::Ledger;
use crate::limits::BATCH_CLAIMS_MAX;
use crate::store::OutboxQuery;
use crate::types::{Claim, ClaimBuilder, Reason};

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
fn built(claims: Vec<ClaimBuilder>) -> Vec<Claim> {
    let built = claims
        .into_iter()
        .map(ClaimBuilder::build)
        .collect::<Result<_, _>>();
    built.expect("the suite's claims are valid")
}

fn reason(text: &str) -> Reason {
    Reason::new(text).unwrap_or_else(|_| unreachable!("the suite's reasons are valid"))
}

pub(super) async fn a_batch_answers_each_claim_for_itself(open: LedgerBuilder) {
    let ledger = open.open();
    let batch = built(vec![
        gold(5, 42, "a").attempt("1"),
        gold(5, 42, "a").attempt("2"),
        gold(4, 42, "b").attempt("3"),
        gold(1, 43, "a").attempt("4"),
        gold(5, 42, "c").attempt("1"),
    ]);
    let answers = ledger.claim_each(batch).await.unwrap_or_default();
    let kinds: Vec<&str> = answers.iter().map(kind).collect();
    assert_eq!(kinds, ["applied", "replayed", "stale", "applied", "conflict"]);
    assert_eq!(
        answers[1].receipt(),
        answers[0].receipt(),
        "each on top of those before it"
    );
    let again = claim(&ledger, gold(4, 42, "b").attempt("3")).await;
    assert_eq!(again, answers[2], "its refusal is remembered as any other");
    let large = built(
        (0..=BATCH_CLAIMS_MAX)
            .map(|n| gold(5, 42, &format!("n{n}")))
            .collect(),
    );
    let refused = ledger.claim_each(large).await;
    assert!(
        matches!(refused, Err(ClaimError::BatchTooLarge { .. })),
        "{refused:?}"
    );
    is_sound(&ledger).await;
}

fn kind(outcome: &ClaimOutcome) -> &'static str {
    match outcome {
        ClaimOutcome::Applied(_) => "applied",
        ClaimOutcome::Replayed(_) => "replayed",
        ClaimOutcome::Stale { .. } => "stale",
        ClaimOutcome::Conflict { .. } => "conflict",
    }
}

pub(super) async fn a_whole_batch_is_granted_or_nothing_of_it_is_written(open: LedgerBuilder) {
    let ledger = open.open();
    applied(claim(&ledger, gold(5, 42, "a")).await);
    let refused = ledger
        .claim_all(built(vec![
            gold(9, 43, "a").attempt("x"),
            gold(4, 42, "b").attempt("y"),
            gold(6, 42, "a").item("gems").attempt("z"),
        ]))
        .await;
    let Ok(BatchOutcome::Refused(refused)) = refused else {
        unreachable!("two of them are refused: {refused:?}");
    };
    let places: Vec<_> = refused.iter().map(|r| (r.index, kind(&r.outcome))).collect();
    assert_eq!(places, [(1, "stale"), (2, "conflict")]);
    assert_eq!(seen(&ledger, "lock:reward:43").await, None, "no fence moved");
    assert_eq!(seen(&ledger, "lock:reward:42").await, Some(5));
    assert!(matches!(ledger.get(43, &event("a")).await, Ok(None)));
    applied(claim(&ledger, gold(5, 42, "b").attempt("y")).await);

    let whole = vec![
        gold(9, 43, "a").attempt("x"),
        gold(6, 42, "a").attempt("z"),
        gold(6, 42, "d"),
    ];
    let accepted = ledger.claim_all(built(whole)).await;
    let Ok(BatchOutcome::Accepted(outcomes)) = accepted else {
        unreachable!("all are good: {accepted:?}");
    };
    assert_eq!(
        outcomes.iter().map(kind).collect::<Vec<_>>(),
        ["applied", "replayed", "applied"]
    );
    is_sound(&ledger).await;
}

pub(super) async fn a_grant_is_taken_back_once_and_its_event_never_granted_again(open: LedgerBuilder) {
    let ledger = open.open();
    let receipt = applied(claim(&ledger, gold(1, 42, "a").attempt("1")).await);
    assert!(matches!(
        ledger.reverse(42, &event("b"), reason("no such claim")).await,
        Ok(ReversalOutcome::NotFound)
    ));
    let first = ledger.reverse(42, &event("a"), reason("a chargeback")).await;
    let Ok(ReversalOutcome::Reversed(reversal)) = first else {
        unreachable!("it is reversed now: {first:?}");
    };
    assert_eq!(
        (reversal.claim_id, reversal.reason.as_str()),
        (receipt.claim_id(), "a chargeback")
    );
    assert!(reversal.id > receipt.claim_id());
    let again = ledger.reverse(42, &event("a"), reason("another reason")).await;
    assert_eq!(again.ok(), Some(ReversalOutcome::Replayed(reversal.clone())));
    let retry = claim(&ledger, gold(2, 42, "a").attempt("2")).await;
    assert_eq!(
        retry,
        ClaimOutcome::Replayed(receipt.clone()),
        "the event stays taken"
    );

    let record = ledger.record(42, &event("a")).await.ok().flatten();
    let record = record.unwrap_or_else(|| unreachable!("the claim is there"));
    assert_eq!(
        (record.receipt, record.reversal),
        (receipt.clone(), Some(reversal.clone()))
    );
    let rows = ledger.deliveries(OutboxQuery::All, None, 10).await;
    let rows = rows.map(|found| found.deliveries).unwrap_or_default();
    let keys: Vec<_> = rows.iter().map(|row| (row.id, row.idempotency_key())).collect();
    assert_eq!(
        keys,
        [
            (receipt.claim_id(), "grant/42/a".to_owned()),
            (reversal.id, "reverse/42/a".to_owned())
        ],
        "the outside is told of both, in this order"
    );
    audit_after_reversal(&ledger).await;
}

async fn audit_after_reversal(ledger: &Ledger) {
    let report = ledger.audit().await;
    assert!(
        report
            .as_ref()
            .is_ok_and(|r| r.is_clean() && r.claims == 1 && r.reversals == 1 && r.granted == 0),
        "{report:?}"
    );
}
