//! S1: the holder pauses for longer than its lease lives, and then writes.

use std::time::Duration;

use fence_client::{Lease, LossReason};
use reward_ledger::testing::Protection;
use reward_ledger::{Claim, ClaimBuilder, ClaimOutcome};

use crate::books::{applied, broken, granted_twice, hold_exactly, stale};
use crate::desk::{Desk, Place};
use crate::stage::{GOLD, PLAYER, Stage, TTL, claim, fence, gold, in_background, quest_9, rank_3};

/// What both workers were told.
struct Told {
    a: ClaimOutcome,
    b: ClaimOutcome,
}

/// A is paused with the lease in its hand, B waits for it, is granted it and pays; then A goes on and pays.
async fn a_pauses(stage: &Stage, pause: Duration, show: fn(&Lease) -> ClaimBuilder) -> Told {
    let (a, b) = (stage.worker("a"), stage.worker("b"));
    let lease = a.acquire().await;
    lease.check().unwrap();
    a.kit.pause();

    let ledger = stage.ledger.clone();
    let b = in_background(async move {
        let lease = b.acquire().await;
        let told = claim(&ledger, show(&lease)).await;
        lease.release().await.unwrap();
        told
    });
    tokio::time::sleep(pause).await;
    assert!(lease.is_valid(), "A cannot know how long it was paused");

    let told_b = b.await.unwrap();
    a.kit.resume();
    let told_a = claim(&stage.ledger, show(&lease)).await;
    assert_eq!(lease.check().unwrap_err().reason, LossReason::DeadlinePassed);
    Told { a: told_a, b: told_b }
}

fn with_token(lease: &Lease) -> ClaimBuilder {
    gold(lease.fence(), rank_3())
}

/// A plain table: whoever writes, writes.
async fn ledger_without_key(place: Place) -> Desk {
    place.ledger_without(Protection::UniqueEvent).await
}

fn without_token(_: &Lease) -> ClaimBuilder {
    Claim::unfenced_builder(PLAYER, rank_3(), GOLD).item("gold")
}

#[tokio::test(start_paused = true)]
async fn s01_a_holder_that_was_paused_past_its_lease_is_refused_and_shown_the_receipt() {
    for place in Place::ALL {
        for pause_ms in [5_001, 5_100, 30_000] {
            let stage = Stage::on(place).await;
            let told = a_pauses(&stage, Duration::from_millis(pause_ms), with_token).await;
            let first = applied(told.b);
            assert_eq!(stale(told.a), (101, 102, Some(first)), "{pause_ms} ms");
            hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        }
    }
}

/// Nobody else was granted: the late write is made without authority, but nothing that came after it is overwritten.
/// Fencing orders writes; it does not end them at the deadline.
#[tokio::test(start_paused = true)]
async fn s01_a_late_write_before_any_other_grant_is_the_one_grant() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let lease = a.acquire().await;
        a.kit.pause();
        tokio::time::sleep(TTL + Duration::from_millis(1)).await;
        let first = applied(a.claim(lease.fence()).await);
        let next = b.acquire().await;
        assert_eq!(b.claim(next.fence()).await, ClaimOutcome::Replayed(first));
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// The token alone holds, too: a table without a unique key, as the next control has it.
#[tokio::test(start_paused = true)]
async fn s01_the_token_holds_also_where_no_key_is_unique() {
    for place in Place::ALL {
        let stage = Stage::with(ledger_without_key(place).await).await;
        let told = a_pauses(&stage, Duration::from_millis(5_100), with_token).await;
        applied(told.b);
        stale(told.a);
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Control: the same table, and a lock whose token does not reach it.
#[tokio::test(start_paused = true)]
async fn s01_without_fencing_pays_twice() {
    for place in Place::ALL {
        let stage = Stage::with(ledger_without_key(place).await).await;
        let told = a_pauses(&stage, Duration::from_millis(5_100), without_token).await;
        applied(told.b);
        applied(told.a);
        let report = broken(&stage.ledger).await;
        assert!(granted_twice(&report));
        assert_eq!(report.granted, 2 * i128::from(GOLD));
    }
}

/// Control: with a unique key alone, the stale holder is told that all is well, and may go on to write something else.
#[tokio::test(start_paused = true)]
async fn s01_without_fencing_a_stale_holder_writes_on() {
    for place in Place::ALL {
        let stage = Stage::with(place.ledger_without(Protection::Fencing).await).await;
        let told = a_pauses(&stage, Duration::from_millis(5_100), with_token).await;
        let first = applied(told.b);
        assert_eq!(
            told.a,
            ClaimOutcome::Replayed(first.clone()),
            "A takes B's receipt for its own"
        );
        let late = applied(claim(&stage.ledger, gold(fence(101), quest_9())).await);
        assert!(
            late.claim_id() > first.claim_id() && late.token() < first.token(),
            "accepted tokens fell"
        );
    }
}
