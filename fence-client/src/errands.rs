//! Work that is done for the sake of others, after the caller is gone: releases of dropped leases, and acquires that
//! were given up.
//!
//! Owns: the errands under way. Asks: the store. Asked by: whoever drops a lease or an acquire, and the watchdog.
//! Stops: when its last handle is dropped and all errands are done; each is over within the time of one operation.
//!
//! Best effort, and bounded: past the bound an errand is not done, and the lease ends with its time to live.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lease_core::wire::{CancelReply, LeaseCommand, ReleaseReply};
use lease_core::{Fence, LeaseName, OwnerId, RequestId};
use tokio::sync::{mpsc, oneshot};
use tracing::info_span;

use crate::caller::{Caller, Repeat};
use crate::tasks;

/// Errands that wait for their turn: as many as a busy client drops while the store does not answer.
const MAILBOX_DEPTH: usize = 4_096;
/// Errands under way at once: enough to fill one connection, few enough not to crowd out others.
const UNDER_WAY_MAX: usize = 64;

enum Message {
    Release {
        fence: Fence,
    },
    Cancel {
        name: LeaseName,
        owner: OwnerId,
        request: RequestId,
    },
    /// Answer once all errands before this one are done.
    Settle {
        reply: oneshot::Sender<()>,
    },
}

/// A handle on the errands.
#[derive(Debug, Clone)]
pub(crate) struct ErrandsHandle {
    mailbox: mpsc::Sender<Message>,
}

impl ErrandsHandle {
    pub(crate) fn spawn(caller: Caller) -> Self {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let errands = Errands {
            caller,
            under_way: FuturesUnordered::new(),
            settling: Vec::new(),
        };
        tasks::spawn(info_span!("errands"), errands.run(inbox));
        Self { mailbox }
    }

    /// Releases a grant by its token.
    pub(crate) fn release(&self, fence: Fence) {
        self.send(Message::Release { fence });
    }

    /// Gives a request up: ends its wait, or its lease if it was granted.
    pub(crate) fn cancel(&self, name: LeaseName, owner: OwnerId, request: RequestId) {
        self.send(Message::Cancel { name, owner, request });
    }

    /// Waits until all errands so far are done, at most for `limit`.
    pub(crate) async fn settle(&self, limit: Duration) {
        let (reply, settled) = oneshot::channel();
        let _ = tokio::time::timeout(limit, async {
            if self.mailbox.send(Message::Settle { reply }).await.is_ok() {
                let _ = settled.await;
            }
        })
        .await;
    }

    fn send(&self, message: Message) {
        if self.mailbox.try_send(message).is_err() {
            tracing::warn!("too many errands, or the runtime is gone: a lease is left to its time to live");
        }
    }
}

type Errand = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Errands {
    caller: Caller,
    under_way: FuturesUnordered<Errand>,
    settling: Vec<oneshot::Sender<()>>,
}

impl Errands {
    async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        loop {
            let has_room = self.under_way.len() < UNDER_WAY_MAX && self.settling.is_empty();
            tokio::select! {
                biased;
                Some(()) = self.under_way.next(), if !self.under_way.is_empty() => self.on_done(),
                message = inbox.recv(), if has_room => match message {
                    Some(message) => self.on_message(message),
                    None => break,
                },
            }
        }
        while self.under_way.next().await.is_some() {}
    }

    fn on_message(&mut self, message: Message) {
        let caller = self.caller.clone();
        match message {
            Message::Release { fence } => self.under_way.push(Box::pin(release(caller, fence))),
            Message::Cancel { name, owner, request } => {
                self.under_way
                    .push(Box::pin(cancel(caller, name, owner, request)));
            }
            Message::Settle { reply } => {
                self.settling.push(reply);
                self.on_done();
            }
        }
    }

    fn on_done(&mut self) {
        if self.under_way.is_empty() {
            for reply in self.settling.drain(..) {
                let _ = reply.send(());
            }
        }
    }
}

async fn release(caller: Caller, fence: Fence) {
    let command = LeaseCommand::Release {
        name: fence.resource.clone(),
        token: fence.token,
    };
    if let Err(failure) = caller
        .ask(&command, Repeat::Safely, ReleaseReply::from_reply)
        .await
    {
        tracing::warn!(lease = %fence, error = %failure.error, "left to its time to live");
    }
}

async fn cancel(caller: Caller, name: LeaseName, owner: OwnerId, request: RequestId) {
    let command = LeaseCommand::Cancel {
        name: name.clone(),
        owner,
        request,
    };
    if let Err(failure) = caller
        .ask(&command, Repeat::Safely, CancelReply::from_reply)
        .await
    {
        tracing::warn!(lease = %name, error = %failure.error, "an acquire is left to its end");
    }
}
