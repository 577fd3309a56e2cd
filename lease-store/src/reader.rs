//! Proves for many readers at once that somebody still leads, and that this node has applied as far: one ReadIndex for
//! all that wait.
//!
//! Owns: the readers of the round being filled. Asks: Raft. Asked by: the store's readers. Stops: when its last handle
//! is dropped, or nobody tells it the role any more.
//!
//! What it hands out is the cluster's time at a moment after the proof. Whoever gets it may look at the machine: all
//! that was acknowledged before the read was called is applied there.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lease_core::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::StoreError;
use crate::forward::{Barrier, Forward};
use crate::replica::Node;
use crate::role::Role;
use crate::runtime::{Instant, Rt};

/// Readers of one round at the most; more wait at their callers.
const MAILBOX_DEPTH: usize = 1_024;

/// How long a reader waits for a proof. A node that has lost its quorum answers after that.
const PROOF_WITHIN: Duration = Duration::from_millis(1_500);

/// How long until a proof that failed is tried again.
const PROVE_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// One reader, and since when it waits.
#[derive(Debug)]
struct Asked<I> {
    at: I,
    reply: oneshot::Sender<Result<Timestamp, StoreError>>,
}

impl<I: Instant> Asked<I> {
    fn waits_until(&self) -> I {
        self.at + PROOF_WITHIN
    }
}

/// The way to the reader.
#[derive(Debug)]
pub(crate) struct ReaderHandle<I> {
    mailbox: mpsc::Sender<Asked<I>>,
}

/// What the reader works with.
pub(crate) struct Reader<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) forward: Arc<dyn Forward>,
}

impl<I: Instant> ReaderHandle<I> {
    /// Waits until all that was acknowledged before is applied here, and answers with the cluster's time after that.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if this node does not lead, or cannot prove in time that it still does.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is changed.
    pub(crate) async fn barrier<R: Rt<Instant = I>>(&self) -> Result<Timestamp, StoreError> {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { at: R::now(), reply };
        self.mailbox.send(asked).await.map_err(|_| StoreError::ShutDown)?;
        answer.await.unwrap_or(Err(StoreError::ShutDown))
    }
}

impl<I> Clone for ReaderHandle<I> {
    fn clone(&self) -> Self {
        let mailbox = self.mailbox.clone();
        Self { mailbox }
    }
}

impl<R: Rt> Reader<R> {
    /// The handle, and the task to run.
    pub(crate) fn with_mailbox(self) -> (ReaderHandle<R::Instant>, impl Future<Output = ()> + Send) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        (ReaderHandle { mailbox }, self.run(inbox))
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Asked<R::Instant>>) {
        let mut readers: Vec<Asked<R::Instant>> = Vec::with_capacity(MAILBOX_DEPTH);
        loop {
            if readers.is_empty() {
                tokio::select! {
                    biased;
                    changed = self.role.changed() => if changed.is_err() { break } else { continue },
                    asked = inbox.recv_many(&mut readers, MAILBOX_DEPTH) => if asked == 0 { break },
                }
            }
            // Whoever came meanwhile has the next proof as well.
            while readers.len() < MAILBOX_DEPTH
                && let Ok(asked) = inbox.try_recv()
            {
                readers.push(asked);
            }
            let Some(deadline) = readers.iter().map(Asked::waits_until).min() else {
                continue;
            };
            let Some(proven) = self.prove(deadline).await else {
                break;
            };
            let goes_on = matches!(proven, Err(StoreError::Unavailable { .. }));
            let now = R::now();
            let waits = |asked: &mut Asked<R::Instant>| goes_on && asked.waits_until() > now;
            for asked in readers.extract_if(.., |asked| !waits(asked)) {
                // A reader that is gone needs no answer.
                let _ = asked.reply.send(proven.clone());
            }
        }
    }

    /// Proves it, again and again while nobody leads, until `deadline`; at once again when the role changes, since whoever
    /// was asked may not answer any more. `None` once nobody tells the role.
    async fn prove(&mut self, deadline: R::Instant) -> Option<Result<Timestamp, StoreError>> {
        let Self { node, role, forward } = self;
        loop {
            let now = *role.borrow_and_update();
            let attempt = async {
                let proven = try_to_prove::<R>(node, now, &**forward).await;
                if matches!(proven, Err(StoreError::Unavailable { .. })) {
                    R::sleep(PROVE_AGAIN_AFTER).await;
                }
                proven
            };
            tokio::select! {
                biased;
                changed = role.changed() => changed.ok()?,
                proven = R::timeout_at(deadline, attempt) => match proven {
                    Ok(Err(StoreError::Unavailable { .. })) => {}
                    Ok(proven) => return Some(proven),
                    Err(_) => return Some(Err(StoreError::Unavailable { leader: now.leader() })),
                },
            }
        }
    }
}

/// Proves it here, or has the leader prove it and waits until this node has applied as far.
async fn try_to_prove<R: Rt>(
    node: &Node<R>,
    role: Role<R::Instant>,
    forward: &dyn Forward,
) -> Result<Timestamp, StoreError> {
    match role {
        Role::Leading(leading) => {
            if let Some(failure) = node.failure() {
                return Err(StoreError::Failed(Arc::new(failure)));
            }
            match node.read_barrier().await {
                // The clock of the leadership that was asked. Another one is another role, and then this is not heard.
                Ok(_) => Ok(leading.time(R::now())),
                Err(error) => {
                    tracing::debug!(%error, "a read could not be proven");
                    Err(StoreError::Unavailable {
                        leader: role.leader(),
                    })
                }
            }
        }
        Role::Following { leader: Some(leader) } => {
            let Barrier { index, time } = forward.barrier(leader).await?;
            node.wait_applied(index).await;
            Ok(time)
        }
        Role::Following { leader: None } => Err(StoreError::Unavailable { leader: None }),
    }
}
