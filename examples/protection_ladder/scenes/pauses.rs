//! S1 and S14: the holder stops as a whole, for longer than its lock lives.

use std::sync::Arc;

use super::{b_takes_over, give, signal, stops, wait_for, wakes};
use crate::Failure;
use crate::counts::Counts;
use crate::pause;
use crate::stage::{Stage, rank_3};
use crate::timeline::Lane;
use crate::worker::{Answer, Worker, effects_in};

/// S1
pub(super) async fn reward(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let ((stopped, a_stopped), (go_on, told)) = (signal(), signal());
    let (of_a, paid) = (Arc::clone(stage), event.clone());
    let a = pause::start(move |thread| {
        let mut a = thread.run(Worker::join(&of_a, Lane::A))?;
        thread.run(a.take())?;
        thread.run(a.look(&paid))?;
        stops(&of_a, Lane::A);
        give(stopped);
        thread.stop_until(told);
        wakes(&of_a, Lane::A);
        thread.run(a.pay(&paid, Answer::Comes))?;
        thread.run(async {
            a.give_back().await;
            Ok(())
        })
    });
    wait_for(a_stopped).await;
    b_takes_over(stage, &event).await?;
    give(go_on);
    a.await??;
    effects_in(&stage.books, &[event]).await
}

/// S14
pub(super) async fn payment(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    stage.books.announce(&[]).await?;
    let ((stopped, a_stopped), (go_on, told)) = (signal(), signal());
    let of_a = Arc::clone(stage);
    let a = pause::start(move |thread| {
        let mut a = thread.run(Worker::join(&of_a, Lane::A))?;
        thread.run(a.take())?;
        thread.run(a.look_order())?;
        stops(&of_a, Lane::A);
        give(stopped);
        thread.stop_until(told);
        wakes(&of_a, Lane::A);
        thread.run(a.charge())?;
        thread.run(async {
            a.give_back().await;
            Ok(())
        })
    });
    wait_for(a_stopped).await;
    let mut b = Worker::join(stage, Lane::B).await?;
    b.take().await?;
    if b.look_order().await? == 0 {
        b.charge().await?;
    }
    b.give_back().await;
    give(go_on);
    a.await??;
    let charges = stage.outside.effects().iter().map(|_| 1).sum::<u64>();
    Ok(Counts::of_effects(1, charges.min(1), charges))
}
