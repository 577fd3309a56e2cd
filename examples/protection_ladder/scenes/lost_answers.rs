//! S7 and S8: the work is done, and only its answer is lost.

use std::sync::Arc;

use super::deaths::published;
use crate::Failure;
use crate::counts::Counts;
use crate::stage::{Stage, rank_3};
use crate::timeline::Lane;
use crate::worker::{Answer, Worker, effects_in};

/// S7
pub(super) async fn of_the_commit(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let mut a = Worker::join(stage, Lane::A).await?;
    a.take().await?;
    a.look(&event).await?;
    a.pay(&event, Answer::IsLost).await?;
    // The same holder, the same message, the same request.
    let told = a.pay(&event, Answer::Comes).await?;
    a.give_back().await;
    let counts = effects_in(&stage.books, &[event]).await?;
    Ok(counts.with_unanswered(u64::from(!told.can_be_answered())))
}

/// S8
pub(super) async fn of_the_outside(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let mut a = Worker::join(stage, Lane::A).await?;
    a.take().await?;
    a.look_and_pay(&event).await?;
    if let Some(publisher) = stage.publisher()? {
        publisher
            .published_until(|published| published.delivered > 0)
            .await;
        stage.timeline.add(Lane::Books, published(stage));
        publisher.stop().await;
    } else {
        a.call_outside("asks for the item", event.as_str()).await?;
    }
    a.give_back().await;
    let items = stage.outside.effects().iter().map(|_| 1).sum::<u64>();
    Ok(Counts::of_effects(1, items.min(1), items))
}
