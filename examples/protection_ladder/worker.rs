//! A worker: takes the lock, looks, pays, gives the lock back, and has it all noted.

use std::sync::Arc;
use std::time::Duration;

use lease_core::Fence;
use reward_ledger::RewardEventId;

use crate::Failure;
use crate::books::{Books, GOLD, ORDER, Pay, Start, Told};
use crate::counts::Counts;
use crate::lock::{Held, LockService};
use crate::outside::Heard;
use crate::rung::Rung;
use crate::stage::Stage;
use crate::timeline::{Lane, Verdict, What};

/// Calls of the outside before a worker gives up.
const OUTSIDE_TRIES_MAX: u32 = 5;

/// Whether a write's answer reaches its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Comes,
    IsLost,
}

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker {
    stage: Arc<Stage>,
    lane: Lane,
    service: LockService,
    pub(crate) held: Option<Held>,
}

impl Worker {
    /// One that reaches the lock service as `lane` does; it lives on the runtime that this runs on.
    pub(crate) async fn join(stage: &Arc<Stage>, lane: Lane) -> Result<Self, Failure> {
        Ok(Self {
            stage: Arc::clone(stage),
            lane,
            service: stage.lock_service(lane).await?,
            held: None,
        })
    }

    /// Waits for the lock.
    pub(crate) async fn take(&mut self) -> Result<(), Failure> {
        self.take_for(self.stage.ttl()).await
    }

    /// As [`Worker::take`], for another time than the rung's.
    pub(crate) async fn take_for(&mut self, ttl: Duration) -> Result<(), Failure> {
        let held = self.service.take(ttl, self.stage.times.ask_every()).await?;
        self.granted(held);
        Ok(())
    }

    /// Takes the lock if it is free.
    pub(crate) async fn try_take(&mut self) -> Result<bool, Failure> {
        let held = self.service.try_take(self.stage.ttl()).await?;
        let free = held.is_some();
        match held {
            Some(held) => self.granted(held),
            None => self
                .stage
                .timeline
                .note(self.lane, "asks for the lock: it is held"),
        }
        Ok(free)
    }

    fn granted(&mut self, held: Held) {
        self.stage.timeline.add(self.lane, What::Granted(held.label()));
        self.held = Some(held);
    }

    fn fence(&self) -> Option<Fence> {
        self.held.as_ref().and_then(Held::fence)
    }

    /// Gives the lock back; what the service says to that is noted, and changes nothing.
    pub(crate) async fn give_back(&mut self) {
        if let Some(held) = self.held.take() {
            let answer = match held.give_back().await {
                Ok(answer) => answer,
                Err(error) => error.to_string(),
            };
            self.stage.timeline.add(self.lane, What::Released(answer));
        }
    }

    /// How often a reward was paid so far.
    pub(crate) async fn look(&self, event: &RewardEventId) -> Result<u64, Failure> {
        let paid = self.stage.books.look(event).await?;
        let text = format!("looks: {} paid {paid} times", short(event));
        self.stage.timeline.note(self.lane, text);
        Ok(paid)
    }

    /// Pays a reward, with the token of the lock.
    pub(crate) async fn pay(&self, event: &RewardEventId, answer: Answer) -> Result<Told, Failure> {
        pay(&self.stage, self.lane, self.fence(), event, answer).await
    }

    /// Looks, and pays where nothing was paid yet.
    pub(crate) async fn look_and_pay(&self, event: &RewardEventId) -> Result<Option<Told>, Failure> {
        if self.look(event).await? > 0 {
            return Ok(None);
        }
        Ok(Some(self.pay(event, Answer::Comes).await?))
    }

    /// Payment attempts of the order that are active.
    pub(crate) async fn look_order(&self) -> Result<u64, Failure> {
        let active = self.stage.books.look_order().await?;
        let text = format!("looks: {active} active attempts of the order");
        self.stage.timeline.note(self.lane, text);
        Ok(active)
    }

    /// Starts a payment attempt and, if it may, has the gateway charge the card.
    pub(crate) async fn charge(&self) -> Result<(), Failure> {
        let attempt = format!("attempt-{}", self.lane.name().to_lowercase());
        let start = Start {
            attempt: attempt.clone(),
            fence: self.fence(),
        };
        let told = self.stage.books.start(&start).await?;
        let (verdict, answer) = self.stage.verdict_of(&told, ORDER);
        self.stage.timeline.add(
            self.lane,
            What::Wrote {
                to: Lane::Books,
                what: "starts a payment attempt".to_owned(),
                answer,
                verdict,
            },
        );
        if let Told::Done(_) = told {
            self.call_outside("has the card charged", &attempt).await?;
        }
        Ok(())
    }

    /// Calls the outside until it answers. Below rung 10 each call is a request of its own; from there on, `key` names the
    /// work, whoever asks for it and how often.
    pub(crate) async fn call_outside(&self, what: &str, key: &str) -> Result<(), Failure> {
        for number in 1..=OUTSIDE_TRIES_MAX {
            let shown = if self.stage.rung < Rung::Outbox {
                format!("request-{number}-of-worker-{}", self.lane.name().to_lowercase())
            } else {
                key.to_owned()
            };
            let before = self.stage.outside.effects().len();
            let heard = self.stage.outside.ask(&shown).await?;
            let (verdict, answer) = match heard {
                Heard::Nothing => (Verdict::AnswerLost, "no answer"),
                Heard::Done if before == self.stage.outside.effects().len() => {
                    (Verdict::Replayed, "done before")
                }
                Heard::Done if before > 0 => (Verdict::Again, "done, once more"),
                Heard::Done => (Verdict::Done, "done"),
            };
            self.stage.timeline.add(
                self.lane,
                What::Wrote {
                    to: Lane::Outside,
                    what: what.to_owned(),
                    answer: answer.to_owned(),
                    verdict,
                },
            );
            if heard == Heard::Done {
                return Ok(());
            }
        }
        Err("the outside never answered".into())
    }
}

/// Pays a reward with a token, under a lock or past it.
pub(crate) async fn pay(
    stage: &Stage,
    lane: Lane,
    fence: Option<Fence>,
    event: &RewardEventId,
    answer: Answer,
) -> Result<Told, Failure> {
    let what = match &fence {
        Some(fence) => format!("pays {GOLD} for {} with token {}", short(event), fence.token),
        None => format!("pays {GOLD} for {}", short(event)),
    };
    let pay = Pay {
        event: event.clone(),
        message: format!("message of {event}"),
        fence,
    };
    let told = stage.books.pay(&pay).await?;
    let (mut verdict, mut text) = stage.verdict_of(&told, event.as_str());
    if answer == Answer::IsLost {
        (verdict, text) = (
            Verdict::AnswerLost,
            "committed, and the answer is lost".to_owned(),
        );
    }
    stage.timeline.add(
        lane,
        What::Wrote {
            to: Lane::Books,
            what,
            answer: text,
            verdict,
        },
    );
    Ok(told)
}

impl Stage {
    /// How a write on `subject` came out, as the drawing shows it.
    fn verdict_of(&self, told: &Told, subject: &str) -> (Verdict, String) {
        match told {
            Told::Done(text) if self.was_done(subject) => (Verdict::Again, format!("{text}, once more")),
            Told::Done(text) => (Verdict::Done, text.clone()),
            Told::Shown(text) => (Verdict::Replayed, format!("{text}, the first one")),
            Told::Refused(text) => (Verdict::Refused, text.clone()),
            Told::Taken(text) => (Verdict::Nothing, text.clone()),
        }
    }
}

/// The last part of an event's id.
fn short(event: &RewardEventId) -> &str {
    let id = event.as_str();
    id.rsplit(':').next().unwrap_or(id)
}

impl Told {
    /// Whether the writer can answer whoever asked it.
    pub(crate) const fn can_be_answered(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Shown(_))
    }
}

/// Rewards that are due, against what the books say.
pub(crate) async fn effects_in(books: &Books, due: &[RewardEventId]) -> Result<Counts, Failure> {
    let mut present = 0;
    for event in due {
        present += books.look(event).await?.min(1);
    }
    let due = due.iter().map(|_| 1).sum();
    Ok(Counts::of_effects(due, present, books.payments().await?))
}
