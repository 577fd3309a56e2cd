//! S5: the worker dies just before, or just after, it would have finished.

use std::time::Duration;

use lease_core::machine::{Set, SetCondition, SetExpiry};
use reward_ledger::ClaimOutcome;

use crate::books::{applied, hold_exactly};
use crate::desk::Place;
use crate::stage::{GOLD, LOCK, PLAYER, Stage, TTL, WAIT, Worker, key, owner, rank_3};

/// The published bound, beside the ttl: a change of leaders, and one commit.
const BEYOND_TTL: Duration = Duration::from_millis(200);

/// A dead worker sends nothing any more, and nothing of it reaches the store.
fn die(worker: &Worker) {
    worker.kit.pause();
}

#[tokio::test(start_paused = true)]
async fn s05_another_worker_takes_over_within_the_bound_and_finishes() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let lease = a.acquire().await;
        tokio::time::sleep(TTL * 3).await;
        die(&a);
        let died_at = stage.clock.elapsed();

        let next = b.acquire().await;
        let after = stage.clock.elapsed().saturating_sub(died_at);
        assert!(after <= TTL + BEYOND_TTL, "replaced after {after:?}");
        assert!(next.token() > lease.token());
        applied(b.claim(next.fence()).await);
        next.release().await.unwrap();
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s05_who_takes_over_from_a_worker_that_had_finished_gets_its_receipt() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let lease = a.acquire().await;
        let first = applied(a.claim(lease.fence()).await);
        die(&a);
        let next = b.acquire().await;
        assert_eq!(b.claim(next.fence()).await, ClaimOutcome::Replayed(first));
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Control: a lock without a time to live. Its holder dies, and the reward is never granted.
#[tokio::test(start_paused = true)]
async fn s05_without_a_ttl_nobody_takes_over() {
    let stage = Stage::start().await;
    let for_ever = Set {
        key: key(LOCK),
        value: owner("a"),
        expiry: SetExpiry::Never,
        condition: SetCondition::IfAbsent,
    };
    stage.store.set(for_ever).await.unwrap();
    let b = stage.worker("b");
    let refused = b.client.lease(LOCK).ttl(TTL).wait(WAIT).acquire().await;
    assert!(refused.is_err());
    assert_eq!(stage.ledger.get(PLAYER, &rank_3()).await, None);
}
