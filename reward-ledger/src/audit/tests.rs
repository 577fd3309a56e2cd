//! Each violation, made by breaking one row of a sound ledger.

use std::collections::BTreeMap;

use lease_core::{Fence, FenceToken, LeaseName};

use super::{Against, AuditReport, Expectations, Violation, audit};
use crate::event_id::RewardEventId;
use crate::store::codec::{decode, encode};
use crate::store::keys;
use crate::store::outbox_records::{OutboxRow, ReversalRow, StateRow};
use crate::store::payment_records::{FindingRow, FoundByRow, PaymentRow, PaymentStatusRow};
use crate::store::records::{FenceRow, LedgerRow};
use crate::store::{ClaimRequest, MemoryStore, Store};
use crate::types::{Amount, AttemptId, Claim, ClaimId, OrderId, PlayerId, UnixMillis};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const PLAYER: PlayerId = PlayerId::new(1);

fn event(text: &str) -> RewardEventId {
    RewardEventId::parse(text).unwrap()
}

fn lock(player: i64) -> LeaseName {
    LeaseName::new(format!("lock-{player}")).unwrap()
}

/// Claims 1 and 2 of player 1, claim 3 of player 2, five gold each.
async fn sound_store() -> MemoryStore {
    let store = MemoryStore::new();
    for (player, name) in [(1, "week-1"), (1, "week-2"), (2, "week-1")] {
        let fence = Fence::new(lock(player), FenceToken::new(7).unwrap());
        let claim = Claim::builder(fence, player, event(name), 5)
            .item("gold")
            .attempt(format!("{player}-{name}"))
            .build()
            .unwrap();
        let request = ClaimRequest {
            claim,
            at: UnixMillis::new(0),
            forget_before: UnixMillis::new(0),
        };
        assert!(store.claim(request).await.unwrap().is_accepted());
    }
    store
}

async fn report(store: &MemoryStore, expectations: &Expectations) -> AuditReport {
    let against = Against {
        expectations: &[expectations],
        outside: None,
    };
    audit(store, against, |_| {}, |_| {}).await.unwrap()
}

/// The checks that complain once the rows of a sound ledger are changed so, in order, each once.
async fn complaints(change: impl FnOnce(&mut Rows)) -> Vec<&'static str> {
    let store = sound_store().await;
    assert!(report(&store, &Expectations::default()).await.is_clean());
    store.tamper(change);
    let violations = report(&store, &Expectations::default()).await.violations;
    for violation in &violations {
        assert!(!violation.to_string().is_empty());
    }
    let mut checks: Vec<_> = violations.iter().map(Violation::check).collect();
    checks.sort_unstable();
    checks.dedup();
    checks
}

fn claim_key() -> Vec<u8> {
    keys::claim(PLAYER, &event("week-1"))
}

#[tokio::test]
async fn a_claim_under_another_key_is_found() {
    let checks = complaints(|rows| {
        let claim = rows.remove(&claim_key()).unwrap();
        rows.insert(keys::claim(PlayerId::new(9), &event("week-1")), claim);
    });
    // The claim, the rows that now have none, the attempt, and the sums of two players.
    assert_eq!(checks.await, ["C1", "C3", "C4", "C7"]);
}

#[tokio::test]
async fn an_event_that_was_granted_twice_is_found() {
    let checks = complaints(|rows| {
        let line = rows[&keys::ledger(PLAYER, ClaimId::new(1))].clone();
        rows.insert(keys::ledger(PLAYER, ClaimId::new(2)), line);
    });
    // Line 2 now says week-1, which is claim 1.
    assert_eq!(checks.await, ["C1", "C4"]);
}

#[tokio::test]
async fn a_missing_claim_is_found() {
    let checks = complaints(|rows| {
        rows.remove(&claim_key()).unwrap();
    });
    assert_eq!(checks.await, ["C3", "C4", "C7"]);
}

#[tokio::test]
async fn a_missing_ledger_row_is_found() {
    let checks = complaints(|rows| {
        rows.remove(&keys::ledger(PLAYER, ClaimId::new(1))).unwrap();
    });
    assert_eq!(checks.await, ["C4", "C7"]);
}

#[tokio::test]
async fn a_changed_amount_is_found() {
    let checks = complaints(|rows| {
        let line = rows.get_mut(&keys::ledger(PLAYER, ClaimId::new(1))).unwrap();
        let mut row: LedgerRow = decode(line).unwrap();
        row.amount += 1;
        *line = encode(&row).unwrap();
    });
    assert_eq!(checks.await, ["C4", "C7"]);
}

#[tokio::test]
async fn a_ledger_row_of_nothing_is_found() {
    let checks = complaints(|rows| {
        let mut row: LedgerRow = decode(&rows[&keys::ledger(PLAYER, ClaimId::new(1))]).unwrap();
        row.event = "week-9".to_owned();
        rows.insert(
            keys::ledger(PlayerId::new(77), ClaimId::new(3)),
            encode(&row).unwrap(),
        );
    });
    assert_eq!(checks.await, ["C4", "C7"]);
}

#[tokio::test]
async fn a_missing_outbox_row_is_found() {
    let checks = complaints(|rows| {
        rows.remove(&keys::outbox(ClaimId::new(2))).unwrap();
    });
    assert_eq!(checks.await, ["C4"]);
}

#[tokio::test]
async fn an_outbox_row_of_nothing_is_found() {
    let checks = complaints(|rows| {
        let row = rows[&keys::outbox(ClaimId::new(2))].clone();
        rows.insert(keys::outbox(ClaimId::new(99)), row);
    });
    assert_eq!(checks.await, ["C4", "C8"]);
}

#[tokio::test]
async fn an_outbox_row_for_somebody_else_is_found() {
    let checks = complaints(|rows| {
        let stored = rows.get_mut(&keys::outbox(ClaimId::new(2))).unwrap();
        let mut row: OutboxRow = decode(stored).unwrap();
        row.player = 2;
        *stored = encode(&row).unwrap();
    });
    assert_eq!(checks.await, ["C4", "C8"]);
}

#[tokio::test]
async fn a_fallen_fence_is_found() {
    for row in [None, Some(6)] {
        let checks = complaints(|rows| {
            rows.remove(&keys::fence(&lock(2))).unwrap();
            if let Some(token) = row {
                let row = FenceRow {
                    token,
                    last_reset: None,
                };
                rows.insert(keys::fence(&lock(2)), encode(&row).unwrap());
            }
        });
        assert_eq!(checks.await, ["F1"], "{row:?}");
    }
}

#[tokio::test]
async fn an_accepted_attempt_that_would_be_answered_otherwise_is_found() {
    let checks = complaints(|rows| {
        let attempt = AttemptId::new("2-week-1").unwrap();
        let token = FenceToken::new(7).unwrap();
        let key = keys::attempt(&attempt, Some(token));
        let mut row: crate::store::records::AttemptRow = decode(&rows[&key]).unwrap();
        row.amount = 6;
        rows.insert(key, encode(&row).unwrap());
    });
    assert_eq!(checks.await, ["C3"]);
}

#[tokio::test]
async fn rows_that_do_not_read_back_are_named_and_the_audit_goes_on() {
    let store = sound_store().await;
    store.tamper(|rows| {
        for (key, value) in rows.iter_mut() {
            if matches!(key[0], b'c' | b'l' | b'o' | b'a') {
                value[0] = 200;
            }
        }
        rows.insert(b"c-short".to_vec(), Vec::new());
        rows.insert(b"czzzzzzzz\xff".to_vec(), Vec::new());
    });
    let report = report(&store, &Expectations::default()).await;
    let unreadable = report.violations.iter().filter(|v| v.check() == "read").count();
    assert_eq!(unreadable, 4 * 3 + 2, "{:#?}", report.violations);
}

#[tokio::test]
async fn an_audit_lists_a_bounded_number_of_violations_and_counts_all() {
    let store = sound_store().await;
    store.tamper(|rows| {
        for number in 0..1_500_u64 {
            rows.insert(keys::outbox(ClaimId::new(1_000 + number)), vec![0]);
        }
    });
    let mut handed_over = 0;
    let against = Against {
        expectations: &[],
        outside: None,
    };
    let report = audit(&store, against, |_| handed_over += 1, |_| {})
        .await
        .unwrap();
    assert_eq!((report.violations.len(), report.violations_found), (1_000, 1_500));
    assert_eq!(handed_over, 1_500);
}

#[tokio::test]
async fn declared_amounts_are_compared_the_event_before_its_kind() {
    let amount = |value| Amount::new(value).unwrap();
    let id = "s:player-3:rank-1:weekly";
    let store = sound_store().await;
    let claim = Claim::unfenced_builder(3, event(id), 5).build().unwrap();
    let request = ClaimRequest {
        claim,
        at: UnixMillis::new(0),
        forget_before: UnixMillis::new(0),
    };
    assert!(store.claim(request).await.unwrap().is_accepted());
    for (expectations, violations) in [
        (Expectations::new().kind("weekly", amount(5)).unwrap(), 0),
        (Expectations::new().kind("weekly", amount(6)).unwrap(), 1),
        (Expectations::new().kind("daily", amount(6)).unwrap(), 0),
        (
            Expectations::new()
                .kind("weekly", amount(6))
                .unwrap()
                .event(event(id), amount(5))
                .unwrap(),
            0,
        ),
        // Two players have this one.
        (Expectations::new().event(event("week-1"), amount(4)).unwrap(), 2),
    ] {
        let found = report(&store, &expectations).await.violations;
        assert_eq!(found.len(), violations, "{expectations:?}: {found:?}");
        assert!(found.iter().all(|violation| violation.check() == "amount"));
    }
}

#[tokio::test]
async fn an_outbox_row_that_nobody_would_find_is_found() {
    let unlisted = complaints(|rows| {
        rows.remove(&keys::open(PLAYER, ClaimId::new(2))).unwrap();
    });
    assert_eq!(unlisted.await, ["C8"]);
    let headless = complaints(|rows| {
        rows.remove(&keys::head(PLAYER, UnixMillis::new(0))).unwrap();
    });
    assert_eq!(headless.await, ["C8"]);
    let dead = complaints(|rows| {
        let stored = rows.get_mut(&keys::outbox(ClaimId::new(1))).unwrap();
        let mut row: OutboxRow = decode(stored).unwrap();
        row.state = StateRow::Dead { at_ms: 1 };
        *stored = encode(&row).unwrap();
    });
    assert_eq!(dead.await, ["C8"], "a dead letter that is not listed was dropped");
}

#[tokio::test]
async fn a_reversal_without_its_rows_is_found() {
    let checks = complaints(|rows| {
        let row = ReversalRow {
            id: 3,
            player: PLAYER.get(),
            event: "week-1".to_owned(),
            at_ms: 0,
            reason: "a chargeback".to_owned(),
        };
        rows.insert(keys::reversal(ClaimId::new(1)), encode(&row).unwrap());
    });
    assert_eq!(checks.await, ["C4", "C7"]);
}

#[tokio::test]
async fn two_active_payments_of_an_order_are_found() {
    let checks = complaints(|rows| {
        let order = OrderId::new("order-1").unwrap();
        for (attempt, status) in [
            ("a", PaymentStatusRow::Ready),
            (
                "b",
                PaymentStatusRow::Approved(FindingRow {
                    at_ms: 1,
                    by: FoundByRow::Worker { token: 1 },
                    note: String::new(),
                }),
            ),
        ] {
            let attempt = AttemptId::new(attempt).unwrap();
            let row = PaymentRow {
                order: "order-1".to_owned(),
                resource: b"lock".to_vec(),
                token: 1,
                currency: String::new(),
                amount: 1,
                started_at_ms: 0,
                status,
            };
            rows.insert(keys::payment(&attempt), encode(&row).unwrap());
            rows.insert(keys::payment_of(&order, &attempt), Vec::new());
        }
    });
    assert_eq!(checks.await, ["payment"]);
}
