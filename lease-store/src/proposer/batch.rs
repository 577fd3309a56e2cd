//! One log entry being filled, and whom each of its commands is for.

use lease_core::limits::BATCH_COMMANDS_MAX;
use lease_core::machine::Outcome;
use lease_core::machine::codec::EncodedCommand;
use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;
use crate::orphans::{IfUndelivered, Orphans, Undoing};

/// Bytes of one entry, unless a single command is larger: keeps the log's cache and a follower's frame small.
const ENTRY_BYTES_TARGET: usize = 1_024 * 1_024;

/// Where an answer goes.
pub(super) type ReplyTo = oneshot::Sender<Result<Outcome, StoreError>>;

/// One command and whom to answer.
#[derive(Debug)]
pub(super) struct Ask<I> {
    pub(super) command: EncodedCommand,
    pub(super) if_undelivered: IfUndelivered,
    pub(super) origin: Origin,
    pub(super) asked_at: I,
    pub(super) reply: ReplyTo,
}

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
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
    pub(super) commands: Vec<EncodedCommand>,
    pub(super) whose: Vec<Whose<I>>,
    bytes: usize,
}

impl<I> Batch<I> {
    /// Fills an entry with what waits now: what must be undone, `first`, and what stands in the mailbox.
    pub(super) fn fill(
        orphans: &Orphans,
        first: impl IntoIterator<Item = Ask<I>>,
        inbox: &mut mpsc::Receiver<Ask<I>>,
    ) -> Self {
        let mut batch = Self {
            commands: Vec::new(),
            whose: Vec::new(),
            bytes: 0,
        };
        while batch.has_room()
            && let Some(undoing) = orphans.pop()
        {
            batch.push(undoing.command.clone(), Whose::Orphans(undoing));
        }
        first.into_iter().for_each(|ask| batch.push_ask(ask));
        while batch.has_room()
            && let Ok(ask) = inbox.try_recv()
        {
            batch.push_ask(ask);
        }
        batch
    }

    const fn has_room(&self) -> bool {
        self.commands.len() < BATCH_COMMANDS_MAX && self.bytes < ENTRY_BYTES_TARGET
    }

    /// A caller that is gone before its command is in the log is left out.
    fn push_ask(&mut self, ask: Ask<I>) {
        if !ask.reply.is_closed() {
            self.push(ask.command.clone(), Whose::Caller(ask));
        }
    }

    fn push(&mut self, command: EncodedCommand, whose: Whose<I>) {
        self.bytes = self.bytes.saturating_add(command.body_len());
        self.commands.push(command);
        self.whose.push(whose);
    }
}
