//! S12: a retry that carries a fresh random event id.

use reward_ledger::{Claim, ClaimOutcome, InvalidEventId, RewardEventId};

use crate::books::{applied, hold_exactly};
use crate::desk::Place;
use crate::stage::{GOLD, PLAYER, Stage, claim, rank_3};

/// What two tries of one request would draw.
const DRAWN: [&str; 2] = [
    "5f0c4a7e-8a44-4c0e-9a53-0d8f5c9b2a11",
    "0b7e9f0d-6d1f-4f7e-8a5e-3c2d1b0a9f8e",
];

fn looks_random(refused: Result<RewardEventId, InvalidEventId>) -> bool {
    matches!(refused, Err(InvalidEventId::LooksRandom { .. }))
}

#[tokio::test(start_paused = true)]
async fn s12_an_id_that_looks_random_is_refused_and_a_typed_one_survives_the_retry() {
    for place in Place::ALL {
        for drawn in DRAWN {
            assert!(looks_random(RewardEventId::parse(drawn)));
            assert!(looks_random(RewardEventId::parse(format!(
                "season-2026-week-34:player-42:{drawn}"
            ))));
            assert!(looks_random(
                RewardEventId::builder("season-2026-week-34", PLAYER, drawn).build()
            ));
        }
        let stage = Stage::on(place).await;
        let worker = stage.worker("a");
        let lease = worker.acquire().await;
        let first = applied(worker.claim(lease.fence()).await);
        // The retry builds its id anew, from what the reward is.
        assert_eq!(worker.claim(lease.fence()).await, ClaimOutcome::Replayed(first));
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Control: where such ids are allowed by name, each try is another reward.
#[tokio::test(start_paused = true)]
async fn s12_where_random_ids_are_allowed_the_retry_pays_again() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let lease = stage.worker("a").acquire().await;
        for drawn in DRAWN {
            let event = RewardEventId::parse_allowing_random_look(drawn).unwrap();
            applied(claim(&stage.ledger, Claim::builder(lease.fence(), PLAYER, event, GOLD)).await);
        }
        assert_eq!(stage.ledger.audit().await.granted, 2 * i128::from(GOLD));
    }
}
