//! What nodes forwarded under numbers, so that a command whose answer was lost can be sent again and is applied once.
//!
//! Each node has one session, that of its latest life. It remembers the answers from the number on that the node has not
//! done with; a number below is a late copy, and refused. So nothing has to be remembered for long: this memory may drop
//! its lowest numbers at any time, and whoever asks for one of those again is told that nothing is known of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outcome::{Effect, Outcome, Refusal};
use super::{Command, LeaseKey, LeaseMachine, Once, ReleaseCause};
use crate::limits::{FORWARDED_ANSWERS_MAX, FORWARDED_BYTES_MAX, FORWARDED_MEMORY_MS};
use crate::types::{FenceToken, OwnerId, Timestamp};

/// All sessions. A view shares them; the first change after it copies one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions(BTreeMap<u64, Arc<Session>>);

/// What one life of one node forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    incarnation: u64,
    /// Numbers below are done with, or forgotten.
    settled_below: u64,
    answers: BTreeMap<u64, Answer>,
    /// Bytes of the values, names and words in the answers.
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    outcome: Outcome,
    at: Timestamp,
}

/// What is known of a number.
enum Known {
    Nothing,
    Answered(Outcome),
    Refused(Refusal),
}

impl LeaseMachine {
    /// Applies a numbered command once: a copy of it gets the first answer.
    pub(super) fn apply_once(
        &mut self,
        once: &Once,
        command: &Command,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        if let Err(refusal) = self.check_life(once.node, once.incarnation) {
            return Outcome::Refused(refusal);
        }
        match self.sessions.recall(once) {
            Known::Answered(outcome) => outcome,
            Known::Refused(refusal) => Outcome::Refused(refusal),
            Known::Nothing => {
                let outcome = self.apply_one(command, effects);
                self.sessions.note(once, outcome.clone(), self.now);
                outcome
            }
        }
    }

    /// Nobody waits for the answer of this number any more: what it was granted is released, and it is not applied if it
    /// comes yet.
    pub(super) fn withdraw(&mut self, once: &Once, key: &LeaseKey, effects: &mut Vec<Effect>) -> Outcome {
        let granted = match self.sessions.recall(once) {
            Known::Answered(outcome) => granted_token(&outcome),
            Known::Nothing => None,
            Known::Refused(_) => return Outcome::NotFound,
        };
        self.sessions
            .note(once, Outcome::Refused(Refusal::NotRemembered), self.now);
        match granted {
            Some(token) => self.release(key, token, ReleaseCause::Orphaned, effects),
            None => Outcome::NotFound,
        }
    }
}

impl Sessions {
    fn recall(&mut self, once: &Once) -> Known {
        let session = self
            .0
            .entry(once.node)
            .or_insert_with(|| Arc::new(Session::new(once)));
        if once.incarnation < session.incarnation {
            let known = session.incarnation;
            return Known::Refused(Refusal::StaleIncarnation { known });
        }
        if once.incarnation > session.incarnation {
            *session = Arc::new(Session::new(once));
        }
        if once.number < session.settled_below {
            return Known::Refused(Refusal::NotRemembered);
        }
        session
            .answers
            .get(&once.number)
            .map_or(Known::Nothing, |answer| Known::Answered(answer.outcome.clone()))
    }

    /// Notes the answer of a number that was just recalled.
    fn note(&mut self, once: &Once, outcome: Outcome, at: Timestamp) {
        if let Some(session) = self.0.get_mut(&once.node) {
            let session = Arc::make_mut(session);
            session.forget_below(once.settled_below.min(once.number));
            session.insert(once.number, Answer { outcome, at });
        }
    }

    /// Forgets at most `most` answers that are older than they need be.
    pub(super) fn prune(&mut self, now: Timestamp, most: usize) {
        let mut left = most;
        for session in self.0.values_mut() {
            while left > 0
                && let Some((number, answer)) = session.answers.first_key_value()
                && answer.at.after_millis(FORWARDED_MEMORY_MS) <= now
            {
                let above = number.saturating_add(1);
                Arc::make_mut(session).forget_below(above);
                left = left.saturating_sub(1);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Session)> {
        self.0.iter().map(|(node, session)| (*node, &**session))
    }

    /// Puts back what a snapshot held.
    pub(super) fn restore(&mut self, node: u64, session: Session) {
        self.0.insert(node, Arc::new(session));
    }
}

impl Session {
    const fn new(once: &Once) -> Self {
        Self {
            incarnation: once.incarnation,
            settled_below: once.settled_below,
            answers: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn insert(&mut self, number: u64, answer: Answer) {
        self.bytes = self.bytes.saturating_add(payload_bytes(&answer.outcome));
        if let Some(before) = self.answers.insert(number, answer) {
            self.bytes = self.bytes.saturating_sub(payload_bytes(&before.outcome));
        }
        while (self.answers.len() > FORWARDED_ANSWERS_MAX || self.bytes > FORWARDED_BYTES_MAX)
            && let Some((lowest, _)) = self.answers.first_key_value()
        {
            self.forget_below(lowest.saturating_add(1));
        }
    }

    fn forget_below(&mut self, number: u64) {
        self.settled_below = self.settled_below.max(number);
        while let Some(entry) = self.answers.first_entry()
            && *entry.key() < self.settled_below
        {
            let answer = entry.remove();
            self.bytes = self.bytes.saturating_sub(payload_bytes(&answer.outcome));
        }
    }

    /// Whether its counts are those of what it holds.
    pub(super) fn is_sound(&self) -> bool {
        let bytes = self.answers.values().map(|answer| payload_bytes(&answer.outcome));
        let lowest = self.answers.first_key_value().map(|(number, _)| *number);
        self.bytes == bytes.fold(0, usize::saturating_add)
            && lowest.is_none_or(|number| number >= self.settled_below)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only these two carry a new token")]
const fn granted_token(outcome: &Outcome) -> Option<FenceToken> {
    match outcome {
        Outcome::Granted { token, .. } | Outcome::Stored { token, .. } => Some(*token),
        _ => None,
    }
}

/// Bytes that an outcome holds beside itself, as they are counted against the bound.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these carry bytes of callers")]
fn payload_bytes(outcome: &Outcome) -> usize {
    let of = |value: &OwnerId| value.as_bytes().len();
    match outcome {
        Outcome::Held(holder) => of(&holder.owner),
        Outcome::Stored { previous, .. } => previous.as_ref().map_or(0, of),
        Outcome::NotStored { current } => current.as_ref().map_or(0, of),
        Outcome::Looked(holders) => {
            let each = holders.iter().map(|holder| {
                let value = holder.as_ref().map_or(0, |holder| of(&holder.owner));
                value.saturating_add(size_of::<Outcome>())
            });
            each.fold(0, usize::saturating_add)
        }
        // A transaction holds none, so this goes one deep.
        Outcome::Transaction(outcomes) => {
            let each = outcomes
                .iter()
                .map(|outcome| payload_bytes(outcome).saturating_add(size_of::<Outcome>()));
            each.fold(0, usize::saturating_add)
        }
        Outcome::Replied(reply) => reply.bytes(),
        _ => 0,
    }
}
