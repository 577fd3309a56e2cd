//! Takes one message after another, until there are none or it is told to stop.

use std::fmt;
use std::sync::Arc;

use fence_client::FenceClient;
use reward_ledger::{ClaimOutcome, Ledger};
use tokio::sync::watch;

use crate::chain;
use crate::job::{Job, JobError};
use crate::queue::Queue;

/// How many messages may fail in a row before a worker gives up: then the trouble is not the message's.
const FAILURES_MAX: u32 = 5;

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) client: FenceClient,
    pub(crate) ledger: Ledger,
    pub(crate) queue: Arc<Queue>,
}

/// What became of the messages.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    granted: u32,
    replayed: u32,
    refused: u32,
    delivered_again: u32,
    pub(crate) failed: u32,
}

impl Worker {
    pub(crate) async fn run(self, stopping: watch::Receiver<bool>) -> Tally {
        let (mut tally, mut in_a_row) = (Tally::default(), 0);
        // A message in hand is finished: to stop between lease and claim would only make others wait.
        while !*stopping.borrow()
            && in_a_row < FAILURES_MAX
            && let Some(job) = self.queue.take()
        {
            match job.run(&self.client, &self.ledger).await {
                Ok(outcome) => {
                    in_a_row = 0;
                    self.on_answer(job, &outcome, &mut tally);
                }
                Err(error) => {
                    in_a_row += 1;
                    self.on_error(job, &error, &mut tally);
                }
            }
        }
        tally
    }

    fn on_answer(&self, job: Job, outcome: &ClaimOutcome, tally: &mut Tally) {
        let (name, message) = (&self.name, job.message.clone());
        if let Some(receipt) = outcome.receipt() {
            if matches!(outcome, ClaimOutcome::Applied(_)) {
                tally.granted += 1;
                println!("{name}  {message:<12} granted   {receipt}");
            } else {
                tally.replayed += 1;
                println!("{name}  {message:<12} repeated  {receipt}");
            }
            return;
        }
        tally.refused += 1;
        let ClaimOutcome::Stale {
            presented,
            seen,
            applied,
        } = outcome
        else {
            // Player and event are taken by another amount, or the message's id by another message: a person must look.
            println!("{name}  {message:<12} refused   {outcome:?}");
            return;
        };
        let why = format!("token {presented} is stale, {seen} was seen");
        if let Some(receipt) = applied {
            println!("{name}  {message:<12} refused   {why}; shown: {receipt}");
        } else {
            // Another worker holds this player's lease by now, for another message. This one is still to be done.
            println!("{name}  {message:<12} put back  {why}");
            self.queue.give_back(job);
        }
    }

    fn on_error(&self, job: Job, error: &JobError, tally: &mut Tally) {
        let (name, message, error_text) = (&self.name, &job.message, chain(error));
        if error.is_retryable() {
            tally.delivered_again += 1;
            println!("{name}  {message:<12} put back  {error_text}");
            self.queue.give_back(job);
        } else {
            tally.failed += 1;
            println!("{name}  {message:<12} failed    {error_text}");
        }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.granted += other.granted;
        self.replayed += other.replayed;
        self.refused += other.refused;
        self.delivered_again += other.delivered_again;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            granted,
            replayed,
            refused,
            delivered_again,
            failed,
        } = self;
        write!(
            f,
            "messages: {granted} granted, {replayed} repeated, {refused} refused, {delivered_again} put back, {failed} failed"
        )
    }
}
