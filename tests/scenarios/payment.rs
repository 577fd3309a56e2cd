//! S14: a payment, towards a gateway that is called over HTTP.

use std::time::Duration;

use examples::outside::Switches;
use fence_client::{Fence, Lease};
use reward_ledger::{
    Amount, AttemptId, Item, Judgement, Note, OrderId, PaymentOutcome, PaymentReport, PaymentResult,
    PaymentStart, PaymentStatus, Reason, ReportOutcome,
};
use tests::clock::SOON;

use crate::desk::{Desk, Place};
use crate::outside_server::OutsideServer;
use crate::stage::{LOCK, Stage, Worker, fence};

const TTL: Duration = Duration::from_secs(3);
/// How long A sleeps.
const PAUSE: Duration = Duration::from_secs(4);
/// How long a worker waits for the gateway, in real time; an answer that is lost never comes.
const PATIENCE: Duration = Duration::from_millis(300);

fn order() -> OrderId {
    OrderId::new("order-1").unwrap()
}

fn attempt(id: &str) -> AttemptId {
    AttemptId::new(id).unwrap()
}

async fn start(ledger: &Desk, id: &str, fence: Fence) -> PaymentOutcome {
    let (currency, amount) = (Item::new("EUR-cent").unwrap(), Amount::new(1_999).unwrap());
    let start = PaymentStart::new(order(), attempt(id), fence, currency, amount);
    ledger
        .ask(async move |ledger| ledger.start_payment(start).await)
        .await
        .unwrap()
}

async fn report(ledger: &Desk, report: PaymentReport) -> ReportOutcome {
    ledger
        .ask(async move |ledger| ledger.report_payment(report).await)
        .await
        .unwrap()
}

fn of_worker(id: &str, result: PaymentResult, fence: &Fence) -> PaymentReport {
    PaymentReport::of_worker(attempt(id), result, fence.token, Note::new("gateway"))
}

/// The ids of the order's attempts with where they stand, oldest first; the ledger is whole.
async fn attempts(ledger: &Desk) -> Vec<(String, &'static str)> {
    let report = ledger.audit().await;
    assert!(report.is_clean(), "{:?}", report.violations);
    let all = ledger.ask(async |ledger| ledger.payments(&order()).await).await;
    let name = |status: &PaymentStatus| status.name();
    all.unwrap()
        .iter()
        .map(|attempt| (attempt.attempt.to_string(), name(&attempt.status)))
        .collect()
}

/// The gateway charges, or has charged, under this key; it says which charge that is.
async fn charge(gateway: &OutsideServer, key: &str, token: Option<u64>) -> String {
    let answer = gateway.post(key, token, SOON).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

async fn acquire(worker: &Worker) -> Lease {
    let wanted = worker.client.lease(LOCK).ttl(TTL).wait(PAUSE * 4);
    wanted.acquire().await.unwrap()
}

/// A sleeps past its lease, and B is granted it meanwhile.
async fn a_sleeps(stage: &Stage, a: &Worker, of_a: &Lease) -> Lease {
    a.kit.pause();
    let b = stage.worker("b");
    let (of_b, ()) = tokio::join!(acquire(&b), tokio::time::sleep(PAUSE));
    assert!(of_a.is_valid(), "A cannot know how long it slept");
    assert_eq!((of_a.token().get(), of_b.token().get()), (101, 102));
    of_b
}

#[tokio::test(start_paused = true)]
async fn s14_a_worker_that_slept_changes_no_payment_and_the_order_is_charged_once() {
    for place in Place::ALL {
        let (stage, gateway) = (Stage::on(place).await, OutsideServer::of_payments().await);
        let ledger = &stage.ledger;
        let a = stage.worker("a");
        let of_a = acquire(&a).await;
        let started = start(ledger, "try-1", of_a.fence()).await;
        assert!(
            matches!(started, PaymentOutcome::Started(_)),
            "{place:?}: {started:?}"
        );
        let of_b = a_sleeps(&stage, &a, &of_a).await;

        let other = start(ledger, "try-2", of_b.fence()).await;
        assert!(
            matches!(&other, PaymentOutcome::Blocked(active) if active.attempt == attempt("try-1")),
            "{place:?}: {other:?}"
        );
        // So B goes on with the attempt that is there. It cannot know whether A had called the gateway: it asks.
        let taken_over = start(ledger, "try-1", of_b.fence()).await;
        assert!(
            matches!(taken_over, PaymentOutcome::Existing(_)),
            "{taken_over:?}"
        );
        assert_eq!(gateway.has_done("try-1").await, Some(false));
        let charged = charge(&gateway, "try-1", Some(102)).await;
        let paid = report(ledger, of_worker("try-1", PaymentResult::Approved, &of_b.fence())).await;
        assert!(matches!(paid, ReportOutcome::Recorded(_)), "{paid:?}");

        a.kit.resume();
        assert_eq!(
            charge(&gateway, "try-1", Some(101)).await,
            charged,
            "the same key, the same charge"
        );
        let late = report(ledger, of_worker("try-1", PaymentResult::Failed, &of_a.fence())).await;
        assert!(
            matches!(&late, ReportOutcome::Stale { attempt, .. } if attempt.status.name() == "approved"),
            "{place:?}: {late:?}"
        );
        assert_eq!(attempts(ledger).await, [("try-1".to_owned(), "approved")]);
        assert_eq!(gateway.effects(), ["try-1"], "{place:?}");
    }
}

/// Control: each worker draws a key of its own and asks nobody whether the order has an attempt already.
#[tokio::test(start_paused = true)]
async fn s14_with_a_key_of_each_worker_and_no_active_attempt_the_order_is_charged_twice() {
    let (stage, gateway) = (Stage::start().await, OutsideServer::of_payments().await);
    let a = stage.worker("a");
    let of_a = acquire(&a).await;
    let _of_b = a_sleeps(&stage, &a, &of_a).await;
    charge(&gateway, "try-2", None).await;
    a.kit.resume();
    charge(&gateway, "try-1", None).await;
    assert_eq!(gateway.effects(), ["try-2", "try-1"], "one order, two charges");
}

/// The gateway charges, and its answer is lost; the worker notes that it does not know.
async fn the_answer_is_lost(ledger: &Desk, gateway: &OutsideServer, switches: Switches) {
    gateway.switch(Switches {
        lose_answers: 1,
        ..switches
    });
    let started = start(ledger, "try-1", fence(101)).await;
    assert!(matches!(started, PaymentOutcome::Started(_)), "{started:?}");
    assert!(gateway.post("try-1", Some(101), PATIENCE).await.is_none());
}

async fn is_blocked(ledger: &Desk) {
    let other = start(ledger, "try-2", fence(101)).await;
    assert!(matches!(other, PaymentOutcome::Blocked(_)), "{other:?}");
}

#[tokio::test(start_paused = true)]
async fn s14_an_unknown_charge_blocks_the_order_until_the_gateway_is_asked() {
    for place in Place::ALL {
        let (ledger, gateway) = (place.ledger().await, OutsideServer::of_payments().await);
        the_answer_is_lost(&ledger, &gateway, Switches::default()).await;
        let unknown = of_worker("try-1", PaymentResult::Unknown, &fence(101));
        let noted = report(&ledger, unknown).await;
        assert!(
            matches!(noted, ReportOutcome::Recorded(_)),
            "{place:?}: {noted:?}"
        );
        is_blocked(&ledger).await;

        assert_eq!(gateway.has_done("try-1").await, Some(true));
        let paid = of_worker("try-1", PaymentResult::Approved, &fence(101));
        let settled = report(&ledger, paid).await;
        assert!(
            matches!(settled, ReportOutcome::Recorded(_)),
            "{place:?}: {settled:?}"
        );
        assert_eq!(attempts(&ledger).await, [("try-1".to_owned(), "approved")]);
        assert_eq!(gateway.effects(), ["try-1"], "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s14_where_the_gateway_tells_no_status_a_person_settles_the_charge() {
    for place in Place::ALL {
        let (ledger, gateway) = (place.ledger().await, OutsideServer::of_payments().await);
        let silent = Switches {
            no_status: true,
            ..Switches::default()
        };
        the_answer_is_lost(&ledger, &gateway, silent).await;
        let unknown = of_worker("try-1", PaymentResult::Unknown, &fence(101));
        let noted = report(&ledger, unknown).await;
        assert!(
            matches!(noted, ReportOutcome::Recorded(_)),
            "{place:?}: {noted:?}"
        );
        assert_eq!(gateway.has_done("try-1").await, None);
        is_blocked(&ledger).await;
        let reason = Reason::new("it is on the gateway's statement").unwrap();
        let settled = PaymentReport::of_person(attempt("try-1"), Judgement::Approved, reason);
        let settled = report(&ledger, settled).await;
        assert!(
            matches!(settled, ReportOutcome::Recorded(_)),
            "{place:?}: {settled:?}"
        );
        is_blocked(&ledger).await;
        assert_eq!(gateway.effects(), ["try-1"], "{place:?}");
    }
}

/// What the gateway refuses makes room for another try.
#[tokio::test(start_paused = true)]
async fn s14_a_refused_charge_makes_room_for_another_attempt() {
    for place in Place::ALL {
        let (ledger, gateway) = (place.ledger().await, OutsideServer::of_payments().await);
        gateway.switch(Switches {
            refuse: true,
            ..Switches::default()
        });
        let started = start(&ledger, "try-1", fence(101)).await;
        assert!(matches!(started, PaymentOutcome::Started(_)), "{started:?}");
        let answer = gateway.post("try-1", Some(101), SOON).await.unwrap();
        assert_eq!(answer.status, 422);
        let failed = report(&ledger, of_worker("try-1", PaymentResult::Failed, &fence(101))).await;
        assert!(
            matches!(failed, ReportOutcome::Recorded(_)),
            "{place:?}: {failed:?}"
        );

        gateway.switch(Switches::default());
        let started = start(&ledger, "try-2", fence(101)).await;
        assert!(
            matches!(started, PaymentOutcome::Started(_)),
            "{place:?}: {started:?}"
        );
        charge(&gateway, "try-2", Some(101)).await;
        let paid = report(&ledger, of_worker("try-2", PaymentResult::Approved, &fence(101))).await;
        assert!(matches!(paid, ReportOutcome::Recorded(_)), "{place:?}: {paid:?}");
        let expected = [("try-1".to_owned(), "failed"), ("try-2".to_owned(), "approved")];
        assert_eq!(attempts(&ledger).await, expected);
        assert_eq!(gateway.effects(), ["try-2"], "{place:?}");
    }
}

/// Control: who takes a lost answer for a failure charges twice, whatever the ledger does.
#[tokio::test(start_paused = true)]
async fn s14_where_unknown_is_taken_for_failed_the_order_is_charged_twice() {
    for place in Place::ALL {
        let (ledger, gateway) = (place.ledger().await, OutsideServer::of_payments().await);
        the_answer_is_lost(&ledger, &gateway, Switches::default()).await;
        let wrong = of_worker("try-1", PaymentResult::Failed, &fence(101));
        let noted = report(&ledger, wrong).await;
        assert!(matches!(noted, ReportOutcome::Recorded(_)), "{noted:?}");
        let started = start(&ledger, "try-2", fence(101)).await;
        assert!(matches!(started, PaymentOutcome::Started(_)), "{started:?}");
        charge(&gateway, "try-2", Some(101)).await;
        assert_eq!(gateway.effects(), ["try-1", "try-2"], "{place:?}");
    }
}
