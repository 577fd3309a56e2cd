//! S10: a late release by A, after B was granted.

use std::time::Duration;

use fence_client::{AcquireError, ReleaseError};
use lease_core::Database;
use lease_core::wire::{LossReason as EndReason, ReleaseReply};

use crate::books::{applied, hold_exactly};
use crate::desk::Place;
use crate::stage::{GOLD, LOCK, PLAYER, Stage, TTL, key, name, rank_3};

#[tokio::test(start_paused = true)]
async fn s10_a_late_release_leaves_the_next_lease_untouched() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b, c) = (stage.worker("a"), stage.worker("b"), stage.worker("c"));
        let lease = a.acquire().await;
        a.kit.pause();
        let next = b.acquire().await;
        let held = stage.holder().await;

        a.kit.resume();
        assert!(matches!(lease.release().await, Err(ReleaseError::Lost { .. })));
        // The same, past the client: what the store itself says to the old token.
        let refused = stage
            .store
            .release(Database::ZERO, name(LOCK), lease.token())
            .await
            .unwrap();
        assert_eq!(
            refused,
            ReleaseReply::Lost {
                reason: EndReason::Expired
            }
        );
        drop(lease);
        a.client.settle(Duration::from_secs(5)).await;

        assert_eq!(stage.holder().await, held);
        assert!(next.is_valid());
        let refused = c.client.lease(LOCK).ttl(TTL).try_acquire().await;
        assert!(matches!(refused, Err(AcquireError::Held { holder }) if holder.token == next.token()));
        applied(b.claim(next.fence()).await);
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Control: a release that deletes the lock without a look at whose it is.
#[tokio::test(start_paused = true)]
async fn s10_with_a_bare_delete_as_release_two_hold_the_lock() {
    let stage = Stage::start().await;
    let (a, b, c) = (stage.worker("a"), stage.worker("b"), stage.worker("c"));
    let _lease = a.acquire().await;
    a.kit.pause();
    let next = b.acquire().await;
    assert!(stage.store.delete(key(LOCK)).await.unwrap());
    let third = c.client.lease(LOCK).ttl(TTL).try_acquire().await.unwrap();
    assert!(next.is_valid() && third.is_valid(), "two workers hold the lease");
}
