//! One log entry being filled, and whom each of its commands is for.

use std::collections::VecDeque;

use lease_core::limits::BATCH_COMMANDS_MAX;
use lease_core::machine::Outcome;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::LEADER_WITHIN;
use super::handle::{ANSWER_WITHIN, Request};
use crate::error::StoreError;
use crate::orphans::{Orphans, Undoing};
use crate::runtime::Instant;

/// Bytes of one entry, unless a single command is larger: keeps the log's cache and a follower's frame small.
const ENTRY_BYTES_TARGET: usize = 1_024 * 1_024;

/// Where an answer goes.
pub(super) type ReplyTo = oneshot::Sender<Result<Outcome, StoreError>>;

/// One command and whom to answer.
#[derive(Debug)]
pub(super) struct Ask<I> {
    pub(super) request: Request,
    pub(super) origin: Origin,
    /// What the machine knows it by, once it was forwarded under a number.
    pub(super) number: Option<u64>,
    pub(super) doubt: Doubt,
    /// Its place among all that was asked here.
    pub(super) sequence: u64,
    pub(super) asked_at: I,
    pub(super) reply: ReplyTo,
    /// Holds the bytes of its command.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

impl<I: Instant> Ask<I> {
    /// How long it waits for a leader.
    pub(super) fn waits_until(&self) -> I {
        self.asked_at
            + match self.doubt {
                Doubt::None => LEADER_WITHIN,
                Doubt::MayBeApplied => ANSWER_WITHIN,
            }
    }
}

/// Whether a command was sent off before, and nobody knows what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    None,
    MayBeApplied,
}

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A caller of this node: it may be forwarded to the leader.
    Here,
    /// Another node that took this one for the leader: it is never forwarded again, or it could go in circles.
    Peer,
}

/// Whom one command of an entry is for.
#[derive(Debug)]
pub(super) enum Whose<I> {
    Caller(Ask<I>),
    Orphans(Undoing),
}

/// One entry being filled.
pub(super) struct Batch<I> {
    pub(super) whose: Vec<Whose<I>>,
    /// Callers that left before their command was sent off, or sent again.
    pub(super) gone: Vec<Ask<I>>,
    bytes: usize,
}

impl<I> Batch<I> {
    /// Fills an entry with what waits now: what must be undone, `first`, what was put aside, and what stands in the
    /// mailbox. It never holds more commands than an entry may: every replica would stop at it, for good.
    pub(super) fn fill(
        orphans: &Orphans,
        first: Option<Ask<I>>,
        waiting: &mut VecDeque<Ask<I>>,
        inbox: &mut mpsc::Receiver<Ask<I>>,
    ) -> Self {
        let mut batch = Self {
            whose: Vec::new(),
            gone: Vec::new(),
            bytes: 0,
        };
        let kept_for_first = usize::from(first.is_some());
        while batch.has_room_beside(kept_for_first)
            && let Some(undoing) = orphans.pop()
        {
            batch.push(undoing.command.body_len(), Whose::Orphans(undoing));
        }
        first.into_iter().for_each(|ask| batch.push_ask(ask));
        while batch.has_room_beside(0)
            && let Some(ask) = waiting.pop_front()
        {
            batch.push_ask(ask);
        }
        while batch.has_room_beside(0)
            && let Ok(ask) = inbox.try_recv()
        {
            batch.push_ask(ask);
        }
        batch
    }

    /// Whether one more command fits, and `kept` after it.
    const fn has_room_beside(&self, kept: usize) -> bool {
        self.whose.len().saturating_add(kept) < BATCH_COMMANDS_MAX && self.bytes < ENTRY_BYTES_TARGET
    }

    /// A caller that is gone before its command is in the log is left out.
    fn push_ask(&mut self, ask: Ask<I>) {
        if ask.reply.is_closed() {
            self.gone.push(ask);
        } else {
            self.push(ask.request.command.body_len(), Whose::Caller(ask));
        }
    }

    fn push(&mut self, bytes: usize, whose: Whose<I>) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.whose.push(whose);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lease_core::machine::Repeat;
    use lease_core::machine::codec::{self, EncodedCommand};
    use lease_core::{Attachment, limits};

    use super::*;
    use crate::orphans::IfUndelivered;
    use crate::runtime::{AsyncRuntime, Rt as _, Tokio};

    type Instant = <Tokio as AsyncRuntime>::Instant;
    type Answers = Vec<oneshot::Receiver<Result<Outcome, StoreError>>>;

    fn asks(count: usize, command: &EncodedCommand) -> (VecDeque<Ask<Instant>>, Answers) {
        let ask = |sequence| {
            let (reply, answer) = oneshot::channel();
            let ask = Ask {
                request: Request {
                    command: command.clone(),
                    repeat: Repeat::Harmless,
                    if_undelivered: IfUndelivered::Keep,
                },
                origin: Origin::Here,
                number: None,
                doubt: Doubt::None,
                sequence,
                asked_at: Tokio::now() + Duration::ZERO,
                reply,
                _room: None,
            };
            (ask, answer)
        };
        (0..count as u64).map(ask).unzip()
    }

    fn orphans(count: u64) -> Orphans {
        let orphans = Orphans::default();
        for number in 1..=count {
            orphans.detach(Attachment {
                node: 1,
                incarnation: 1,
                number,
            });
        }
        orphans
    }

    /// Fills until nothing waits; answers with the commands of each entry.
    fn fill_all(
        orphans: &Orphans,
        mut first: Option<Ask<Instant>>,
        mut waiting: VecDeque<Ask<Instant>>,
    ) -> Vec<usize> {
        let (_mailbox, mut inbox) = mpsc::channel(1);
        let mut entries = Vec::new();
        loop {
            let batch = Batch::fill(orphans, first.take(), &mut waiting, &mut inbox);
            if batch.whose.is_empty() {
                return entries;
            }
            let commands = batch.whose.iter().map(|whose| match whose {
                Whose::Caller(ask) => ask.request.command.clone(),
                Whose::Orphans(undoing) => undoing.command.clone(),
            });
            let body = codec::join(&commands.collect::<Vec<_>>()).unwrap();
            assert_eq!(codec::split(&body).unwrap().len(), batch.whose.len());
            entries.push(batch.whose.len());
        }
    }

    #[test]
    fn an_entry_never_holds_more_commands_than_replicas_take_whoever_waits_for_it() {
        let (mut one, _answer) = asks(1, &EncodedCommand::tick());
        let entries = fill_all(&orphans(1_300), one.pop_front(), VecDeque::new());
        assert_eq!(entries.iter().sum::<usize>(), 1_301);
        let (waiting, _answers) = asks(600, &EncodedCommand::tick());
        let entries = fill_all(&orphans(5), None, waiting);
        assert_eq!(entries, [BATCH_COMMANDS_MAX, 605 - BATCH_COMMANDS_MAX]);
    }

    #[test]
    fn callers_that_were_put_aside_with_large_values_are_not_refused_together() {
        let large = lease_core::machine::Set {
            key: lease_core::machine::LeaseKey::new(
                lease_core::Database::ZERO,
                lease_core::LeaseName::new("a").unwrap(),
            ),
            value: lease_core::OwnerId::redis_value(vec![b'v'; limits::VALUE_BYTES_DEFAULT]).unwrap(),
            expiry: lease_core::machine::SetExpiry::Never,
            condition: lease_core::machine::SetCondition::Always,
        };
        let large = EncodedCommand::new(&lease_core::machine::Command::Set(large)).unwrap();
        let (waiting, _answers) = asks(100, &large);
        assert_eq!(fill_all(&orphans(1), None, waiting).iter().sum::<usize>(), 101);
    }
}
