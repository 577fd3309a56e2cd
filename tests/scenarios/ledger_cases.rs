//! Cases of the ledger, on sled: real threads, real files.

use std::sync::Arc;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use fence_client::Fence;
use lease_core::FenceToken;
use reward_ledger::testing::Stage;
use reward_ledger::{Claim, ClaimField, ClaimOutcome, ConflictSubject, Ledger, SledConfig, SledStore};
use tokio::sync::{Barrier, oneshot};

use crate::books::{applied, hold_exactly, replayed};
use crate::stage::{GOLD, LOCK, PLAYER, claim, gold, in_background, name, rank_3};

fn fence(token: u64) -> Fence {
    Fence::new(name(LOCK), FenceToken::new(token).unwrap())
}

/// L01: sixty-four requests with one key arrive together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn l01_of_sixty_four_requests_at_once_one_is_granted_and_all_get_its_receipt() {
    const REQUESTS: usize = 64;
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(SledStore::open(dir.path()).unwrap());
    let barrier = Arc::new(Barrier::new(REQUESTS));
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..REQUESTS {
        let (ledger, barrier) = (ledger.clone(), Arc::clone(&barrier));
        requests.spawn(async move {
            barrier.wait().await;
            claim(
                &ledger,
                gold(fence(101), rank_3()).attempt(format!("request-{number}")),
            )
            .await
        });
    }
    let told = requests.join_all().await;
    let first = ledger.get(PLAYER, &rank_3()).await.unwrap().unwrap();
    assert!(told.iter().all(|outcome| {
        outcome
            .receipt()
            .is_some_and(|receipt| receipt.as_bytes() == first.as_bytes())
    }));
    assert_eq!(
        told.iter()
            .filter(|outcome| matches!(outcome, ClaimOutcome::Applied(_)))
            .count(),
        1
    );
    hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    ledger.close().await.unwrap();
}

/// L02: the key is used again, for another amount.
#[tokio::test]
async fn l02_a_key_used_again_for_another_amount_is_a_conflict_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(SledStore::open(dir.path()).unwrap());
    let first = applied(claim(&ledger, gold(fence(101), rank_3())).await);
    let other = Claim::builder(fence(101), PLAYER, rank_3(), GOLD + 1).item("gold");
    let refused = ClaimOutcome::Conflict {
        subject: ConflictSubject::Event,
        fields: vec![ClaimField::Amount],
    };
    assert_eq!(claim(&ledger, other).await, refused);
    assert_eq!(
        ledger.get(PLAYER, &rank_3()).await.unwrap(),
        Some(first),
        "the first claim is untouched"
    );
    hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    ledger.close().await.unwrap();
}

/// L07: the loser of the race comes while the winner is not committed yet. It waits and is answered, without an error
/// that would start a storm of retries.
#[tokio::test]
async fn l07_who_comes_before_the_winner_is_durable_waits_and_gets_its_receipt() {
    const LOSERS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let (reached, at_the_disk) = oneshot::channel();
    let (go_on, held) = mpsc::sync_channel::<()>(1);
    let (reached, held) = (Mutex::new(Some(reached)), Mutex::new(held));
    let config = SledConfig::builder(dir.path()).on_stage(move |stage| {
        let first = reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_if(|_| stage == Stage::Syncing);
        if let Some(reached) = first {
            let _ = reached.send(());
            let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
        Ok(())
    });
    let ledger = Ledger::open(SledStore::open_with(config.build().unwrap()).unwrap());

    let mut claims = tokio::task::JoinSet::new();
    let of_winner = ledger.clone();
    let winner = in_background(async move { claim(&of_winner, gold(fence(101), rank_3())).await });
    at_the_disk.await.unwrap();
    for _ in 0..LOSERS {
        let ledger = ledger.clone();
        claims.spawn(async move { claim(&ledger, gold(fence(101), rank_3())).await });
    }
    // Each of them runs until it waits.
    for _ in 0..LOSERS * 8 {
        tokio::task::yield_now().await;
    }
    assert!(
        claims.try_join_next().is_none() && !winner.is_finished(),
        "nobody is told what is not durable"
    );
    go_on.send(()).unwrap();
    let first = applied(winner.await.unwrap());
    for told in claims.join_all().await {
        assert_eq!(replayed(told).as_bytes(), first.as_bytes());
    }
    hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    ledger.close().await.unwrap();
}
