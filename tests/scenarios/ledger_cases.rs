//! Cases of the ledger on every store: real threads, real files, a real server.

use std::sync::Arc;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use lease_core::FenceToken;
use reward_ledger::testing::Protection;
use reward_ledger::{Claim, ClaimField, ClaimOutcome, ConflictSubject, Reason, ReversalOutcome};
use tokio::sync::{Barrier, oneshot};

use crate::books::{applied, broken, granted_twice, hold_exactly, replayed, stale};
use crate::desk::{Desk, Opening, Place, Point};
use crate::stage::{GOLD, LOCK, PLAYER, claim, fence, gold, in_background, name, quest_9, rank_3};

/// L01: sixty-four requests with one key arrive together, at two workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn l01_of_sixty_four_requests_at_once_one_is_granted_and_all_get_its_receipt() {
    const REQUESTS: usize = 64;
    for place in Place::ALL {
        let ledger = place.ledger().await;
        let workers = [ledger.clone(), ledger.of_another_worker(Opening::usual()).await];
        let barrier = Arc::new(Barrier::new(REQUESTS));
        let mut requests = tokio::task::JoinSet::new();
        for (number, worker) in workers.iter().cycle().take(REQUESTS).enumerate() {
            let (worker, barrier) = (worker.clone(), Arc::clone(&barrier));
            requests.spawn(async move {
                barrier.wait().await;
                let request = gold(fence(101), rank_3()).attempt(format!("request-{number}"));
                claim(&worker, request).await
            });
        }
        let told = requests.join_all().await;
        let first = ledger.get(PLAYER, &rank_3()).await.unwrap();
        assert!(told.iter().all(|outcome| {
            outcome
                .receipt()
                .is_some_and(|receipt| receipt.as_bytes() == first.as_bytes())
        }));
        let granted = told
            .iter()
            .filter(|outcome| matches!(outcome, ClaimOutcome::Applied(_)));
        assert_eq!(granted.count(), 1, "{place:?}");
        hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// L02: the key is used again, for another amount.
#[tokio::test]
async fn l02_a_key_used_again_for_another_amount_is_a_conflict_that_names_it() {
    for place in Place::ALL {
        let ledger = place.ledger().await;
        let first = applied(claim(&ledger, gold(fence(101), rank_3())).await);
        let other = Claim::builder(fence(101), PLAYER, rank_3(), GOLD + 1).item("gold");
        let refused = ClaimOutcome::Conflict {
            subject: ConflictSubject::Event,
            fields: vec![ClaimField::Amount],
        };
        assert_eq!(claim(&ledger, other).await, refused, "{place:?}");
        assert_eq!(
            ledger.get(PLAYER, &rank_3()).await,
            Some(first),
            "the first claim is untouched"
        );
        hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Holds the first transaction up that comes to `point`; whoever is told of it, and whoever lets it go on.
fn held_at(point: Point) -> (Opening, oneshot::Receiver<()>, mpsc::SyncSender<()>) {
    let (reached, there) = oneshot::channel();
    let (go_on, held) = mpsc::sync_channel::<()>(1);
    let (reached, held) = (Mutex::new(Some(reached)), Mutex::new(held));
    let opening = Opening::usual().at_points(move |at| {
        let first = reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_if(|_| at == point);
        if let Some(reached) = first {
            let _ = reached.send(());
            let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
        Ok(())
    });
    (opening, there, go_on)
}

/// L07: the loser of the race comes while the winner is not committed yet, at the same worker and at another one. It waits and
/// is answered, without an error that would start a storm of retries.
#[tokio::test]
async fn l07_who_comes_before_the_winner_is_durable_waits_and_gets_its_receipt() {
    const LOSERS: usize = 8;
    for place in Place::DURABLE {
        let (opening, there, go_on) = held_at(Point::Written);
        let ledger = place.open(opening).await;
        let workers = [ledger.clone(), ledger.of_another_worker(Opening::usual()).await];
        let of_winner = ledger.clone();
        let winner = in_background(async move { claim(&of_winner, gold(fence(101), rank_3())).await });
        there.await.unwrap();
        let mut claims = tokio::task::JoinSet::new();
        for worker in workers.iter().cycle().take(LOSERS) {
            let worker = worker.clone();
            claims.spawn(async move { claim(&worker, gold(fence(101), rank_3())).await });
        }
        // Each of them runs until it waits.
        for _ in 0..LOSERS * 8 {
            tokio::task::yield_now().await;
        }
        assert!(
            claims.try_join_next().is_none() && !winner.is_finished(),
            "{place:?}: nobody is told what is not durable"
        );
        go_on.send(()).unwrap();
        let first = applied(winner.await.unwrap());
        for told in claims.join_all().await {
            assert_eq!(replayed(told).as_bytes(), first.as_bytes());
        }
        hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// L29: two workers have both read that nothing was granted yet, and act on what they read.
async fn act_on_an_old_read(workers: &[Desk; 2]) -> [ClaimOutcome; 2] {
    for worker in workers {
        assert_eq!(worker.get(PLAYER, &rank_3()).await, None);
    }
    let [a, b] = workers;
    [
        claim(a, gold(fence(101), rank_3())).await,
        claim(b, gold(fence(101), rank_3())).await,
    ]
}

#[tokio::test]
async fn l29_what_was_read_before_decides_nothing_neither_a_grant_nor_a_fence_nor_a_reversal() {
    for place in Place::ALL {
        let ledger = place.ledger().await;
        let workers = [ledger.clone(), ledger.of_another_worker(Opening::usual()).await];
        let [first, second] = act_on_an_old_read(&workers).await;
        let first = applied(first);
        assert_eq!(replayed(second), first, "{place:?}");
        hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;

        // Both have seen the fence at 101; one of them moves it.
        let [a, b] = &workers;
        let seen = b
            .ask(async |ledger| ledger.fence(&name(LOCK)).await.unwrap())
            .await;
        assert_eq!(seen.and_then(|fence| fence.seen), FenceToken::new(101).ok());
        replayed(claim(a, gold(fence(102), rank_3())).await);
        assert_eq!(
            stale(claim(b, gold(fence(101), quest_9())).await),
            (101, 102, None)
        );

        // Both have seen the grant, and both take it back.
        let take_back = |worker: &Desk| {
            let worker = worker.clone();
            async move {
                let reason = Reason::new("withdrawn").unwrap();
                let work = worker.ask(async move |ledger| ledger.reverse(PLAYER, &rank_3(), reason).await);
                work.await.unwrap()
            }
        };
        let (one, other) = tokio::join!(take_back(a), take_back(b));
        let done = [&one, &other]
            .into_iter()
            .filter(|outcome| matches!(outcome, ReversalOutcome::Reversed(_)))
            .count();
        assert_eq!(done, 1, "{place:?}: {one:?}, {other:?}");
        let report = ledger.audit().await;
        assert!(report.is_clean(), "{place:?}: {:?}", report.violations);
    }
}

/// Control: where the transaction does not look again, both pay.
#[tokio::test]
async fn l29_where_the_old_read_is_trusted_both_pay() {
    for place in Place::ALL {
        let opening = || Opening::usual().without(Protection::UniqueEvent);
        let ledger = place.open(opening()).await;
        let workers = [ledger.clone(), ledger.of_another_worker(opening()).await];
        for told in act_on_an_old_read(&workers).await {
            applied(told);
        }
        assert!(granted_twice(&broken(&ledger).await), "{place:?}");
    }
}
