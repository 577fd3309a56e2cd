//! S6: the same request arrives in several messages, one after another and at once.

use reward_ledger::testing::Protection;
use reward_ledger::{ClaimOutcome, Receipt};

use crate::books::{broken, granted_twice, hold_exactly, stale};
use crate::desk::Place;
use crate::stage::{GOLD, PLAYER, Stage, claim, gold, rank_3};

const MESSAGES: usize = 24;

/// Each message is taken by a worker of its own, all at once. What they were told, with the lease that each held.
async fn deliver_all_at_once(stage: &Stage) -> Vec<(fence_client::Fence, ClaimOutcome)> {
    let mut workers = tokio::task::JoinSet::new();
    for number in 0..MESSAGES {
        let worker = stage.worker(&format!("worker-{number}"));
        workers.spawn(async move {
            let lease = worker.acquire().await;
            let told = worker.claim(lease.fence()).await;
            let fence = lease.fence();
            lease.release().await.unwrap();
            (fence, told)
        });
    }
    workers.join_all().await
}

fn receipts(told: &[(fence_client::Fence, ClaimOutcome)]) -> Vec<&Receipt> {
    told.iter().filter_map(|(_, outcome)| outcome.receipt()).collect()
}

#[tokio::test(start_paused = true)]
async fn s06_many_messages_grant_once_and_all_get_the_same_receipt() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let told = deliver_all_at_once(&stage).await;
        let granted = told
            .iter()
            .filter(|(_, outcome)| matches!(outcome, ClaimOutcome::Applied(_)))
            .count();
        assert_eq!(granted, 1);
        let receipts = receipts(&told);
        assert_eq!(receipts.len(), MESSAGES, "each held the lease when it claimed");
        assert!(
            receipts
                .iter()
                .all(|receipt| receipt.as_bytes() == receipts[0].as_bytes())
        );

        // One more delivery, to a worker that holds the first lease still, as it believes.
        let (oldest, _) = told.iter().min_by_key(|(fence, _)| fence.token).unwrap();
        let late = claim(&stage.ledger, gold(oldest.clone(), rank_3())).await;
        assert_eq!(stale(late).2.as_ref(), Some(receipts[0]));
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// One message that is delivered again and again, to whoever holds the lease by then.
#[tokio::test(start_paused = true)]
async fn s06_one_message_delivered_again_under_new_tokens_is_replayed() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let worker = stage.worker("a");
        let mut first: Option<Receipt> = None;
        for _ in 0..5 {
            let lease = worker.acquire().await;
            let told = claim(&stage.ledger, gold(lease.fence(), rank_3()).attempt("message-7")).await;
            let receipt = told.receipt().unwrap().clone();
            assert_eq!(*first.get_or_insert(receipt.clone()), receipt);
            lease.release().await.unwrap();
        }
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Control: every one of them held the lease, and held it rightly. Without the unique key each pays.
#[tokio::test(start_paused = true)]
async fn s06_without_the_unique_key_each_message_pays() {
    for place in Place::ALL {
        let stage = Stage::with(place.ledger_without(Protection::UniqueEvent).await).await;
        let told = deliver_all_at_once(&stage).await;
        assert_eq!(receipts(&told).len(), MESSAGES);
        let report = broken(&stage.ledger).await;
        assert!(granted_twice(&report));
        assert_eq!(
            report.granted,
            i128::from(GOLD) * i128::try_from(MESSAGES).unwrap()
        );
    }
}
