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
use crate::runtime::Rt;

/// Readers of one round at the most; more wait at their callers.
const MAILBOX_DEPTH: usize = 1_024;

/// How long a proof may take. A node that has lost its quorum answers after that.
const PROOF_WITHIN: Duration = Duration::from_millis(1_500);

/// How long until a proof that failed is tried again.
const PROVE_AGAIN_AFTER: Duration = Duration::from_millis(50);

type Reply = oneshot::Sender<Result<Timestamp, StoreError>>;

/// The way to the reader.
#[derive(Debug, Clone)]
pub(crate) struct ReaderHandle {
    mailbox: mpsc::Sender<Reply>,
}

/// What the reader works with.
pub(crate) struct Reader<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) forward: Arc<dyn Forward>,
}

impl ReaderHandle {
    /// Waits until all that was acknowledged before is applied here, and answers with the cluster's time after that.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if this node does not lead, or cannot prove that it still does.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is changed.
    pub(crate) async fn barrier(&self) -> Result<Timestamp, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(reply).await.map_err(|_| StoreError::ShutDown)?;
        answer.await.unwrap_or(Err(StoreError::ShutDown))
    }
}

impl<R: Rt> Reader<R> {
    /// The handle, and the task to run.
    pub(crate) fn with_mailbox(self) -> (ReaderHandle, impl Future<Output = ()> + Send) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        (ReaderHandle { mailbox }, self.run(inbox))
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Reply>) {
        let mut readers = Vec::with_capacity(MAILBOX_DEPTH);
        loop {
            tokio::select! {
                biased;
                changed = self.role.changed() => if changed.is_err() { break },
                asked = inbox.recv_many(&mut readers, MAILBOX_DEPTH) => {
                    if asked == 0 {
                        break;
                    }
                    let time = self.prove().await;
                    for reader in readers.drain(..) {
                        // A reader that is gone needs no answer.
                        let _ = reader.send(time.clone());
                    }
                }
            }
        }
    }

    /// Proves it, again and again while nobody leads, for as long as a caller waits.
    async fn prove(&self) -> Result<Timestamp, StoreError> {
        let deadline = R::now() + PROOF_WITHIN;
        loop {
            let proven = R::timeout_at(deadline, self.try_to_prove()).await;
            match proven {
                Ok(Err(StoreError::Unavailable { .. })) if R::now() + PROVE_AGAIN_AFTER < deadline => {
                    R::sleep(PROVE_AGAIN_AFTER).await;
                }
                Ok(proven) => return proven,
                Err(_) => {
                    return Err(StoreError::Unavailable {
                        leader: self.role.borrow().leader(),
                    });
                }
            }
        }
    }

    /// Proves it here, or has the leader prove it and waits until this node has applied as far.
    async fn try_to_prove(&self) -> Result<Timestamp, StoreError> {
        let role = *self.role.borrow();
        match role {
            Role::Leading(_) => self.prove_here().await,
            Role::Following { leader: Some(leader) } => {
                let Barrier { index, time } = self.forward.barrier(leader).await?;
                self.node.wait_applied(index).await;
                Ok(time)
            }
            Role::Following { leader: None } => Err(StoreError::Unavailable { leader: None }),
        }
    }

    async fn prove_here(&self) -> Result<Timestamp, StoreError> {
        if let Some(failure) = self.node.failure() {
            return Err(StoreError::Failed(Arc::new(failure)));
        }
        let proven = self.node.read_barrier().await;
        // The clock of the leadership that was proven, not of one before it.
        let role = *self.role.borrow();
        match (proven, role.leading()) {
            (Ok(_), Some(leading)) => Ok(leading.time(R::now())),
            (proven, _) => {
                tracing::debug!(?proven, "a read could not be proven");
                Err(StoreError::Unavailable {
                    leader: role.leader(),
                })
            }
        }
    }
}
