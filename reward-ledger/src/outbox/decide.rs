//! What a publisher does with a row, and what an answer means for it. Pure: time and chance are arguments.
//!
//! A row that may have been done is asked about before it is sent again, and past the horizon it is only asked about: by
//! then the outside may have forgotten the key, and the same request would do the work twice.

use std::time::Duration;

use super::policy::PublishPolicy;
use crate::types::{DeliveryProgress, Doubt, Note, UnixMillis, Verdict};

/// Doublings past this change nothing: any cap is reached long before.
const DOUBLINGS_MAX: u32 = 30;

/// What is to be done with a leased row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// Send it: nothing of it was done.
    Send,
    /// Ask whether it was done; if it was not, or that cannot be told, send it under the same key.
    AskThenSend,
    /// Ask whether it was done, and send nothing.
    AskOnly,
    /// Give it up.
    GiveUp(Note),
}

/// What the outside said to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done, now or before.
    Done,
    /// Nothing was done, and a later try may succeed.
    Busy(Note),
    /// Nothing was done, and no try will ever succeed.
    Refused(Note),
    /// Whether it was done is not known: no answer, or one that does not say.
    Unknown(Note),
}

/// What the outside said to a question for the status of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It was done.
    Done,
    /// It was not done.
    NotDone,
    /// The outside cannot tell, or did not answer.
    Unknown(Note),
}

/// When an answer came, and the chance of the next wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: UnixMillis,
    pub(super) random: u64,
}

/// What to do with a row that is leased at `at`.
pub(super) fn plan(row: &DeliveryProgress, at: UnixMillis, policy: &PublishPolicy) -> Plan {
    let horizon = row.first_sent().map(|first| first.after(policy.give_up_after));
    let in_time = horizon.is_none_or(|horizon| at < horizon);
    match row.doubt() {
        Doubt::NotDone if row.tries() >= policy.tries_max => {
            Plan::GiveUp(note_of(row, &format!("given up after {} tries", row.tries())))
        }
        Doubt::NotDone if !in_time => Plan::GiveUp(note_of(row, "given up: its key may be forgotten by now")),
        Doubt::NotDone => Plan::Send,
        Doubt::Unknown if in_time && row.tries() < policy.tries_max => Plan::AskThenSend,
        // As many questions as tries.
        Doubt::Unknown if row.tries() < policy.tries_max.saturating_mul(2) => Plan::AskOnly,
        Doubt::Unknown => Plan::GiveUp(note_of(
            row,
            "its outcome is unknown, and the outside does not tell",
        )),
    }
}

fn note_of(row: &DeliveryProgress, why: &str) -> Note {
    match row.note().as_str() {
        "" => Note::new(why),
        last => Note::new(format!("{why}; last: {last}")),
    }
}

/// The verdict on a row that was sent. A try that surely did nothing says nothing of an earlier one whose outcome is
/// unknown; only a status does, and `doubt` is what it left.
pub(super) fn judge_answer(
    row: &DeliveryProgress,
    doubt: Doubt,
    answer: Answer,
    moment: Moment,
    policy: &PublishPolicy,
) -> Verdict {
    match answer {
        Answer::Done => Verdict::Delivered,
        Answer::Refused(note) => Verdict::Dead { doubt, note },
        Answer::Busy(note) => again(row, doubt, note, moment, policy),
        Answer::Unknown(note) => again(row, Doubt::Unknown, note, moment, policy),
    }
}

/// The verdict on a row that was only asked about.
pub(super) fn judge_status(
    row: &DeliveryProgress,
    status: Status,
    moment: Moment,
    policy: &PublishPolicy,
) -> Verdict {
    match status {
        Status::Done => Verdict::Delivered,
        Status::NotDone => Verdict::Dead {
            doubt: Doubt::NotDone,
            note: note_of(row, "it was not done, and is too late to be sent again"),
        },
        Status::Unknown(note) => again(row, Doubt::Unknown, note, moment, policy),
    }
}

/// Once more, unless there would be nothing left to do then.
fn again(
    row: &DeliveryProgress,
    doubt: Doubt,
    note: Note,
    moment: Moment,
    policy: &PublishPolicy,
) -> Verdict {
    let tries = row.tries().saturating_add(1);
    let due = moment.now.after(delay(tries, moment.random, policy));
    let next = DeliveryProgress {
        tries,
        doubt,
        first_sent: row.first_sent().or(Some(moment.now)),
        note: note.clone(),
        ..row.clone()
    };
    match plan(&next, due, policy) {
        Plan::GiveUp(note) => Verdict::Dead { doubt, note },
        Plan::Send | Plan::AskThenSend | Plan::AskOnly => Verdict::Again { due, doubt, note },
    }
}

/// The wait after `failures` failures: anywhere between zero and its longest, as `random` has it.
///
/// Source: M. Brooker, "Exponential Backoff And Jitter" (2015), full jitter.
pub(super) fn delay(failures: u32, random: u64, policy: &PublishPolicy) -> Duration {
    let doublings = failures.saturating_sub(1).min(DOUBLINGS_MAX);
    let longest = policy
        .backoff_base
        .saturating_mul(1 << doublings)
        .min(policy.backoff_cap)
        .as_nanos();
    let nanos = u128::from(random)
        .checked_rem(longest.saturating_add(1))
        .unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
