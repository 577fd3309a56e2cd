//! The queue of a season's rewards. It delivers at least once: now and then, twice.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reward_ledger::RewardEventId;

use crate::Failure;
use crate::job::Job;

/// Players of the season: fewer than messages, so that workers meet at their leases.
const PLAYERS: u32 = 6;
/// Every so many messages, one is delivered twice.
const TWICE_EVERY: u32 = 3;

/// Messages that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Queue(Mutex<VecDeque<Job>>);

impl Queue {
    /// A message for each of `jobs` rewards, and some of them once more.
    pub(crate) fn of_season(jobs: u32) -> Result<Self, Failure> {
        let mut messages = VecDeque::new();
        for number in 1..=jobs {
            let player = i64::from(number % PLAYERS + 1);
            let event =
                RewardEventId::builder("season-2026-week-34", player, format!("quest-{number}")).build()?;
            let job = Job {
                message: format!("message-{number}"),
                player,
                event,
                gold: 100 + i64::from(number % 5) * 50,
            };
            if number % TWICE_EVERY == 0 {
                messages.push_back(job.clone());
            }
            messages.push_back(job);
        }
        Ok(Self(Mutex::new(messages)))
    }

    /// The next message; `None` once all are taken.
    pub(crate) fn take(&self) -> Option<Job> {
        self.messages().pop_front()
    }

    /// Puts a message back that could not be finished: it is delivered again.
    pub(crate) fn give_back(&self, job: Job) {
        self.messages().push_back(job);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages().is_empty()
    }

    fn messages(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
