//! Keeps a running store together, and takes it apart in order.
//!
//! Owns: the tasks. Asks: Raft. Asked by: whoever shuts the store down. Stops: after a shutdown, or when the last
//! handle of the store is dropped.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::orphans::Orphans;
use crate::raft::failure::NodeFailure;
use crate::replica::Node;
use crate::runtime::{Rt, Tasks};
use crate::waiters::Waiters;

/// Each shutdown is one message; a second one finds the store stopped.
const MAILBOX_DEPTH: usize = 4;
/// How long the actors may take to end once Raft has stopped. They only have to notice it.
const ACTORS_END_WITHIN: Duration = Duration::from_secs(10);

/// How long a shutdown waits until what nobody can use any more is undone: longer than a commit takes, and no longer, since
/// there may be no quorum.
const UNDONE_WITHIN: Duration = Duration::from_secs(1);
/// How often it is looked whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(5);

type Reply = oneshot::Sender<Result<(), Arc<NodeFailure>>>;

/// The way to the keeper. The store stops when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct KeeperHandle {
    mailbox: mpsc::Sender<Reply>,
}

/// The serving of peers, which ends before Raft does: Raft's own shutdown does not hold off their calls.
pub(crate) struct PeerServing<R: Rt> {
    stop: watch::Sender<()>,
    tasks: Tasks<R>,
    hang_up: Box<dyn FnOnce() + Send>,
}

impl<R: Rt> PeerServing<R> {
    /// `stop` ends the tasks, and `hang_up` this node's own calls.
    pub(crate) fn new(
        stop: watch::Sender<()>,
        tasks: Tasks<R>,
        hang_up: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self {
            stop,
            tasks,
            hang_up: Box::new(hang_up),
        }
    }

    /// Stops it, and returns when it has stopped.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(());
        let late = self.tasks.join_all(ACTORS_END_WITHIN).await;
        if !late.is_empty() {
            tracing::error!(?late, "peers are still served");
        }
        (self.hang_up)();
    }
}

/// What the keeper works with.
pub(crate) struct Keeper<R: Rt> {
    pub(crate) peers: Option<PeerServing<R>>,
    pub(crate) node: Node<R>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) tasks: Tasks<R>,
}

impl KeeperHandle {
    /// Stops the store: nothing is answered any more, and the data directory is free when this returns.
    ///
    /// # Errors
    /// The storage failed before or at the last sync. Nothing that was acknowledged is lost.
    pub(crate) async fn stop(&self) -> Result<(), Arc<NodeFailure>> {
        let (reply, stopped) = oneshot::channel();
        if self.mailbox.send(reply).await.is_err() {
            // It has stopped already.
            return Ok(());
        }
        stopped.await.unwrap_or(Ok(()))
    }
}

impl<R: Rt> Keeper<R> {
    /// The handle, and the task to run.
    pub(crate) fn with_mailbox(self) -> (KeeperHandle, impl Future<Output = ()> + Send) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        (KeeperHandle { mailbox }, self.run(inbox))
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Reply>) {
        let reply = loop {
            tokio::select! {
                biased;
                reply = inbox.recv() => break reply,
                failure = self.node.failed(), if self.waiters.is_open() => {
                    tracing::error!(error = &failure as &dyn std::error::Error, "the node has stopped");
                    self.waiters.close();
                }
            }
        };
        undo_what_is_left(&self.node, &self.orphans).await;
        if let Some(peers) = self.peers.take() {
            peers.stop().await;
        }
        let stopped = self.node.shutdown().await.map_err(Arc::new);
        self.waiters.close();
        let late = self.tasks.join_all(ACTORS_END_WITHIN).await;
        if !late.is_empty() {
            tracing::error!(?late, "some tasks did not end");
        }
        inbox.close();
        for reply in reply
            .into_iter()
            .chain(std::iter::from_fn(|| inbox.try_recv().ok()))
        {
            // Whoever asked may have left.
            let _ = reply.send(stopped.clone());
        }
    }
}

/// Grants that nobody can learn of any more are released while there is still a log to write to.
async fn undo_what_is_left<R: Rt>(node: &Node<R>, orphans: &Orphans) {
    let deadline = R::now() + UNDONE_WITHIN;
    while orphans.open() > 0 && node.failure().is_none() {
        if R::now() >= deadline {
            let left = orphans.open();
            tracing::warn!(left, "grants without a caller last until their ttl is over");
            return;
        }
        R::sleep(LOOK_EVERY).await;
    }
}
