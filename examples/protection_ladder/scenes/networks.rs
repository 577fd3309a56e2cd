//! S2, S3 and S4: the way between the holder and the lock service is broken or slow.

use std::sync::Arc;

use super::{b_takes_over, give, signal, wait_for};
use crate::Failure;
use crate::counts::Counts;
use crate::link::Link;
use crate::pause;
use crate::stage::{Stage, quest_9, rank_3};
use crate::timeline::{Lane, What};
use crate::worker::{Answer, Worker, effects_in};

/// S2
pub(super) async fn renewals_fail(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let ((at_work, a_works), (paid_by_b, b_paid)) = (signal(), signal());
    let (of_a, paid) = (Arc::clone(stage), event.clone());
    let a = pause::start(move |thread| {
        let mut a = thread.run(Worker::join(&of_a, Lane::A))?;
        thread.run(async {
            a.take().await?;
            a.look(&paid).await?;
            of_a.each_link(Link::cut);
            of_a.timeline.add(Lane::A, What::CutOff);
            give(at_work);
            // A lock that outlives the work is still held at its end; any other is B's by then.
            if of_a.ttl() > of_a.times.long_work() {
                tokio::time::sleep(of_a.times.long_work()).await;
            } else {
                wait_for(b_paid).await;
            }
            of_a.timeline.note(Lane::A, "has done its work");
            a.pay(&paid, Answer::Comes).await?;
            of_a.each_link(Link::open);
            a.give_back().await;
            Ok(())
        })
    });
    wait_for(a_works).await;
    b_takes_over(stage, &event).await?;
    give(paid_by_b);
    a.await??;
    effects_in(&stage.books, &[event]).await
}

/// S3
pub(super) async fn renewal_is_late(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let ((at_work, a_works), (paid_by_b, b_paid)) = (signal(), signal());
    let ((heard, a_heard), (of_a, paid)) = (signal(), (Arc::clone(stage), event.clone()));
    let a = pause::start(move |thread| {
        let mut a = thread.run(Worker::join(&of_a, Lane::A))?;
        thread.run(async {
            a.take().await?;
            a.look(&paid).await?;
            let renewal = match &a.held {
                Some(held) => held.renewal().await?,
                None => return Err("A holds the lock".into()),
            };
            of_a.each_link(Link::hold);
            of_a.timeline
                .note(Lane::A, "sends a renewal, which is slow on its way");
            give(at_work);
            let works = async {
                wait_for(b_paid).await;
                let told = a.pay(&paid, Answer::Comes).await;
                of_a.each_link(Link::open);
                told
            };
            let (answer, told) = tokio::join!(renewal.send(), works);
            told?;
            let answer = answer.unwrap_or_else(|error| error.to_string());
            of_a.timeline
                .note(Lane::A, format!("its renewal has arrived: {answer}"));
            give(heard);
            a.give_back().await;
            Ok(())
        })
    });
    wait_for(a_works).await;
    let mut b = Worker::join(stage, Lane::B).await?;
    b.take().await?;
    b.look_and_pay(&event).await?;
    give(paid_by_b);
    wait_for(a_heard).await;
    b.give_back().await;
    a.await??;
    effects_in(&stage.books, &[event]).await
}

/// S4
pub(super) async fn cut_and_back(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let (first, second) = (rank_3()?, quest_9()?);
    stage.books.announce(&[first.clone(), second.clone()]).await?;
    let ((at_work, a_works), (paid_by_b, b_paid)) = (signal(), signal());
    let ((paid_by_a, a_paid), of_a) = (signal(), Arc::clone(stage));
    let rewards = [first.clone(), second.clone()];
    let a = pause::start(move |thread| {
        let mut a = thread.run(Worker::join(&of_a, Lane::A))?;
        thread.run(async {
            a.take().await?;
            for reward in &rewards {
                a.look(reward).await?;
            }
            of_a.each_link(Link::cut);
            of_a.timeline.add(Lane::A, What::CutOff);
            give(at_work);
            wait_for(b_paid).await;
            of_a.each_link(Link::open);
            of_a.timeline.add(Lane::A, What::Heals);
            for reward in &rewards {
                a.pay(reward, Answer::Comes).await?;
            }
            give(paid_by_a);
            a.give_back().await;
            Ok(())
        })
    });
    wait_for(a_works).await;
    let mut b = Worker::join(stage, Lane::B).await?;
    b.take().await?;
    b.look(&first).await?;
    b.look(&second).await?;
    b.pay(&first, Answer::Comes).await?;
    give(paid_by_b);
    wait_for(a_paid).await;
    // B holds the lock, so it is owed an answer.
    let told = b.pay(&second, Answer::Comes).await?;
    b.give_back().await;
    a.await??;
    let counts = effects_in(&stage.books, &[first, second]).await?;
    Ok(counts.with_unanswered(u64::from(!told.can_be_answered())))
}
