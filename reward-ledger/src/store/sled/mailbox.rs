//! The writer's mailbox: what it can be asked, and the handle that asks.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Certainty, StorageFailure, StoreError};
use crate::limits::GROUP_REQUESTS_MAX;
use crate::store::Health;
use crate::store::transaction::Transaction;

/// Requests that wait at the most: two full groups, one to fill while the other is written. Past that, callers wait.
pub(super) const MAILBOX_DEPTH: usize = 2 * GROUP_REQUESTS_MAX;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// An answer that waits for the barrier.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

/// What the writer can be asked.
pub(super) enum Message {
    /// To do a piece of a transaction.
    Job(Box<dyn Job>),
    /// To let go of everything.
    Close { reply: Reply<()> },
}

/// A piece of a transaction, and who waits for its answer.
pub(super) trait Job: Send {
    /// Does it on top of the ones before it; the answer is held back. A caller that is gone is not served.
    fn serve(self: Box<Self>, transaction: &mut Transaction<'_>) -> Result<Option<Answer>, StorageFailure>;

    /// Answers with an error without having looked at it.
    fn refuse(self: Box<Self>, error: StoreError);
}

struct Asked<T, F> {
    work: F,
    reply: Reply<T>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send,
{
    fn serve(self: Box<Self>, transaction: &mut Transaction<'_>) -> Result<Option<Answer>, StorageFailure> {
        let Self { work, reply } = *self;
        if reply.is_closed() {
            return Ok(None);
        }
        let answer = work(transaction)?;
        Ok(Some(Box::new(move || {
            // A caller that is gone asks again, or never.
            let _gone = reply.send(Ok(answer));
        })))
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        // A caller that is gone needs no answer.
        let _gone = self.reply.send(Err(error));
    }
}

/// Asks the writer.
#[derive(Debug)]
pub(super) struct WriterHandle {
    mailbox: mpsc::Sender<Message>,
    health: watch::Receiver<Health>,
}

impl WriterHandle {
    pub(super) const fn new(mailbox: mpsc::Sender<Message>, health: watch::Receiver<Health>) -> Self {
        Self { mailbox, health }
    }

    /// Has `work` done in a transaction; its answer is durable.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.send(|reply| Message::Job(Box::new(Asked { work, reply })))
            .await
    }

    async fn send<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, StoreError> {
        let (reply, mut answer) = oneshot::channel();
        let mut health = self.health.clone();
        tokio::select! {
            biased;
            error = trouble(&mut health, Certainty::NotApplied) => return Err(error),
            sent = self.mailbox.send(message(reply)) => if sent.is_err() {
                return Err(trouble(&mut health, Certainty::NotApplied).await);
            },
        }
        tokio::select! {
            biased;
            answered = &mut answer => match answered {
                Ok(answer) => answer,
                Err(_) => Err(trouble(&mut health, Certainty::Unknown).await),
            },
            error = trouble(&mut health, Certainty::Unknown) => Err(error),
        }
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        match self.send(|reply| Message::Close { reply }).await {
            Ok(()) | Err(StoreError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    pub(super) async fn ended(&self) -> Health {
        let mut health = self.health.clone();
        match health
            .wait_for(|health| matches!(health, Health::Stopped(_) | Health::Closed))
            .await
        {
            Ok(health) => health.clone(),
            Err(_) => self.health(),
        }
    }
}

/// Waits until the writer does not serve, and says why not.
async fn trouble(health: &mut watch::Receiver<Health>, certainty: Certainty) -> StoreError {
    let health = match health.wait_for(|health| !matches!(health, Health::Serving)).await {
        Ok(health) => health.clone(),
        // Both of its writers are gone, and neither left a word: threads that were killed.
        Err(_) => Health::Stopped(Arc::new(StorageFailure::WriterDied)),
    };
    match health {
        Health::Serving | Health::Stalled => StoreError::Stalled { certainty },
        Health::Stopped(failure) => StoreError::Stopped { certainty, failure },
        Health::Closed => StoreError::Closed,
    }
}

impl Message {
    /// Answers with an error without having looked at the request.
    pub(super) fn refuse(self, error: StoreError) {
        match self {
            Self::Job(job) => job.refuse(error),
            Self::Close { reply } => {
                // A caller that is gone needs no answer.
                let _gone = reply.send(Err(error));
            }
        }
    }
}
