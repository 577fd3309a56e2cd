//! S6 and S11: the same request several times at once, under the lock and past it.

use std::sync::Arc;

use lease_core::Fence;
use reward_ledger::RewardEventId;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::Failure;
use crate::books::Told;
use crate::counts::Counts;
use crate::lock::Held;
use crate::stage::{Stage, rank_3};
use crate::timeline::Lane;
use crate::worker::{Answer, Worker, effects_in, pay};

/// Copies of the request.
const COPIES: usize = 8;

/// S6
pub(super) async fn at_once(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let mut a = Worker::join(stage, Lane::A).await?;
    a.take().await?;
    let fence = a.held.as_ref().and_then(Held::fence);
    let told = side_by_side(stage, Lane::A, fence.as_ref(), &event).await?;
    a.give_back().await;
    let unanswered = told
        .iter()
        .filter(|told| !told.can_be_answered())
        .map(|_| 1)
        .sum();
    Ok(effects_in(&stage.books, &[event])
        .await?
        .with_unanswered(unanswered))
}

/// S11
pub(super) async fn past_the_lock(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    // Where tokens are used they show one that somebody held once.
    let mut once = Worker::join(stage, Lane::B).await?;
    once.take().await?;
    let fence = once.held.as_ref().and_then(Held::fence);
    once.give_back().await;
    side_by_side(stage, Lane::C, fence.as_ref(), &event).await?;
    // Nobody is owed an answer here: nobody has the authority.
    effects_in(&stage.books, &[event]).await
}

/// Looks, all of them, and then pays, all of them.
async fn side_by_side(
    stage: &Arc<Stage>,
    lane: Lane,
    fence: Option<&Fence>,
    event: &RewardEventId,
) -> Result<Vec<Told>, Failure> {
    let all_looked = Arc::new(Barrier::new(COPIES));
    let mut copies = JoinSet::new();
    for _ in 0..COPIES {
        let (stage, all_looked) = (Arc::clone(stage), Arc::clone(&all_looked));
        let (fence, event) = (fence.cloned(), event.clone());
        copies.spawn(async move {
            let looked = stage.books.look(&event).await;
            all_looked.wait().await;
            if looked? > 0 {
                return Err(Failure::from("paid before anybody paid"));
            }
            pay(&stage, lane, fence, &event, Answer::Comes).await
        });
    }
    stage
        .timeline
        .note(lane, format!("{COPIES} copies look, and none sees a payment"));
    let mut told = Vec::new();
    while let Some(copy) = copies.join_next().await {
        told.push(copy??);
    }
    Ok(told)
}
