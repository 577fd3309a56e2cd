//! Sends requests until they are answered: retries within a time, and keeps account of what may have been applied.

use std::sync::Arc;
use std::time::Duration;

use lease_core::wire::{AnswerError, LeaseCommand, Reply};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::call_error::CallError;
use crate::clock::{Moment, timer_now};
use crate::random::jitter;
use crate::transport::{Lane, Request, Transport};

/// What came of several attempts: the last failure, and whether any of them may have been applied.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: CallError,
    pub(crate) may_have_applied: bool,
}

/// An answer that was understood.
#[derive(Debug)]
pub(crate) struct Understood<R> {
    pub(crate) answer: R,
    /// Whether an earlier attempt may have been applied.
    pub(crate) earlier: Earlier,
}

/// What is known of the attempts before the answered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// There were none, or none was applied.
    NotApplied,
    /// One of them may have been applied.
    MayHaveApplied,
}

/// Which failures another attempt may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// All that may pass: doing it twice is doing it once.
    Safely,
    /// Only those after which nothing was applied.
    IfNotApplied,
}

/// Reads the answer to one verb.
pub(crate) type Read<R> = fn(Reply) -> Result<R, AnswerError>;

/// Sends requests and repeats them.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) transport: Arc<dyn Transport>,
    /// How long one attempt waits for its answer.
    pub(crate) request_timeout: Duration,
    /// How long an operation with all its attempts takes at the most, waiting for a lease aside.
    pub(crate) operation_timeout: Duration,
    pub(crate) backoff: Backoff,
}

impl Caller {
    /// Sends `command` once and reads its answer.
    pub(crate) async fn once<R>(
        &self,
        lane: Lane,
        request: Request,
        read: Read<R>,
    ) -> Result<(R, Moment), CallError> {
        let answered = self.transport.call(lane, request).await?;
        Ok((read(answered.reply)?, answered.sent))
    }

    /// Sends `command` until it is answered, within the time of one operation.
    pub(crate) async fn ask<R>(
        &self,
        command: &LeaseCommand,
        repeat: Repeat,
        read: Read<R>,
    ) -> Result<Understood<R>, Failure> {
        self.ask_within(command, repeat, read, self.operation_timeout)
            .await
    }

    /// Sends `command` until it is answered, within `budget`.
    pub(crate) async fn ask_within<R>(
        &self,
        command: &LeaseCommand,
        repeat: Repeat,
        read: Read<R>,
        budget: Duration,
    ) -> Result<Understood<R>, Failure> {
        let mut attempts = Attempts::new(budget, self.backoff);
        loop {
            let patience = attempts.left().min(self.request_timeout);
            let request = Request::new(command.clone(), patience);
            let error = match self.once(Lane::Control, request, read).await {
                Ok((answer, _)) => {
                    let earlier = attempts.earlier;
                    return Ok(Understood { answer, earlier });
                }
                Err(error) => error,
            };
            attempts.failed(error, repeat).await?;
        }
    }
}

/// The attempts of one operation so far.
#[derive(Debug)]
pub(crate) struct Attempts {
    budget: Duration,
    until: Instant,
    backoff: Backoff,
    failures: u32,
    pub(crate) earlier: Earlier,
}

impl Attempts {
    /// No attempt yet. The budget is bounded by the configuration.
    pub(crate) fn new(budget: Duration, backoff: Backoff) -> Self {
        let earlier = Earlier::NotApplied;
        Self {
            budget,
            until: timer_now() + budget,
            backoff,
            failures: 0,
            earlier,
        }
    }

    /// The store was there until now: the time for what follows begins anew.
    pub(crate) fn restart(&mut self) {
        self.until = timer_now() + self.budget;
        self.failures = 0;
    }

    /// How long the operation may still take.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(timer_now())
    }

    /// Takes note of a failed attempt and pauses before the next one, or gives the operation up.
    pub(crate) async fn failed(&mut self, error: CallError, repeat: Repeat) -> Result<(), Failure> {
        let again = error.is_retryable()
            && match repeat {
                Repeat::Safely => true,
                Repeat::IfNotApplied => !error.may_have_applied(),
            };
        if error.may_have_applied() {
            self.earlier = Earlier::MayHaveApplied;
        }
        self.failures = self.failures.saturating_add(1);
        let pause = self.backoff.delay(self.failures, jitter());
        if !again || pause >= self.left() {
            let may_have_applied = self.earlier == Earlier::MayHaveApplied;
            return Err(Failure {
                error,
                may_have_applied,
            });
        }
        tracing::debug!(%error, failures = self.failures, "trying again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
