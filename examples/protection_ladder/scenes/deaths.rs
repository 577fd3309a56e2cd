//! S5 and S9: a worker dies, with the lock in its hand.

use std::sync::Arc;

use super::b_takes_over;
use crate::Failure;
use crate::counts::Counts;
use crate::pause;
use crate::stage::{Stage, rank_3};
use crate::timeline::{Lane, What};
use crate::worker::{Answer, Worker, effects_in};

/// S5
pub(super) async fn before_the_payment(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let (of_a, wanted) = (Arc::clone(stage), event.clone());
    pause::start(move |thread| {
        thread.run(async {
            let mut a = Worker::join(&of_a, Lane::A).await?;
            a.take().await?;
            a.look(&wanted).await?;
            die(&of_a, a);
            Ok(())
        })
    })
    .await??;
    b_takes_over(stage, &event).await?;
    effects_in(&stage.books, &[event]).await
}

/// S9
pub(super) async fn before_the_outside_call(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let (of_a, wanted) = (Arc::clone(stage), event.clone());
    pause::start(move |thread| {
        thread.run(async {
            let mut a = Worker::join(&of_a, Lane::A).await?;
            a.take().await?;
            a.look(&wanted).await?;
            a.pay(&wanted, Answer::Comes).await?;
            die(&of_a, a);
            Ok(())
        })
    })
    .await??;
    let mut b = Worker::join(stage, Lane::B).await?;
    b.take().await?;
    if b.look_and_pay(&event).await?.is_some() {
        b.call_outside("asks for the item", event.as_str()).await?;
    } else {
        stage
            .timeline
            .note(Lane::B, "finds nothing left to do: the message is done");
    }
    b.give_back().await;
    if let Some(publisher) = stage.publisher()? {
        publisher
            .published_until(|published| published.delivered > 0)
            .await;
        stage.timeline.add(Lane::Books, published(stage));
        publisher.stop().await;
    }
    let items = stage.outside.effects().iter().map(|_| 1).sum::<u64>();
    Ok(Counts::of_effects(1, items.min(1), items))
}

/// Nothing of it runs any more, and nobody hears of that: its runtime ends with this call's return.
fn die(stage: &Stage, worker: Worker) {
    stage.timeline.add(Lane::A, What::Dies);
    stage.each_link(crate::link::Link::cut);
    drop(worker);
}

/// What the drawing shows of the publisher's work.
pub(super) fn published(stage: &Stage) -> What {
    What::Wrote {
        to: Lane::Outside,
        what: "the publisher delivers the outbox row".to_owned(),
        answer: format!("delivered, {} done outside", stage.outside.effects().len()),
        verdict: crate::timeline::Verdict::Done,
    }
}
