//! S10: a release that comes after somebody else was granted the lock.

use std::sync::Arc;

use super::{give, signal, stops, wait_for, wakes};
use crate::Failure;
use crate::counts::Counts;
use crate::pause;
use crate::stage::{Stage, rank_3};
use crate::timeline::Lane;
use crate::worker::{Answer, Worker, effects_in};

/// S10
pub(super) async fn play(stage: &Arc<Stage>) -> Result<Counts, Failure> {
    let event = rank_3()?;
    stage.books.announce(std::slice::from_ref(&event)).await?;
    let ((stopped, a_stopped), (go_on, told)) = (signal(), signal());
    let of_a = Arc::clone(stage);
    let a = pause::start(move |thread| {
        let mut a = thread.run(Worker::join(&of_a, Lane::A))?;
        thread.run(a.take())?;
        stops(&of_a, Lane::A);
        give(stopped);
        thread.stop_until(told);
        wakes(&of_a, Lane::A);
        thread.run(async {
            a.give_back().await;
            Ok(())
        })
    });
    wait_for(a_stopped).await;
    let mut b = Worker::join(stage, Lane::B).await?;
    // Long enough that what happens next is not the end of its time.
    b.take_for(stage.times.long_ttl()).await?;
    b.look(&event).await?;
    give(go_on);
    a.await??;

    let mut c = Worker::join(stage, Lane::C).await?;
    let free = c.try_take().await?;
    if free {
        c.look_and_pay(&event).await?;
    }
    b.pay(&event, Answer::Comes).await?;
    b.give_back().await;
    if !free {
        c.take().await?;
        c.look_and_pay(&event).await?;
    }
    c.give_back().await;
    effects_in(&stage.books, &[event]).await
}
