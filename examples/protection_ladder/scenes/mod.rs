//! The courses of events. Each is steered by conditions: who may go on waits until something was seen to have happened,
//! and a time to live is over when the lock service grants the lock to somebody else.

mod deaths;
mod late_release;
mod lost_answers;
mod messages;
mod networks;
mod pauses;

use std::sync::Arc;

use reward_ledger::RewardEventId;
use tokio::sync::oneshot;

use crate::Failure;
use crate::counts::Counts;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::timeline::{Lane, What};
use crate::worker::Worker;

/// Plays a course of events and counts.
pub(crate) async fn play(scenario: Scenario, stage: &Arc<Stage>) -> Result<Counts, Failure> {
    match scenario {
        Scenario::S1 => pauses::reward(stage).await,
        Scenario::S2 => networks::renewals_fail(stage).await,
        Scenario::S3 => networks::renewal_is_late(stage).await,
        Scenario::S4 => networks::cut_and_back(stage).await,
        Scenario::S5 => deaths::before_the_payment(stage).await,
        Scenario::S6 => messages::at_once(stage).await,
        Scenario::S7 => lost_answers::of_the_commit(stage).await,
        Scenario::S8 => lost_answers::of_the_outside(stage).await,
        Scenario::S9 => deaths::before_the_outside_call(stage).await,
        Scenario::S10 => late_release::play(stage).await,
        Scenario::S11 => messages::past_the_lock(stage).await,
        Scenario::S14 => pauses::payment(stage).await,
    }
}

/// Something that one worker waits for and another brings about.
fn signal() -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
    oneshot::channel()
}

/// Brings it about. Whoever does not wait any more has failed, and says so itself.
fn give(signal: oneshot::Sender<()>) {
    let _ = signal.send(());
}

/// Waits for it. Where it never comes, whoever should have brought it about has failed, and says so itself.
async fn wait_for(signal: oneshot::Receiver<()>) {
    let _ = signal.await;
}

/// B waits for the lock, looks, pays what was not paid, and gives the lock back.
async fn b_takes_over(stage: &Arc<Stage>, event: &RewardEventId) -> Result<(), Failure> {
    let mut b = Worker::join(stage, Lane::B).await?;
    b.take().await?;
    b.look_and_pay(event).await?;
    b.give_back().await;
    Ok(())
}

fn stops(stage: &Stage, lane: Lane) {
    stage.timeline.add(lane, What::Stops);
}

fn wakes(stage: &Stage, lane: Lane) {
    stage.timeline.add(lane, What::Wakes);
}
