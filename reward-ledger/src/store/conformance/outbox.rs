//! The outbox: order per player, leases guarded by their epoch, partitions guarded by a token.
#![expect(clippy::indexing_slicing, reason = "a suite fails by panicking")]

use super::{ManualClock, applied, claim, gold, is_sound, resource, seen, token};
use crate::config::LedgerBuilder;
use crate::ledger::Ledger;
use crate::store::{LeaseRequest, LeasedRows, OutboxQuery, SettleRequest, Share};
use crate::types::{
    ClaimId, Delivery, DeliveryState, Doubt, Note, Partition, PlayerId, PublisherId, Settled, Settlement,
    UnixMillis, Verdict,
};
use lease_core::Fence;

pub(super) const LEASE_MS: u64 = 1_000;

fn everything() -> Vec<Share> {
    Partition::all()
        .map(|partition| Share {
            partition,
            guard: None,
        })
        .collect()
}

/// What `owner` is leased at `at` for a second, of all partitions.
pub(super) async fn lease(ledger: &Ledger, owner: &str, at: u64, rows_max: usize) -> Vec<Delivery> {
    lease_shares(ledger, owner, at, rows_max, everything())
        .await
        .deliveries
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn lease_shares(
    ledger: &Ledger,
    owner: &str,
    at: u64,
    rows_max: usize,
    shares: Vec<Share>,
) -> LeasedRows {
    let request = LeaseRequest {
        owner: PublisherId::new(owner),
        shares,
        rows_max,
        at: UnixMillis::new(at),
        until: UnixMillis::new(at + LEASE_MS),
    };
    ledger
        .store()
        .lease_outbox(request)
        .await
        .expect("the store answers")
}

pub(super) async fn settle(ledger: &Ledger, at: u64, delivery: &Delivery, verdict: Verdict) -> Settled {
    let answers = settle_all(ledger, at, vec![Settlement::new(delivery, verdict)]).await;
    answers.first().copied().unwrap_or(Settled::Missing)
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
async fn settle_all(ledger: &Ledger, at: u64, settlements: Vec<Settlement>) -> Vec<Settled> {
    let request = SettleRequest {
        settlements,
        at: UnixMillis::new(at),
    };
    ledger
        .store()
        .settle_outbox(request)
        .await
        .expect("the store answers")
}

pub(super) fn ids(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.id.get()).collect()
}

fn again(due: u64) -> Verdict {
    Verdict::Again {
        due: UnixMillis::new(due),
        doubt: Doubt::Unknown,
        note: Note::new("no answer"),
    }
}

pub(super) fn dead() -> Verdict {
    Verdict::Dead {
        doubt: Doubt::NotDone,
        note: Note::new("no such item"),
    }
}

/// The row of a number, as it stands.
#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
pub(super) async fn row(ledger: &Ledger, id: u64) -> Delivery {
    let found = ledger
        .deliveries(OutboxQuery::All, Some(ClaimId::new(id - 1)), 1)
        .await
        .expect("the store answers");
    found.deliveries.into_iter().next().expect("the row is there")
}

#[expect(clippy::expect_used, reason = "a suite fails by panicking")]
pub(super) async fn counts(ledger: &Ledger) -> (u64, u64) {
    let standing = ledger.standing().await.expect("the store answers");
    (standing.outbox_open, standing.outbox_dead)
}

/// Claims 1, 2 and 3 are of player 42, claim 4 is of player 43; all at 100 ms.
pub(super) async fn four_claims(open: LedgerBuilder) -> Ledger {
    let ledger = open.clock(ManualClock::at(100)).open();
    for (player, event) in [(42, "a"), (42, "b"), (42, "c"), (43, "d")] {
        applied(claim(&ledger, gold(1, player, event)).await);
    }
    ledger
}

pub(super) async fn rows_are_leased_in_the_order_of_their_player_and_delivered_once(open: LedgerBuilder) {
    let ledger = four_claims(open).await;
    assert_eq!(counts(&ledger).await, (4, 0));
    assert!(
        lease(&ledger, "early", 99, 10).await.is_empty(),
        "nothing is due yet"
    );

    let mut delivered = Vec::new();
    for at in 100.. {
        let rows = lease(&ledger, "a", at, 10).await;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            assert_eq!(settle(&ledger, at, row, Verdict::Delivered).await, Settled::Done);
        }
        delivered.extend(rows);
    }
    let of = |player| -> Vec<u64> {
        let rows = delivered
            .iter()
            .filter(|row| row.receipt.player() == PlayerId::new(player));
        rows.map(|row| row.id.get()).collect()
    };
    assert_eq!((of(42), of(43)), (vec![1, 2, 3], vec![4]));
    assert_eq!(counts(&ledger).await, (0, 0));
    let one = row(&ledger, 1).await;
    assert!(matches!(one.progress.state(), DeliveryState::Delivered { .. }));
    assert_eq!((one.progress.tries(), one.progress.epoch()), (1, 1));
    is_sound(&ledger).await;
}

pub(super) async fn a_leased_row_is_nobody_elses_until_the_lease_is_over(open: LedgerBuilder) {
    let ledger = four_claims(open).await;
    let first = lease(&ledger, "a", 100, 10).await;
    assert!(ids(&first).contains(&4));
    // A store may lease the heads alone: then what is behind them waits for them.
    let held: Vec<u64> = ids(&lease(&ledger, "b", 100, 10).await);
    let again_held = ids(&lease(&ledger, "c", 100 + LEASE_MS - 1, 10).await);
    assert!(
        held.iter().all(|id| !again_held.contains(id)),
        "{held:?} {again_held:?}"
    );

    // After the end all of them can be had, each with a higher epoch and one more try of unknown outcome.
    let first = lease(&ledger, "d", 100 + 2 * LEASE_MS, 10).await;
    assert!(ids(&first).contains(&4));
    let four = first.iter().find(|row| row.id.get() == 4);
    assert!(
        four.is_some_and(|row| {
            row.progress.doubt() == Doubt::Unknown && row.progress.tries() >= 1 && row.progress.epoch() >= 2
        }),
        "{four:?}"
    );
    is_sound(&ledger).await;
}

pub(super) async fn a_verdict_of_an_earlier_lease_touches_nothing(open: LedgerBuilder) {
    let ledger = four_claims(open).await;
    let slow = lease(&ledger, "slow", 100, 10).await;
    let later = 100 + LEASE_MS;
    let quick = lease(&ledger, "quick", later, 10).await;
    let pick = |rows: &[Delivery]| rows.iter().find(|row| row.id.get() == 4).cloned();
    let (Some(slow), Some(quick)) = (pick(&slow), pick(&quick)) else {
        unreachable!("player 43 has one row, and both leased it");
    };
    assert_eq!(settle(&ledger, later, &slow, dead()).await, Settled::Superseded);
    assert_eq!(
        settle(&ledger, later, &quick, Verdict::Delivered).await,
        Settled::Done
    );
    assert_eq!(settle(&ledger, later, &slow, again(1)).await, Settled::Superseded);
    assert_eq!(
        settle(&ledger, later, &quick, dead()).await,
        Settled::Superseded,
        "it is final"
    );
    let four = row(&ledger, 4).await;
    assert!(
        matches!(four.progress.state(), DeliveryState::Delivered { .. }),
        "{four:?}"
    );
    assert_eq!(counts(&ledger).await, (3, 0));
    is_sound(&ledger).await;
}

pub(super) async fn a_row_that_is_tried_again_holds_up_its_player_and_nobody_else(open: LedgerBuilder) {
    let ledger = four_claims(open).await;
    let rows = lease(&ledger, "a", 100, 10).await;
    let mut verdicts: Vec<_> = rows
        .iter()
        .map(|row| Settlement::new(row, Verdict::Released))
        .collect();
    verdicts[0] = Settlement::new(&rows[0], again(5_000));
    assert_eq!(rows[0].id.get(), 1);
    assert!(
        settle_all(&ledger, 200, verdicts)
            .await
            .iter()
            .all(|settled| *settled == Settled::Done)
    );

    let rows = lease(&ledger, "a", 300, 10).await;
    assert_eq!(ids(&rows), [4], "2 and 3 wait for 1");
    assert_eq!(
        (rows[0].progress.tries(), rows[0].progress.first_sent()),
        (0, None),
        "it was never sent"
    );
    let rows = lease(&ledger, "a", 5_000, 10).await;
    assert_eq!(rows.first().map(|row| row.id.get()), Some(1));
    let one = &rows[0].progress;
    assert_eq!(
        (one.tries(), one.doubt(), one.note().as_str()),
        (1, Doubt::Unknown, "no answer")
    );
    assert_eq!(one.first_sent(), Some(UnixMillis::new(100)));
    is_sound(&ledger).await;
}

pub(super) async fn a_publisher_whose_partition_has_a_newer_holder_is_leased_nothing(open: LedgerBuilder) {
    let ledger = four_claims(open).await;
    let partition = Partition::of(PlayerId::new(43));
    let guarded = |number| {
        vec![Share {
            partition,
            guard: Some(Fence::new(resource("outbox-partition"), token(number))),
        }]
    };
    let old = lease_shares(&ledger, "old", 100, 10, guarded(7)).await;
    assert!(ids(&old.deliveries).contains(&4) && old.lost.is_empty());
    assert_eq!(seen(&ledger, "outbox-partition").await, Some(7));
    let new = lease_shares(&ledger, "new", 100 + LEASE_MS, 10, guarded(8)).await;
    assert!(ids(&new.deliveries).contains(&4));
    for row in &new.deliveries {
        settle(&ledger, 100 + LEASE_MS, row, Verdict::Released).await;
    }
    let late = lease_shares(&ledger, "old", 100 + 2 * LEASE_MS, 10, guarded(7)).await;
    assert!(late.deliveries.is_empty());
    assert_eq!(late.lost, [partition]);
    let foreign: Vec<_> = everything()
        .into_iter()
        .filter(|share| share.partition != partition)
        .collect();
    let others = lease_shares(&ledger, "b", 100 + 2 * LEASE_MS, 10, foreign).await;
    assert!(
        others
            .deliveries
            .iter()
            .all(|row| Partition::of(row.receipt.player()) != partition)
    );
    is_sound(&ledger).await;
}

/// L32: a player whose deliveries all fail hides nobody else, however many rows it has.
pub(super) async fn many_rows_of_one_player_that_are_not_due_hide_nobody(open: LedgerBuilder) {
    let ledger = open.clock(ManualClock::at(100)).open();
    for number in 0..40 {
        applied(claim(&ledger, gold(1, 42, &format!("e{number}"))).await);
    }
    for row in lease(&ledger, "a", 100, 64).await {
        settle(&ledger, 100, &row, again(9_000)).await;
    }
    let neighbour = (1_000..)
        .find(|player| Partition::of(PlayerId::new(*player)) == Partition::of(PlayerId::new(42)))
        .unwrap_or(43);
    applied(claim(&ledger, gold(1, neighbour, "late")).await);
    assert_eq!(ids(&lease(&ledger, "a", 200, 1).await), [41]);
    is_sound(&ledger).await;
}
