//! S11: two claims race past the lock altogether, with equal tokens or with none.

use std::sync::Arc;

use fence_client::{Fence, FenceToken};
use reward_ledger::testing::{Protection, Protections};
use reward_ledger::{
    Claim, ClaimBuilder, ClaimOutcome, Ledger, LedgerBuilder, MemoryStore, SledConfig, SledStore,
};
use tokio::sync::Barrier;

use crate::books::{broken, granted_twice, hold_exactly};
use crate::stage::{GOLD, LOCK, PLAYER, claim, gold, name, rank_3};

const AT_ONCE: usize = 16;

/// All at once, from many threads; how many were applied, and how many were accepted at all.
async fn race(ledger: &Ledger, show: fn() -> ClaimBuilder) -> (usize, usize) {
    let barrier = Arc::new(Barrier::new(AT_ONCE));
    let mut claims = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (ledger, barrier) = (ledger.clone(), Arc::clone(&barrier));
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
    gold(Fence::new(name(LOCK), FenceToken::new(101).unwrap()), rank_3())
}

fn with_no_lock() -> ClaimBuilder {
    Claim::unfenced_builder(PLAYER, rank_3(), GOLD).item("gold")
}

fn in_memory(protections: Protections) -> LedgerBuilder {
    Ledger::builder(MemoryStore::with_protections(protections)).allow_unfenced()
}

fn on_sled(dir: &tempfile::TempDir, protections: Protections) -> LedgerBuilder {
    let config = SledConfig::builder(dir.path())
        .protections(protections)
        .build()
        .unwrap();
    Ledger::builder(SledStore::open_with(config).unwrap()).allow_unfenced()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s11_past_the_lock_the_unique_key_holds() {
    for show in [with_equal_tokens as fn() -> ClaimBuilder, with_no_lock] {
        let dir = tempfile::tempdir().unwrap();
        for ledger in [
            in_memory(Protections::ALL).open(),
            on_sled(&dir, Protections::ALL).open(),
        ] {
            assert_eq!(race(&ledger, show).await, (1, AT_ONCE));
            hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
        }
    }
}

/// Control: without it each of them pays, whatever tokens they show.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s11_without_the_unique_key_each_pays() {
    let without = Protections::all_without(Protection::UniqueEvent);
    for show in [with_equal_tokens as fn() -> ClaimBuilder, with_no_lock] {
        let dir = tempfile::tempdir().unwrap();
        for ledger in [in_memory(without).open(), on_sled(&dir, without).open()] {
            assert_eq!(race(&ledger, show).await, (AT_ONCE, AT_ONCE));
            assert!(granted_twice(&broken(&ledger).await));
        }
    }
}
