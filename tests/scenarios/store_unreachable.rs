//! S15: the lease store cannot be reached.

use std::time::Duration;

use fence_client::testing::TestKit;
use fence_client::{AcquireError, Authority, FenceClient, UnavailablePolicy};
use reward_ledger::testing::Protection;
use reward_ledger::{Claim, ClaimBuilder, ClaimError};

use crate::books::{applied, broken, granted_twice, hold_exactly, replayed};
use crate::desk::Place;
use crate::stage::{GOLD, LOCK, PLAYER, Stage, TTL, claim, owner, rank_3};

fn open_for_two() -> UnavailablePolicy {
    UnavailablePolicy::open_limited(2, Duration::from_secs(60))
}

/// A client that is cut off from its store.
fn cut_off(stage: &Stage, policy: UnavailablePolicy) -> FenceClient {
    let kit = TestKit::with_clock(&stage.clock);
    let builder = FenceClient::builder()
        .owner(owner("a"))
        .test_kit(&kit)
        .unavailable(policy);
    let client = builder.embedded(stage.store.clone()).unwrap();
    kit.cut();
    client
}

fn unfenced() -> ClaimBuilder {
    Claim::unfenced_builder(PLAYER, rank_3(), GOLD).item("gold")
}

#[tokio::test(start_paused = true)]
async fn s15_without_its_lease_store_a_worker_does_nothing() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let client = cut_off(&stage, UnavailablePolicy::default());
        for _ in 0..3 {
            let refused = client.lease(LOCK).ttl(TTL).acquire_or_unfenced().await;
            assert!(
                matches!(refused, Err(AcquireError::Unavailable { .. })),
                "{refused:?}"
            );
        }
        // Should it go on all the same: the ledger takes no claim without a token, unless it was opened so.
        let refused = stage.ledger.claim(unfenced().build().unwrap()).await;
        assert!(matches!(refused, Err(ClaimError::UnfencedNotAllowed)));
        hold_exactly(&stage.ledger, &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s15_fail_open_is_asked_for_by_name_is_limited_and_rests_on_the_unique_key() {
    for place in Place::ALL {
        let stage = Stage::with(place.ledger_taking_unfenced().await).await;
        let client = cut_off(&stage, open_for_two());
        let ask = || client.lease(LOCK).ttl(TTL).acquire_or_unfenced();
        let (one, two) = (ask().await.unwrap(), ask().await.unwrap());
        assert!(matches!(
            (&one, &two),
            (Authority::Unfenced(_), Authority::Unfenced(_))
        ));
        assert!(ask().await.is_err(), "both permits are given out");

        let first = applied(claim(&stage.ledger, unfenced()).await);
        assert_eq!(first.token(), None, "it is marked");
        assert_eq!(replayed(claim(&stage.ledger, unfenced()).await), first);
        drop((one, two));
        assert_eq!(stage.ledger.audit().await.unfenced, 1);
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;

        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(ask().await.is_err(), "the outage lasts longer than was allowed");
    }
}

/// A lease that somebody holds is not an outage.
#[tokio::test(start_paused = true)]
async fn s15_a_store_that_says_no_is_not_unreachable() {
    let stage = Stage::start().await;
    let _held = stage.worker("b").acquire().await;
    let builder = FenceClient::builder()
        .owner(owner("a"))
        .unavailable(open_for_two());
    let client = builder.embedded(stage.store.clone()).unwrap();
    let refused = client.lease(LOCK).ttl(TTL).acquire_or_unfenced().await;
    assert!(matches!(refused, Err(AcquireError::Held { .. })), "{refused:?}");
}

/// Control: open, and no unique key to rest on.
#[tokio::test(start_paused = true)]
async fn s15_open_and_without_the_unique_key_pays_twice() {
    for place in Place::ALL {
        let stage = Stage::with(place.ledger_without(Protection::UniqueEvent).await).await;
        let client = cut_off(&stage, open_for_two());
        for _ in 0..2 {
            let authority = client.lease(LOCK).ttl(TTL).acquire_or_unfenced().await.unwrap();
            assert!(matches!(authority, Authority::Unfenced(_)));
            applied(claim(&stage.ledger, unfenced()).await);
        }
        assert!(granted_twice(&broken(&stage.ledger).await));
    }
}
