//! Joins what many callers ask for into one log entry, and hands each its outcome: the group commit.
//!
//! Owns: the batch being filled, and the entries in flight. Asks: Raft. Asked by: the store's callers, `timers`.
//! Stops: when its last handle is dropped, or nobody tells it the role any more.
//!
//! The stamp of an entry is taken after its last command is in, and never used for another entry. Every entry names the
//! leadership that stamped it, so nothing that waited here through a change of leaders can commit.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lease_core::limits::BATCH_COMMANDS_MAX;
use lease_core::machine::Outcome;
use lease_core::machine::codec::{self, EncodedCommand};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::StoreError;
use crate::metrics::Metrics;
use crate::orphans::{IfUndelivered, Orphans, Undoing};
use crate::raft::error::{ProposeError, Refusal};
use crate::raft::types::LeadershipId;
use crate::replica::Node;
use crate::role::{Leading, Role};
use crate::runtime::Rt;
use crate::waiters::Waiters;

/// Two full batches: what waits beyond that waits at its caller.
const MAILBOX_DEPTH: usize = 2 * BATCH_COMMANDS_MAX;
/// Entries in flight: while one is written, the next is filled. More were measured to be slower.
const ENTRIES_IN_FLIGHT_MAX: usize = 2;
/// Bytes of one entry, unless a single command is larger: keeps the log's cache and a follower's frame small.
const ENTRY_BYTES_TARGET: usize = 1_024 * 1_024;

/// The way to the proposer.
#[derive(Debug, Clone)]
pub(crate) struct ProposerHandle {
    mailbox: mpsc::Sender<Ask>,
    orphans: Arc<Orphans>,
}

/// One command and whom to answer.
#[derive(Debug)]
struct Ask {
    command: EncodedCommand,
    if_undelivered: IfUndelivered,
    reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

/// Whom one command of an entry was for.
#[derive(Debug)]
enum Whose {
    Caller {
        reply: oneshot::Sender<Result<Outcome, StoreError>>,
        if_undelivered: IfUndelivered,
    },
    Orphans(Undoing),
}

/// An entry that is committed and applied, or is not.
struct Proposed {
    id: LeadershipId,
    whose: Vec<Whose>,
    result: Result<Vec<Outcome>, ProposeError>,
}

type OnItsWay = Pin<Box<dyn Future<Output = Proposed> + Send>>;
type InFlight = FuturesUnordered<OnItsWay>;

/// What the proposer works with.
pub(crate) struct Proposer<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) metrics: Arc<Metrics>,
}

impl ProposerHandle {
    /// Proposes one command and waits for its outcome.
    ///
    /// # Errors
    /// [`StoreError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// A command that is not in the log yet is dropped. One that is stays; a grant that nobody waits for any more is
    /// treated as `if_undelivered` says.
    pub(crate) async fn propose(
        &self,
        command: EncodedCommand,
        if_undelivered: IfUndelivered,
    ) -> Result<Outcome, StoreError> {
        let (reply, answer) = oneshot::channel();
        let mut answer = Answer {
            answer,
            if_undelivered: if_undelivered.clone(),
            orphans: &self.orphans,
        };
        self.mailbox
            .send(Ask {
                command,
                if_undelivered,
                reply,
            })
            .await
            .map_err(|_| StoreError::ShutDown)?;
        // The proposer answers everything that it took, unless it was ended in the middle.
        (&mut answer.answer).await.unwrap_or(Err(StoreError::Unknown))
    }
}

/// An answer under way. Dropping it before it was looked at leaves a grant to the orphans.
struct Answer<'a> {
    answer: oneshot::Receiver<Result<Outcome, StoreError>>,
    if_undelivered: IfUndelivered,
    orphans: &'a Orphans,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(outcome)) = self.answer.try_recv() {
            self.orphans.undelivered(&outcome, &self.if_undelivered);
        }
    }
}

impl<R: Rt> Proposer<R> {
    /// The handle, and the task to run.
    pub(crate) fn with_mailbox(self) -> (ProposerHandle, impl Future<Output = ()> + Send) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let handle = ProposerHandle {
            mailbox,
            orphans: Arc::clone(&self.orphans),
        };
        (handle, self.run(inbox))
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Ask>) {
        let mut in_flight = InFlight::new();
        let mut over = None;
        let orphans = Arc::clone(&self.orphans);
        loop {
            let leading = self.leading(over);
            let takes_entries = leading.is_some() && in_flight.len() < ENTRIES_IN_FLIGHT_MAX;
            tokio::select! {
                biased;
                Some(proposed) = in_flight.next() => over = self.on_proposed(proposed).or(over),
                changed = self.role.changed() => if changed.is_err() { break },
                () = orphans.added(), if takes_entries => {
                    if let Some(leading) = leading {
                        in_flight.extend(self.send(self.fill(None, &mut inbox), leading).await);
                    }
                }
                ask = inbox.recv(), if takes_entries || leading.is_none() => match (ask, leading) {
                    (None, _) => break,
                    (Some(ask), Some(leading)) => {
                        in_flight.extend(self.send(self.fill(Some(ask), &mut inbox), leading).await);
                    }
                    (Some(ask), None) => self.refuse(ask),
                },
            }
        }
        while let Some(proposed) = in_flight.next().await {
            self.on_proposed(proposed);
        }
    }

    /// The leadership to propose in: the current one, unless it failed, or Raft has said already that it is over.
    fn leading(&mut self, over: Option<LeadershipId>) -> Option<Leading<R::Instant>> {
        let leading = *self.role.borrow_and_update().leading()?;
        (over != Some(leading.id) && self.node.failure().is_none()).then_some(leading)
    }

    /// Fills one entry with what waits now.
    fn fill(&self, first: Option<Ask>, inbox: &mut mpsc::Receiver<Ask>) -> Batch {
        let mut batch = Batch::default();
        while batch.has_room()
            && let Some(undoing) = self.orphans.pop()
        {
            batch.push(undoing.command.clone(), Whose::Orphans(undoing));
        }
        let mut next = first;
        loop {
            if let Some(ask) = next.take() {
                batch.push_ask(ask);
            }
            if !batch.has_room() {
                break;
            }
            match inbox.try_recv() {
                Ok(ask) => next = Some(ask),
                Err(_) => break,
            }
        }
        batch
    }

    /// Stamps a batch, which takes no more commands now, and sends it off.
    async fn send(&self, batch: Batch, leading: Leading<R::Instant>) -> Option<OnItsWay> {
        if batch.commands.is_empty() {
            return None;
        }
        self.metrics.entry_proposed(batch.commands.len());
        let body = codec::join(&batch.commands);
        let (whose, id) = (batch.whose, leading.id);
        let in_line = self.node.propose(leading.time(R::now()), body, id).await;
        Some(Box::pin(async move {
            let result = match in_line {
                Ok(pending) => pending.await.map(|applied| applied.outcome),
                Err(error) => Err(error),
            };
            Proposed { id, whose, result }
        }))
    }

    /// Answers the callers of an entry; gives its leadership if that has turned out to be over.
    fn on_proposed(&self, Proposed { id, whose, result }: Proposed) -> Option<LeadershipId> {
        let error = match result {
            Ok(outcomes) => {
                for (whose, outcome) in whose.into_iter().zip(outcomes) {
                    self.deliver(whose, outcome);
                }
                return None;
            }
            Err(error) => error,
        };
        tracing::debug!(%error, commands = whose.len(), "an entry was not applied, or may not have been");
        for whose in whose {
            self.fail(whose, &error);
        }
        match error {
            ProposeError::NotApplied {
                reason: Refusal::TooLong { .. },
            } => None,
            ProposeError::NotApplied { .. } | ProposeError::Unknown { .. } => Some(id),
        }
    }

    fn deliver(&self, whose: Whose, outcome: Outcome) {
        match whose {
            Whose::Caller {
                reply,
                if_undelivered,
            } => {
                if let Err(Ok(outcome)) = reply.send(Ok(outcome)) {
                    self.orphans.undelivered(&outcome, &if_undelivered);
                }
            }
            Whose::Orphans(undoing) => {
                if let Some(attachment) = undoing.detaches {
                    self.waiters.forget(attachment);
                }
            }
        }
    }

    fn fail(&self, whose: Whose, error: &ProposeError) {
        match whose {
            Whose::Caller { reply, .. } => {
                // A caller that is gone needs no answer.
                let _ = reply.send(Err(self.store_error(error)));
            }
            Whose::Orphans(undoing) => self.orphans.again(undoing),
        }
    }

    fn refuse(&self, ask: Ask) {
        let leader = self.role.borrow().leader();
        let failed = |failure| StoreError::Failed(Arc::new(failure));
        let error = self
            .node
            .failure()
            .map_or(StoreError::Unavailable { leader }, failed);
        let _ = ask.reply.send(Err(error));
    }

    fn store_error(&self, error: &ProposeError) -> StoreError {
        let failure = self.node.failure();
        match (error, failure) {
            (
                ProposeError::NotApplied {
                    reason: Refusal::TooLong { .. },
                },
                _,
            ) => StoreError::TooLarge,
            (_, Some(failure)) => StoreError::Failed(Arc::new(failure)),
            (ProposeError::NotApplied { .. }, None) => StoreError::Unavailable {
                leader: self.role.borrow().leader(),
            },
            (ProposeError::Unknown { .. }, None) => StoreError::Unknown,
        }
    }
}

/// One entry being filled.
#[derive(Default)]
struct Batch {
    commands: Vec<EncodedCommand>,
    whose: Vec<Whose>,
    bytes: usize,
}

impl Batch {
    fn has_room(&self) -> bool {
        self.commands.len() < BATCH_COMMANDS_MAX && self.bytes < ENTRY_BYTES_TARGET
    }

    /// A caller that is gone before its command is in the log is left out.
    fn push_ask(&mut self, ask: Ask) {
        if !ask.reply.is_closed() {
            let whose = Whose::Caller {
                reply: ask.reply,
                if_undelivered: ask.if_undelivered,
            };
            self.push(ask.command, whose);
        }
    }

    fn push(&mut self, command: EncodedCommand, whose: Whose) {
        self.bytes = self.bytes.saturating_add(command.body_len());
        self.commands.push(command);
        self.whose.push(whose);
    }
}
