//! The mailboxes of the lanes: jobs, and the handle that asks.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use super::group::Wait;
use crate::error::{Certainty, StorageFailure, StoreError};
use crate::limits::GROUP_REQUESTS_MAX;
use crate::store::row_store::Scope;
use crate::store::transaction::Transaction;
use crate::store::{Health, Standing};

/// Jobs that wait for one lane at the most: two full groups, one to fill while the other is written. Past that, callers
/// wait.
pub(super) const MAILBOX_DEPTH: usize = 2 * GROUP_REQUESTS_MAX;

/// What a job answers, of the type that its caller waits for.
pub(super) type Value = Box<dyn Any + Send>;

/// What a lane can be asked.
pub(super) enum Message {
    /// To do a piece of a transaction.
    Job(Box<dyn Job>),
    /// How far the ledger has come.
    Standing {
        wait: Wait,
        reply: oneshot::Sender<Result<Standing, StoreError>>,
    },
}

/// A piece of a transaction, and who waits for its answer.
pub(super) trait Job: Send + Sync {
    /// Does it on top of the ones before it; again if need be.
    fn serve(&self, transaction: &mut Transaction<'_>) -> Result<Value, StorageFailure>;

    /// Whether nobody waits any more.
    fn is_gone(&self) -> bool;

    /// Answers.
    fn answer(self: Box<Self>, answer: Result<Value, StoreError>);
}

struct Asked<T, F> {
    work: F,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send + 'static,
    F: Fn(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + Sync,
{
    fn serve(&self, transaction: &mut Transaction<'_>) -> Result<Value, StorageFailure> {
        Ok(Box::new((self.work)(transaction)?))
    }

    fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }

    fn answer(self: Box<Self>, answer: Result<Value, StoreError>) {
        let answer = match answer.map(Value::downcast::<T>) {
            Ok(Ok(value)) => Ok(*value),
            Ok(Err(_)) => unreachable!("a job is answered with what it made itself"),
            Err(error) => Err(error),
        };
        // A caller that is gone asks again, or never.
        let _gone = self.reply.send(answer);
    }
}

/// The mailboxes of all lanes.
#[derive(Debug)]
pub(super) struct Mailboxes {
    pub(super) claims: Vec<mpsc::Sender<Message>>,
    pub(super) rest: mpsc::Sender<Message>,
    pub(super) reads: mpsc::Sender<Message>,
}

impl Mailboxes {
    /// Claims of one key always go to the same lane, so that the lanes of a process do not wait for each other's locks.
    fn of(&self, scope: &Scope) -> Option<mpsc::Sender<Message>> {
        match scope {
            Scope::Read => Some(self.reads.clone()),
            Scope::Rest => Some(self.rest.clone()),
            Scope::Claims { key } => {
                let lanes = u64::try_from(self.claims.len()).ok()?;
                let lane = usize::try_from(spread(key).checked_rem(lanes)?).ok()?;
                self.claims.get(lane).cloned()
            }
        }
    }
}

/// Asks the lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Gone once the store is closed; the lanes end when what they have taken on is answered.
    mailboxes: Mutex<Option<Mailboxes>>,
    health: watch::Receiver<Health>,
}

impl Lanes {
    pub(super) const fn new(mailboxes: Mailboxes, health: watch::Receiver<Health>) -> Self {
        Self {
            mailboxes: Mutex::new(Some(mailboxes)),
            health,
        }
    }

    /// Has `work` done in a transaction.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        scope: Scope,
        work: impl Fn(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        self.send(&scope, |reply| Message::Job(Box::new(Asked { work, reply })))
            .await
    }

    pub(super) async fn standing(&self, wait: Wait) -> Result<Standing, StoreError> {
        self.send(&Scope::Read, |reply| Message::Standing { wait, reply })
            .await
    }

    async fn send<T>(
        &self,
        scope: &Scope,
        message: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Message,
    ) -> Result<T, StoreError> {
        let mailbox = self.mailbox(scope)?;
        let (reply, answer) = oneshot::channel();
        if mailbox.send(message(reply)).await.is_err() {
            return Err(self.died(Certainty::NotApplied));
        }
        drop(mailbox);
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(self.died(Certainty::Unknown)),
        }
    }

    fn mailbox(&self, scope: &Scope) -> Result<mpsc::Sender<Message>, StoreError> {
        let mailboxes = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes
            .as_ref()
            .and_then(|mailboxes| mailboxes.of(scope))
            .ok_or(StoreError::Closed)
    }

    /// The lanes ended without an answer: their runtime was shut down, or one of them panicked.
    fn died(&self, certainty: Certainty) -> StoreError {
        match self.health() {
            Health::Stopped(failure) => StoreError::Stopped { certainty, failure },
            Health::Serving | Health::Stalled | Health::Closed => StoreError::Stopped {
                certainty,
                failure: Arc::new(StorageFailure::WriterDied),
            },
        }
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let taken = self
            .mailboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(taken);
        match self.ended().await {
            Health::Stopped(failure) => Err(StoreError::Stopped {
                certainty: Certainty::NotApplied,
                failure,
            }),
            Health::Serving | Health::Stalled | Health::Closed => Ok(()),
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

/// FNV-1a: the same in every process and build, and good enough to spread names over a few lanes.
///
/// Source: the FNV hash by Fowler, Noll and Vo, 64 bits.
fn spread(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What the lanes tell everybody together; the last one to end says how they ended.
#[derive(Debug)]
pub(super) struct LastWord {
    health: watch::Sender<Health>,
    /// Lanes that have not ended as they should.
    running: AtomicUsize,
}

impl LastWord {
    pub(super) const fn new(health: watch::Sender<Health>, lanes: usize) -> Self {
        Self {
            health,
            running: AtomicUsize::new(lanes),
        }
    }

    /// A lane has answered everything and ends.
    pub(super) fn lane_ended(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// The server answers, or does not.
    pub(super) fn say(&self, reachable: Reachable) -> Said {
        let changed = self.health.send_if_modified(|health| {
            let now = match (&health, reachable) {
                (Health::Serving, Reachable::No) => Health::Stalled,
                (Health::Stalled, Reachable::Yes) => Health::Serving,
                (Health::Serving | Health::Stalled | Health::Stopped(_) | Health::Closed, _) => return false,
            };
            *health = now;
            true
        });
        match changed {
            true => Said::News,
            false => Said::KnownBefore,
        }
    }
}

/// Whether something was said for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    News,
    KnownBefore,
}

/// Whether the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reachable {
    Yes,
    No,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        let end = match self.running.load(Ordering::SeqCst) {
            0 => Health::Closed,
            _ => Health::Stopped(Arc::new(StorageFailure::WriterDied)),
        };
        self.health.send_replace(end);
    }
}
