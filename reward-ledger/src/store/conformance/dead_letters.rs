//! Dead letters: listed, tried again and given up by hand, in their player's order, and never behind a reversal.
#![expect(clippy::indexing_slicing, reason = "a suite fails by panicking")]

use super::is_sound;
use super::outbox::{LEASE_MS, counts, dead, four_claims, ids, lease, row, settle};
use crate::config::LedgerBuilder;
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::store::{Amended, OutboxQuery};
use crate::types::{ClaimId, DeliveryState, PlayerId, Reason, Settled, UnixMillis, Verdict};

fn reason(text: &str) -> Reason {
    Reason::new(text).unwrap_or_else(|_| unreachable!("the suite's reasons are valid"))
}

/// The first row dead, the others as they were.
async fn one_dead(open: LedgerBuilder) -> Ledger {
    let ledger = four_claims(open).await;
    for row in lease(&ledger, "a", 100, 10).await {
        let verdict = match row.id.get() {
            1 => dead(),
            _ => Verdict::Released,
        };
        settle(&ledger, 150, &row, verdict).await;
    }
    ledger
}

pub(super) async fn dead_letters_hold_up_nobody_are_listed_and_wait_for_a_person(open: LedgerBuilder) {
    let ledger = four_claims(open).await;
    let rows = lease(&ledger, "a", 100, 10).await;
    for row in &rows {
        let verdict = if row.id.get() == 1 {
            dead()
        } else {
            Verdict::Released
        };
        assert_eq!(settle(&ledger, 150, row, verdict).await, Settled::Done);
    }
    assert_eq!(counts(&ledger).await, (3, 1));
    let listed = ledger.deliveries(OutboxQuery::Dead, None, 10).await;
    let listed = listed.map(|found| found.deliveries).unwrap_or_default();
    assert_eq!(ids(&listed), [1]);
    assert_eq!(listed[0].progress.note().as_str(), "no such item");
    let next = lease(&ledger, "a", 200, 1).await;
    assert!(!ids(&next).contains(&1));
    let open = ledger
        .deliveries(OutboxQuery::OpenOf(PlayerId::new(42)), None, 10)
        .await;
    assert_eq!(
        open.map(|found| ids(&found.deliveries)).unwrap_or_default(),
        [2, 3]
    );

    let discarded = ledger
        .discard_delivery(ClaimId::new(1), reason("given by hand"))
        .await;
    assert!(matches!(discarded, Ok(Amended::Done(_))), "{discarded:?}");
    let twice = ledger.discard_delivery(ClaimId::new(1), reason("again")).await;
    assert!(matches!(twice, Ok(Amended::Refused(_))), "{twice:?}");
    assert_eq!(counts(&ledger).await, (3, 0));
    let kept = row(&ledger, 1).await;
    assert!(matches!(kept.progress.state(), DeliveryState::Discarded { .. }));
    assert_eq!(kept.progress.note().as_str(), "given by hand");

    let retried = ledger.retry_delivery(ClaimId::new(1)).await;
    assert!(matches!(retried, Ok(Amended::Done(_))), "{retried:?}");
    let open = ledger.retry_delivery(ClaimId::new(2)).await;
    assert!(matches!(open, Ok(Amended::Refused(_))), "{open:?}");
    assert_eq!(
        ledger.retry_delivery(ClaimId::new(99)).await.ok(),
        Some(Amended::NotFound)
    );
    assert_eq!(counts(&ledger).await, (4, 0));
    let rows = lease(&ledger, "a", 10_000, 10).await;
    assert_eq!(
        rows.first().map(|row| (row.id.get(), row.progress.tries())),
        Some((1, 0))
    );
    assert_eq!(
        rows[0].progress.first_sent(),
        Some(UnixMillis::new(100)),
        "the window goes on"
    );
    is_sound(&ledger).await;
}

/// The row of a player that a person has tried again goes before all that the player is still to be told, and beside nothing
/// that is under way.
pub(super) async fn a_dead_letter_that_is_tried_again_keeps_its_players_order(open: LedgerBuilder) {
    let ledger = one_dead(open).await;
    let under_way = lease(&ledger, "b", 200, 64).await;
    assert_eq!(ids(&under_way), [2, 3, 4]);
    let retried = ledger.retry_delivery(ClaimId::new(1)).await;
    let Ok(Amended::Done(retried)) = retried else {
        unreachable!("{retried:?}");
    };
    let over = 200 + LEASE_MS;
    let due = UnixMillis::new(over);
    assert_eq!(*retried.progress.state(), DeliveryState::Pending { due });
    assert!(lease(&ledger, "c", over - 1, 64).await.is_empty());
    settle(&ledger, 300, &under_way[0], Verdict::Delivered).await;
    settle(&ledger, 300, &under_way[1], Verdict::Released).await;
    settle(&ledger, 300, &under_way[2], Verdict::Delivered).await;
    assert!(lease(&ledger, "c", over - 1, 64).await.is_empty());
    let mut rest = Vec::new();
    while rest.len() < 2 {
        // A store may lease the heads alone.
        for row in lease(&ledger, "c", over, 64).await {
            rest.push(row.id.get());
            settle(&ledger, over, &row, Verdict::Delivered).await;
        }
    }
    assert_eq!(rest, [1, 3]);
    assert_eq!(counts(&ledger).await, (0, 0));
    is_sound(&ledger).await;
}

/// A grant that was taken back while it was dead is told before the reversal, or not at all.
pub(super) async fn a_grant_is_never_told_after_its_reversal(open: LedgerBuilder) {
    let ledger = one_dead(open).await;
    let reversed = match RewardEventId::parse("a") {
        Ok(event) => ledger.reverse(42, &event, reason("a chargeback")).await,
        Err(error) => unreachable!("{error}"),
    };
    assert!(reversed.is_ok(), "{reversed:?}");
    let early = ledger.retry_delivery(ClaimId::new(1)).await;
    assert!(matches!(early, Ok(Amended::Done(_))), "{early:?}");
    let mut told = Vec::new();
    while counts(&ledger).await.0 > 0 {
        for row in lease(&ledger, "a", 10_000, 10).await {
            let verdict = match row.id.get() {
                1 => dead(),
                _ => Verdict::Delivered,
            };
            told.push(row.idempotency_key());
            settle(&ledger, 10_000, &row, verdict).await;
        }
    }
    let at = |key: &str| told.iter().position(|told| told == key);
    assert!(at("grant/42/a") < at("reverse/42/a"), "{told:?}");
    assert!(at("grant/42/a").is_some(), "{told:?}");

    let late = ledger.retry_delivery(ClaimId::new(1)).await;
    assert!(matches!(late, Ok(Amended::TakenBack(_))), "{late:?}");
    assert_eq!(counts(&ledger).await, (0, 1), "it stays where it is");
    let given_up = ledger
        .discard_delivery(ClaimId::new(1), reason("never told"))
        .await;
    assert!(matches!(given_up, Ok(Amended::Done(_))), "{given_up:?}");
    is_sound(&ledger).await;
}
