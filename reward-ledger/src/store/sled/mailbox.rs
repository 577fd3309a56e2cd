//! The writer's mailbox: what it can be asked, and the handle that asks.

use std::sync::Arc;

use lease_core::LeaseName;
use tokio::sync::{mpsc, oneshot, watch};

use crate::core::ClaimOutcome;
use crate::error::{Certainty, StorageFailure, StoreError};
use crate::event_id::RewardEventId;
use crate::limits::GROUP_REQUESTS_MAX;
use crate::store::{ClaimRequest, Cursor, Health, Page, ResetRequest, Table};
use crate::types::{ClaimId, FenceState, PlayerId, Receipt, UnixMillis};

/// Requests that wait at the most: two full groups, one to fill while the other is written. Past that, callers wait.
pub(super) const MAILBOX_DEPTH: usize = 2 * GROUP_REQUESTS_MAX;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer can be asked.
#[derive(Debug)]
pub(super) enum Message {
    Claim {
        request: Box<ClaimRequest>,
        reply: Reply<ClaimOutcome>,
    },
    Receipt {
        player: PlayerId,
        event: RewardEventId,
        reply: Reply<Option<Receipt>>,
    },
    Fence {
        resource: LeaseName,
        reply: Reply<Option<FenceState>>,
    },
    ResetFence {
        request: ResetRequest,
        reply: Reply<FenceState>,
    },
    LastClaim {
        reply: Reply<ClaimId>,
    },
    Page {
        table: Table,
        after: Option<Cursor>,
        reply: Reply<Page>,
    },
    Close {
        reply: Reply<()>,
    },
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

    pub(super) async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, StoreError> {
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
        match self.ask(|reply| Message::Close { reply }).await {
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
    /// Refusals from before this may be forgotten.
    pub(super) fn forget_before(&self) -> Option<UnixMillis> {
        match self {
            Self::Claim { request, .. } => Some(request.forget_before),
            Self::Receipt { .. }
            | Self::Fence { .. }
            | Self::ResetFence { .. }
            | Self::LastClaim { .. }
            | Self::Page { .. }
            | Self::Close { .. } => None,
        }
    }

    /// Answers with an error without having looked at the request.
    pub(super) fn refuse(self, error: StoreError) {
        // A caller that is gone needs no answer.
        let _gone = match self {
            Self::Claim { reply, .. } => reply.send(Err(error)).is_err(),
            Self::Receipt { reply, .. } => reply.send(Err(error)).is_err(),
            Self::Fence { reply, .. } => reply.send(Err(error)).is_err(),
            Self::ResetFence { reply, .. } => reply.send(Err(error)).is_err(),
            Self::LastClaim { reply } => reply.send(Err(error)).is_err(),
            Self::Page { reply, .. } => reply.send(Err(error)).is_err(),
            Self::Close { reply } => reply.send(Err(error)).is_err(),
        };
    }
}
