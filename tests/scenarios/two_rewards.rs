//! S13: two different rewards of one player.

use fence_client::Fence;
use reward_ledger::{Claim, ClaimBuilder, RewardEventId};

use crate::books::{applied, hold_exactly};
use crate::desk::Place;
use crate::stage::{GOLD, PLAYER, Stage, claim, gold, quest_9, rank_3};

#[tokio::test(start_paused = true)]
async fn s13_two_rewards_of_one_player_are_both_granted() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let worker = stage.worker("a");
        let lease = worker.acquire().await;
        let first = applied(claim(&stage.ledger, gold(lease.fence(), rank_3())).await);
        lease.release().await.unwrap();
        // Under the same lease or under another: the player is in the lock's name, never in the key alone.
        let lease = worker.acquire().await;
        let second = applied(claim(&stage.ledger, gold(lease.fence(), quest_9())).await);
        assert_ne!(first, second);
        hold_exactly(
            &stage.ledger,
            &[(PLAYER, rank_3(), GOLD), (PLAYER, quest_9(), GOLD)],
        )
        .await;
    }
}

/// Control: with the player alone as the key, whatever comes second is taken for the first.
#[tokio::test(start_paused = true)]
async fn s13_with_the_player_alone_as_the_key_the_second_reward_is_lost() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let lease = stage.worker("a").acquire().await;
        let by_player = |fence: Fence| -> ClaimBuilder {
            Claim::builder(fence, PLAYER, RewardEventId::parse("player-42").unwrap(), GOLD)
        };
        applied(claim(&stage.ledger, by_player(lease.fence())).await);
        let second = claim(&stage.ledger, by_player(lease.fence())).await;
        assert!(second.is_accepted(), "it looks as if all were well");
        assert_eq!(
            stage.ledger.audit().await.granted,
            i128::from(GOLD),
            "and half of it is missing"
        );
    }
}
