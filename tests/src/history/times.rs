//! The rules about time alone: a lease is over soon after its end, and nobody is told more time than there is.
//!
//! They need to know when the cluster was disturbed, which a history does not tell. Each attempt is looked at twice, when
//! it is sent and when it is answered, in the order of the history's clock, and then never again: a run may feed them
//! while it goes on.

use super::certain::Certain;
use super::check::{Rule, Violation, Violations};
use super::ends::{AttemptId, Ends, Outage, Promise};
use super::record::{Micros, Op, Outcome, Record};

/// A thousandth of a second, to which all times are told.
const GRAIN: Micros = 1_000;

/// K4 and K9 over a history that is told event by event.
#[derive(Debug)]
pub struct Times {
    ends: Ends,
    certain: Certain,
    violations: Violations,
    judged: Judged,
}

/// How many answers a rule could be held against: one that was held against none says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Judged {
    /// Refusals and reads that came after a lease should have been over, or before.
    pub ends: u64,
    /// Answers, and words of a client, that told a time.
    pub told: u64,
}

impl Times {
    /// For a run with these outages, of a store that makes this promise.
    #[must_use]
    pub fn new(outages: Vec<Outage>, promise: Promise) -> Self {
        Self {
            ends: Ends::new(outages, promise),
            certain: Certain::default(),
            violations: Violations::default(),
            judged: Judged::default(),
        }
    }

    /// An attempt was sent, at `record.call`. Of the rest only what was asked for is looked at.
    pub fn called(&mut self, attempt: AttemptId, record: &Record) {
        self.ends.called(attempt, record);
        self.certain.called(attempt, record);
    }

    /// An attempt was answered, at `record.returned`. One without an answer is never told.
    pub fn answered(&mut self, attempt: AttemptId, record: &Record) {
        let Some(at) = record.returned else {
            return;
        };
        // What it says is held against what was known before it.
        self.honest(record);
        self.ends.answered(attempt, record, at);
        self.certain.answered(attempt, record);
        self.late(record);
    }

    /// What was found, and how many answers were judged.
    #[must_use]
    pub fn finish(self) -> (Vec<Violation>, Judged) {
        (self.violations.found, self.judged)
    }

    /// K4, of a refusal or of a read that shows a holder.
    fn late(&mut self, record: &Record) {
        let due = match (record.op, record.outcome, record.token) {
            (Op::Acquire, Outcome::Fail, Some(token)) | (Op::Read, Outcome::Ok, Some(token)) => {
                self.ends.gone_by(&record.resource, token)
            }
            (Op::Acquire, Outcome::Fail, None) => self.ends.free_by(&record.resource),
            _ => return,
        };
        let Some(due) = due else {
            return;
        };
        self.judged.ends += 1;
        if record.call > due {
            let holder = record.token.map_or_else(
                || "somebody".to_owned(),
                |token| format!("the holder of token {token}"),
            );
            let seen = format!(
                "{holder} must be gone by {due}, and has the lease for {:?} at {}",
                record.op, record.call
            );
            self.violations
                .add(Rule::BoundedLateExpiry, &record.resource, seen);
        }
    }

    /// K9: of a client that says how long it still holds, by what it was told; of anybody else who is told a time, by
    /// the last moment to which the lease can last.
    fn honest(&mut self, record: &Record) {
        let (Outcome::Ok, Some(token), Some(ttl_ms)) = (record.outcome, record.token, record.ttl_ms) else {
            return;
        };
        let told = record.call.saturating_add(ttl_ms.saturating_mul(1_000));
        let most = match record.op {
            Op::Hold if ttl_ms == 0 => return,
            Op::Hold => Some(self.certain.until(&record.resource, token)),
            // A retry is told what is left of the first grant.
            Op::Read | Op::Acquire => self
                .ends
                .lasts_until(&record.resource, token, record.call)
                .map(|end| end.saturating_add(GRAIN)),
            Op::Renew | Op::Release | Op::Force => return,
        };
        let Some(most) = most else {
            return;
        };
        self.judged.told += 1;
        if told > most {
            let seen = format!(
                "token {token} stands until {most} at the most, and {:?} at {} was told {ttl_ms} ms",
                record.op, record.call
            );
            self.violations.add(Rule::HonestTime, &record.resource, seen);
        }
    }
}

/// In the order of one moment: what was answered then was known to whoever asked then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Answered,
    Called,
    AnsweredAtOnce,
}

/// Holds a whole history against both rules.
#[must_use]
pub fn check_times(records: &[Record], outages: &[Outage], promise: Promise) -> (Vec<Violation>, Judged) {
    let mut events = Vec::new();
    for (attempt, record) in records.iter().enumerate() {
        events.push((record.call, Event::Called, attempt));
        if let Some(returned) = record.returned {
            let event = match returned == record.call {
                true => Event::AnsweredAtOnce,
                false => Event::Answered,
            };
            events.push((returned, event, attempt));
        }
    }
    events.sort_unstable();
    let mut times = Times::new(outages.to_vec(), promise);
    for (_, event, attempt) in events {
        match (event, records.get(attempt)) {
            (Event::Called, Some(record)) => times.called(attempt, record),
            (Event::Answered | Event::AnsweredAtOnce, Some(record)) => times.answered(attempt, record),
            (_, None) => {}
        }
    }
    times.finish()
}
