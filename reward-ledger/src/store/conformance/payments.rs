//! S14: one active payment attempt an order, whatever its workers do.

use lease_core::Fence;

use super::{is_sound, resource, seen, token};
use crate::config::LedgerBuilder;
use crate::core::{Judgement, PaymentField, PaymentOutcome, PaymentReport, ReportOutcome};
use crate::ledger::Ledger;
use crate::types::{
    Amount, AttemptId, FoundBy, Item, Note, OrderId, PaymentAttempt, PaymentResult, PaymentStart,
    PaymentStatus, Reason,
};

fn order(text: &str) -> OrderId {
    OrderId::new(text).unwrap_or_else(|_| unreachable!("the suite's orders are valid"))
}

fn attempt(text: &str) -> AttemptId {
    AttemptId::new(text).unwrap_or_else(|_| unreachable!("the suite's attempts are valid"))
}

fn start_of(attempt_id: &str, order_id: &str, number: u64, amount: i64) -> PaymentStart {
    let (Ok(amount), Ok(currency)) = (Amount::new(amount), Item::new("EUR-cent")) else {
        unreachable!("the suite's amounts are valid");
    };
    let fence = Fence::new(resource(&format!("lock:{order_id}")), token(number));
    PaymentStart::new(order(order_id), attempt(attempt_id), fence, currency, amount)
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn start(ledger: &Ledger, attempt_id: &str, number: u64) -> PaymentOutcome {
    let start = start_of(attempt_id, "order-1", number, 1_999);
    ledger.start_payment(start).await.expect("the store answers")
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn report(ledger: &Ledger, attempt_id: &str, number: u64, result: PaymentResult) -> ReportOutcome {
    let report = PaymentReport::of_worker(attempt(attempt_id), result, token(number), Note::new("gw-77"));
    ledger.report_payment(report).await.expect("the store answers")
}

#[track_caller]
fn started(outcome: PaymentOutcome) -> PaymentAttempt {
    let PaymentOutcome::Started(attempt) = outcome else {
        unreachable!("expected a start, it was {outcome:?}");
    };
    attempt
}

pub(super) async fn one_attempt_of_an_order_is_active(open: LedgerBuilder) {
    let ledger = open.open();
    let first = started(start(&ledger, "a", 101).await);
    assert_eq!(first.status, PaymentStatus::Ready);
    assert_eq!(
        start(&ledger, "a", 101).await,
        PaymentOutcome::Existing(first.clone())
    );
    assert_eq!(
        start(&ledger, "b", 101).await,
        PaymentOutcome::Blocked(first.clone())
    );
    let other = ledger.start_payment(start_of("a", "order-2", 1, 2_000)).await;
    assert_eq!(
        other.ok(),
        Some(PaymentOutcome::Conflict(vec![
            PaymentField::Order,
            PaymentField::Resource,
            PaymentField::Amount
        ]))
    );

    let failed = report(&ledger, "a", 101, PaymentResult::Failed).await;
    assert!(
        matches!(&failed, ReportOutcome::Recorded(a) if !a.is_active()),
        "{failed:?}"
    );
    let second = started(start(&ledger, "b", 102).await);
    let paid = report(&ledger, "b", 102, PaymentResult::Approved).await;
    assert!(matches!(&paid, ReportOutcome::Recorded(a) if a.status.name() == "approved"));
    assert_eq!(
        report(&ledger, "b", 102, PaymentResult::Approved).await,
        paid,
        "again is harmless"
    );
    let late = report(&ledger, "b", 102, PaymentResult::Failed).await;
    assert!(
        matches!(late, ReportOutcome::Final(_)),
        "paid stays paid: {late:?}"
    );
    assert!(
        matches!(start(&ledger, "c", 103).await, PaymentOutcome::Blocked(a) if a.attempt == second.attempt)
    );
    let all = ledger.payments(&order("order-1")).await.unwrap_or_default();
    assert_eq!(all.len(), 2);
    is_sound(&ledger).await;
}

/// S14: A (token 101) sleeps past its lease, B (102) writes first; A's report touches nothing.
pub(super) async fn a_stale_worker_touches_no_payment(open: LedgerBuilder) {
    let ledger = open.open();
    started(start(&ledger, "a", 101).await);
    let taken_over = start(&ledger, "a", 102).await;
    assert!(matches!(&taken_over, PaymentOutcome::Existing(a) if a.fence.token == token(102)));
    let kept = ledger.payments(&order("order-1")).await.unwrap_or_default();
    assert!(
        matches!(kept.as_slice(), [a] if a.fence.token == token(102)),
        "the newer token is kept: {kept:?}"
    );
    let stale = report(&ledger, "a", 101, PaymentResult::Failed).await;
    assert!(
        matches!(&stale, ReportOutcome::Stale { seen, attempt, .. }
            if *seen == token(102) && attempt.status == PaymentStatus::Ready),
        "{stale:?}"
    );
    assert!(matches!(
        start(&ledger, "b", 101).await,
        PaymentOutcome::Stale { active: Some(_), .. }
    ));
    let paid = report(&ledger, "a", 102, PaymentResult::Approved).await;
    assert!(matches!(paid, ReportOutcome::Recorded(_)));
    assert_eq!(seen(&ledger, "lock:order-1").await, Some(102));
    assert!(matches!(
        report(&ledger, "nobody", 102, PaymentResult::Approved).await,
        ReportOutcome::NotFound
    ));
    is_sound(&ledger).await;
}

pub(super) async fn an_unknown_outcome_blocks_until_it_is_settled(open: LedgerBuilder) {
    let ledger = open.open();
    started(start(&ledger, "a", 101).await);
    assert!(matches!(
        report(&ledger, "a", 101, PaymentResult::Unknown).await,
        ReportOutcome::Recorded(_)
    ));
    assert!(
        matches!(start(&ledger, "b", 102).await, PaymentOutcome::Blocked(a) if a.status.name() == "unknown")
    );
    let Ok(reason) = Reason::new("the gateway's statement does not list it") else {
        unreachable!("the reason is valid");
    };
    let settled = ledger
        .report_payment(PaymentReport::of_person(
            attempt("a"),
            Judgement::Failed,
            reason.clone(),
        ))
        .await;
    let Ok(ReportOutcome::Recorded(settled)) = settled else {
        unreachable!("a person settles it: {settled:?}");
    };
    assert_eq!(
        settled.status.finding().map(|f| f.by.clone()),
        Some(FoundBy::Person(reason))
    );
    started(start(&ledger, "b", 102).await);
    is_sound(&ledger).await;
}

/// 64 workers past any lock, each with an attempt of its own: one is started.
pub(super) async fn sixty_four_starts_of_one_order_start_one(open: LedgerBuilder) {
    let ledger = open.open();
    let starts = (0..64).map(|number| {
        let ledger = ledger.clone();
        async move { start(&ledger, &format!("try-{number}"), 7).await }
    });
    let mut tasks = tokio::task::JoinSet::new();
    for start in starts {
        tasks.spawn(start);
    }
    let outcomes = tasks.join_all().await;
    let started_ones = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, PaymentOutcome::Started(_)));
    assert_eq!(started_ones.count(), 1);
    let blocked = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, PaymentOutcome::Blocked(_)));
    assert_eq!(blocked.count(), 63);
    is_sound(&ledger).await;
}
