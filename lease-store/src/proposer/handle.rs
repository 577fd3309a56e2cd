//! The way to the proposer, and an answer under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lease_core::machine::codec::{CodecError, EncodedCommand};
use lease_core::machine::{Command, Outcome, Repeat};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::BYTES_ASKED_MAX;
use super::batch::{Ask, Doubt, Origin};
use crate::error::StoreError;
use crate::orphans::{IfUndelivered, Orphans};
use crate::runtime::{Instant, Rt};

/// How long a caller waits for an outcome. Longer than a caller waits for a leader, so that whoever was surely not applied
/// is told so.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_millis(2_000);

/// What a caller asks to have applied.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) command: EncodedCommand,
    /// Whether it may be applied twice.
    pub(crate) repeat: Repeat,
    pub(crate) if_undelivered: IfUndelivered,
}

impl Request {
    /// A request to apply `command`.
    ///
    /// # Errors
    /// It does not fit a log entry.
    pub(crate) fn new(command: &Command, if_undelivered: IfUndelivered) -> Result<Self, CodecError> {
        Ok(Self {
            command: EncodedCommand::new(command)?,
            repeat: command.repeat(),
            if_undelivered,
        })
    }

    /// A request to let time pass.
    pub(crate) const fn tick() -> Self {
        Self {
            command: EncodedCommand::tick(),
            repeat: Repeat::Harmless,
            if_undelivered: IfUndelivered::Keep,
        }
    }

    /// What another node forwards. It has its number already, if it needs one, and is not sent again from here: the node
    /// that forwarded it does that, and knows whether its caller is still there.
    pub(crate) const fn of_peer(command: EncodedCommand) -> Self {
        Self {
            command,
            repeat: Repeat::Harmless,
            if_undelivered: IfUndelivered::Keep,
        }
    }
}

/// The way to the proposer.
#[derive(Debug)]
pub(crate) struct ProposerHandle<I> {
    pub(super) mailbox: mpsc::Sender<Ask<I>>,
    /// Bytes that may still be asked.
    pub(super) room: Arc<Semaphore>,
    pub(super) orphans: Arc<Orphans>,
    /// Counts what was asked: whatever is tried again keeps its place among the others.
    pub(super) asked: Arc<AtomicU64>,
}

impl<I: Instant> ProposerHandle<I> {
    /// Proposes one command of a caller here, and waits for its outcome.
    ///
    /// # Errors
    /// [`StoreError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// A command that is not in the log yet is dropped. One that is stays; a grant that nobody waits for any more is
    /// treated as its request says.
    pub(crate) async fn propose<R: Rt<Instant = I>>(&self, request: Request) -> Result<Outcome, StoreError> {
        let deadline = R::now() + ANSWER_WITHIN;
        let mut answer = self.ask::<R>(request, Origin::Here, deadline).await?;
        let outcome = R::timeout_at(deadline, &mut answer.answer).await;
        // The proposer answers everything that it took, unless it was ended in the middle.
        outcome.map_or(Err(StoreError::Unknown), |told| {
            told.unwrap_or(Err(StoreError::Unknown))
        })
    }

    /// Proposes one command that another node forwarded. That node bounds how long it waits for the outcome.
    pub(crate) async fn propose_for_peer<R: Rt<Instant = I>>(
        &self,
        command: EncodedCommand,
    ) -> Result<Outcome, StoreError> {
        let deadline = R::now() + ANSWER_WITHIN;
        let request = Request::of_peer(command);
        let mut answer = self.ask::<R>(request, Origin::Peer, deadline).await?;
        (&mut answer.answer).await.unwrap_or(Err(StoreError::Unknown))
    }

    /// Hands a command to the proposer, in the order of the calls: first there must be room for its bytes, then a place in
    /// the mailbox. Until it is handed over it is surely not applied.
    async fn ask<R: Rt<Instant = I>>(
        &self,
        request: Request,
        origin: Origin,
        deadline: I,
    ) -> Result<Answer, StoreError> {
        let asked_at = R::now();
        let sequence = self.asked.fetch_add(1, Ordering::Relaxed);
        let handed_over = async {
            let bytes = request.command.body_len().min(BYTES_ASKED_MAX);
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            // Nobody closes it.
            let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.ok();
            let (reply, answer) = oneshot::channel();
            let answer = Answer {
                answer,
                if_undelivered: request.if_undelivered.clone(),
                orphans: Arc::clone(&self.orphans),
            };
            let ask = Ask {
                request,
                origin,
                number: None,
                doubt: Doubt::None,
                sequence,
                asked_at,
                reply,
                _room: room,
            };
            let sent = self.mailbox.send(ask).await;
            sent.map(|()| answer).map_err(|_| StoreError::ShutDown)
        };
        let busy = Err(StoreError::Unavailable { leader: None });
        R::timeout_at(deadline, handed_over).await.unwrap_or(busy)
    }
}

impl<I> Clone for ProposerHandle<I> {
    fn clone(&self) -> Self {
        Self {
            mailbox: self.mailbox.clone(),
            room: Arc::clone(&self.room),
            orphans: Arc::clone(&self.orphans),
            asked: Arc::clone(&self.asked),
        }
    }
}

/// An answer under way. Dropping it before it was looked at leaves a grant to the orphans.
struct Answer {
    answer: oneshot::Receiver<Result<Outcome, StoreError>>,
    if_undelivered: IfUndelivered,
    orphans: Arc<Orphans>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(outcome)) = self.answer.try_recv() {
            self.orphans.undelivered(&outcome, &self.if_undelivered);
        }
    }
}
