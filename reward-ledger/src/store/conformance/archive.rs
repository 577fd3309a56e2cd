//! Queries with their pages, and an export that is put into another store.

use lease_core::Fence;

use super::{ManualClock, applied, claim, event, gold, is_sound, resource, seen, token};
use crate::config::LedgerBuilder;
use crate::core::{ClaimOutcome, ReversalOutcome};
use crate::ledger::Ledger;
use crate::store::{ArchiveTable, Archived, OutboxQuery, Query, Restored};
use crate::types::{AttemptId, Item, OrderId, PaymentStart, PlayerId, Reason, UnixMillis};

/// The numbers of all claims of a query, read in pages of `rows_max`.
#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn numbers(ledger: &Ledger, query: Query, rows_max: usize) -> Vec<u64> {
    let (mut numbers, mut after) = (Vec::new(), None);
    loop {
        let page = ledger
            .find(query.clone(), after, rows_max)
            .await
            .expect("the store answers");
        assert!(page.records.len() <= rows_max);
        numbers.extend(page.records.iter().map(|record| record.receipt.claim_id().get()));
        after = page.next;
        if after.is_none() {
            return numbers;
        }
    }
}

pub(super) async fn claims_are_found_by_player_event_resource_token_and_time(open: LedgerBuilder) {
    let clock = ManualClock::at(0);
    let ledger = open.clock(clock.clone()).open();
    for (at, token, player, name) in [
        (10, 3, 42, "a"),
        (20, 3, 43, "a"),
        (20, 3, -5, "a"),
        (30, 5, 42, "b"),
        (40, 4, 44, "b"),
    ] {
        clock.set(at);
        applied(claim(&ledger, gold(token, player, name)).await);
    }
    let reason = Reason::new("wrong player").unwrap_or_else(|_| unreachable!("it is valid"));
    let reversed = ledger.reverse(43, &event("a"), reason).await;
    assert!(matches!(reversed, Ok(ReversalOutcome::Reversed(_))));
    clock.set(50);
    applied(claim(&ledger, gold(6, 42, "c")).await);

    let between = |from, to| Query::Time {
        from: UnixMillis::new(from),
        to: UnixMillis::new(to),
    };
    for (query, expected) in [
        (Query::All, vec![1, 2, 3, 4, 5, 7]),
        (Query::Player(PlayerId::new(42)), vec![1, 4, 7]),
        (Query::Player(PlayerId::new(43)), vec![2]),
        (Query::Player(PlayerId::new(99)), vec![]),
        (Query::Event(event("a")), vec![1, 2, 3]),
        (Query::Event(event("b")), vec![4, 5]),
        (Query::Resource(resource("lock:reward:42")), vec![1, 4, 7]),
        (
            Query::Token(Fence::new(resource("lock:reward:42"), token(5))),
            vec![4],
        ),
        (between(20, 30), vec![2, 3, 4]),
        (between(0, 10), vec![1]),
        (between(41, 49), vec![]),
    ] {
        for rows_max in [1, 2, 3, 100] {
            let found = numbers(&ledger, query.clone(), rows_max).await;
            assert_eq!(found, expected, "{query:?} in pages of {rows_max}");
        }
    }
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn export(ledger: &Ledger) -> Vec<Archived> {
    let mut rows = Vec::new();
    for table in ArchiveTable::ALL {
        let mut after = None;
        loop {
            let page = ledger
                .store()
                .archive(table, after)
                .await
                .expect("the store answers");
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    rows
}

pub(super) async fn an_export_put_into_an_empty_store_answers_as_the_first_one(
    from: LedgerBuilder,
    into: LedgerBuilder,
) {
    let from = from.clock(ManualClock::at(70)).open();
    for player in 0..90 {
        applied(claim(&from, gold(10, player, "a").attempt(format!("try-{player}"))).await);
    }
    let stale = claim(&from, gold(9, 7, "b").attempt("late")).await;
    let reason = Reason::new("a chargeback").unwrap_or_else(|_| unreachable!("it is valid"));
    assert!(from.reverse(7, &event("a"), reason).await.is_ok());
    let (Ok(order), Ok(attempt), Ok(currency)) = (
        OrderId::new("order-1"),
        AttemptId::new("pay-1"),
        Item::new("EUR-cent"),
    ) else {
        unreachable!("they are valid");
    };
    let amount = crate::types::Amount::new(100).unwrap_or_else(|_| unreachable!("it is valid"));
    let fence = Fence::new(resource("lock:order-1"), token(3));
    let start = PaymentStart::new(order.clone(), attempt, fence, currency, amount);
    assert!(from.start_payment(start).await.is_ok());

    let rows = export(&from).await;
    let into = into.clock(ManualClock::at(99)).open();
    for round in 0..2 {
        let restored = into.store().restore(rows.clone()).await;
        assert_eq!(
            restored.ok(),
            Some(Restored::Done),
            "round {round}: again is harmless"
        );
    }
    assert_eq!(export(&into).await, rows);
    is_sound(&into).await;
    assert_eq!(claim(&into, gold(9, 7, "b").attempt("late")).await, stale);
    let replay = claim(&into, gold(10, 8, "a").attempt("try-8")).await;
    let first = from.get(8, &event("a")).await.ok().flatten();
    assert!(
        first.is_some() && replay.receipt() == first.as_ref(),
        "byte for byte: {replay:?}"
    );
    assert_eq!(seen(&into, "lock:reward:7").await, Some(10));
    assert_eq!(into.payments(&order).await.ok(), from.payments(&order).await.ok());
    let open = into
        .deliveries(OutboxQuery::OpenOf(PlayerId::new(7)), None, 9)
        .await;
    assert_eq!(
        open.map(|found| found.deliveries.len()).ok(),
        Some(2),
        "grant and reversal"
    );
    let next = applied(claim(&into, gold(11, 7, "c")).await);
    assert_eq!(next.claim_id().get(), 92, "numbers go on");
    is_sound(&into).await;
}

pub(super) async fn an_import_that_differs_is_refused_whole(from: LedgerBuilder, into: LedgerBuilder) {
    let (from, into) = (from.open(), into.open());
    for (player, name) in [(1, "a"), (2, "a")] {
        applied(claim(&from, gold(1, player, name)).await);
    }
    applied(claim(&into, gold(1, 2, "a").item("gems")).await);
    let rows = export(&from).await;
    let refused = into.store().restore(rows).await;
    assert!(matches!(refused, Ok(Restored::Refused { .. })), "{refused:?}");
    assert!(
        matches!(into.get(1, &event("a")).await, Ok(None)),
        "nothing of it was written"
    );
    let other = claim(&into, gold(1, 1, "a")).await;
    assert!(matches!(other, ClaimOutcome::Applied(_)));
    is_sound(&into).await;
}
