//! S11: two claims race past the lock altogether, with equal tokens or with none.

use std::sync::Arc;

use reward_ledger::testing::Protection;
use reward_ledger::{Claim, ClaimBuilder, ClaimOutcome};
use tokio::sync::Barrier;

use crate::books::{broken, granted_twice, hold_exactly};
use crate::desk::{Desk, Opening, Place};
use crate::stage::{GOLD, PLAYER, claim, fence, gold, rank_3};

const AT_ONCE: usize = 16;

/// All at once, from many threads and two workers; how many were applied, and how many were accepted at all.
async fn race(workers: &[Desk; 2], show: fn() -> ClaimBuilder) -> (usize, usize) {
    let barrier = Arc::new(Barrier::new(AT_ONCE));
    let mut claims = tokio::task::JoinSet::new();
    for worker in workers.iter().cycle().take(AT_ONCE) {
        let (ledger, barrier) = (worker.clone(), Arc::clone(&barrier));
        claims.spawn(async move {
            barrier.wait().await;
            claim(&ledger, show()).await
        });
    }
    let told = claims.join_all().await;
    let applied = told
        .iter()
        .filter(|outcome| matches!(outcome, ClaimOutcome::Applied(_)))
        .count();
    (
        applied,
        told.iter().filter(|outcome| outcome.is_accepted()).count(),
    )
}

fn with_equal_tokens() -> ClaimBuilder {
    gold(fence(101), rank_3())
}

fn with_no_lock() -> ClaimBuilder {
    Claim::unfenced_builder(PLAYER, rank_3(), GOLD).item("gold")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s11_past_the_lock_the_unique_key_holds() {
    for show in [with_equal_tokens as fn() -> ClaimBuilder, with_no_lock] {
        for place in Place::ALL {
            let opening = || Opening::usual().taking_unfenced();
            let ledger = place.open(opening()).await;
            let workers = [ledger.clone(), ledger.of_another_worker(opening()).await];
            assert_eq!(race(&workers, show).await, (1, AT_ONCE), "{place:?}");
            hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        }
    }
}

/// Control: without it each of them pays, whatever tokens they show.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s11_without_the_unique_key_each_pays() {
    for show in [with_equal_tokens as fn() -> ClaimBuilder, with_no_lock] {
        for place in Place::ALL {
            let opening = || {
                Opening::usual()
                    .without(Protection::UniqueEvent)
                    .taking_unfenced()
            };
            let ledger = place.open(opening()).await;
            let workers = [ledger.clone(), ledger.of_another_worker(opening()).await];
            assert_eq!(race(&workers, show).await, (AT_ONCE, AT_ONCE), "{place:?}");
            assert!(granted_twice(&broken(&ledger).await), "{place:?}");
        }
    }
}
