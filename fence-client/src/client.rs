use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lease_core::limits::REASON_BYTES_MAX;
use lease_core::wire::{
    CancelReply, ForceReply, GetReply, HistoryEntry, HistoryReply, LeaseCommand, LeaseView, ListCommand,
    ListCursor, ListReply, TokenReply,
};
use lease_core::{FenceToken, InvalidValue, LeaseName, OwnerId, RequestId, SharedBytes};

use crate::builder::ClientBuilder;
use crate::caller::{Caller, Failure, Read, Repeat};
use crate::clock::Clock;
use crate::config::Settings;
use crate::errands::ErrandsHandle;
use crate::error::{ConnectError, RequestError};
use crate::lease_request::LeaseRequest;
use crate::unavailable::Outage;
use crate::watchdog::{HoldId, WatchdogHandle};

/// A client of a lease store. Cloning shares connections, watchdog and owner.
#[derive(Clone)]
pub struct FenceClient {
    core: Arc<Core>,
}

/// What a client and all its leases share.
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) caller: Caller,
    pub(crate) clock: Clock,
    pub(crate) owner: OwnerId,
    pub(crate) errands: ErrandsHandle,
    pub(crate) watchdog: WatchdogHandle,
    pub(crate) outage: Outage,
    holds: AtomicU64,
}

impl Core {
    /// Starts the actors of a client, within a tokio runtime.
    pub(crate) fn start(settings: Settings, caller: Caller, clock: Clock, owner: OwnerId) -> Arc<Self> {
        let errands = ErrandsHandle::spawn(caller.clone());
        let watchdog = WatchdogHandle::spawn(caller.clone(), clock.clone(), errands.clone());
        let outage = Outage::new(settings.unavailable.clone(), clock.clone());
        Arc::new(Self {
            settings,
            caller,
            clock,
            owner,
            errands,
            watchdog,
            outage,
            holds: AtomicU64::new(0),
        })
    }

    pub(crate) fn next_hold(&self) -> HoldId {
        HoldId(self.holds.fetch_add(1, Ordering::Relaxed))
    }
}

impl FenceClient {
    pub(crate) const fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// A client of the servers at `endpoints` (`host:port`, several with commas between them), once one of them
    /// answers; with the defaults of [`ClientBuilder`].
    ///
    /// # Errors
    /// [`ConnectError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing remains.
    pub async fn connect(endpoints: &str) -> Result<Self, ConnectError> {
        Self::builder().connect(endpoints).await
    }

    /// A client of a store in this process, with the defaults of [`ClientBuilder`].
    ///
    /// # Errors
    /// [`ConnectError::NoRuntime`] outside of a tokio runtime.
    #[cfg(any(test, feature = "embedded"))]
    pub fn embedded(store: lease_store::LeaseStore) -> Result<Self, ConnectError> {
        Self::builder().embedded(store)
    }

    /// The settings of a client to be made.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Who this client is in the store.
    #[must_use]
    pub fn owner(&self) -> &OwnerId {
        &self.core.owner
    }

    /// Leases of this client that are renewed now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.core.watchdog.watched()
    }

    /// A lease to be acquired. An invalid name is reported when it is.
    pub fn lease(&self, name: impl AsRef<[u8]>) -> LeaseRequest {
        LeaseRequest::new(Arc::clone(&self.core), LeaseName::new(name))
    }

    /// Who holds a name; `None` if nobody does.
    ///
    /// # Errors
    /// [`RequestError`]; this only reads.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get(&self, name: impl AsRef<[u8]>) -> Result<Option<LeaseView>, RequestError> {
        let command = LeaseCommand::Get {
            name: valid(LeaseName::new(name))?,
        };
        let answer = self.ask(&command, Repeat::Safely, GetReply::from_reply).await?;
        Ok(answer.lease)
    }

    /// One page of the leases whose names begin with `prefix`: from the beginning, or from where the last page ended.
    /// Without a count the store chooses the size.
    ///
    /// # Errors
    /// [`RequestError`]; this only reads.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn list(
        &self,
        prefix: impl AsRef<[u8]>,
        cursor: Option<ListCursor>,
        count: Option<u64>,
    ) -> Result<ListReply, RequestError> {
        let prefix = SharedBytes::from(prefix.as_ref());
        let command = LeaseCommand::List(ListCommand {
            prefix,
            cursor,
            count,
        });
        self.ask(&command, Repeat::Safely, ListReply::from_reply).await
    }

    /// What happened to a name of late, the newest first, as the answering node remembers it.
    ///
    /// # Errors
    /// [`RequestError`]; this only reads.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn history(
        &self,
        name: impl AsRef<[u8]>,
        count: Option<u64>,
    ) -> Result<Vec<HistoryEntry>, RequestError> {
        let command = LeaseCommand::History {
            name: valid(LeaseName::new(name))?,
            count,
        };
        let answer = self
            .ask(&command, Repeat::Safely, HistoryReply::from_reply)
            .await?;
        Ok(answer.events)
    }

    /// The token of a lease that `owner` took by a plain Redis `SET`; `None` if it does not hold it.
    ///
    /// # Errors
    /// [`RequestError`]; this only reads.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn token(
        &self,
        name: impl AsRef<[u8]>,
        owner: &OwnerId,
    ) -> Result<Option<FenceToken>, RequestError> {
        let command = LeaseCommand::Token {
            name: valid(LeaseName::new(name))?,
            owner: owner.clone(),
        };
        let answer = self.ask(&command, Repeat::Safely, TokenReply::from_reply).await?;
        Ok(answer.token)
    }

    /// Ends a lease against its holder's will, with a reason for the holder to see; the token of the grant that
    /// ended, `None` if nobody held it.
    ///
    /// This is for operators. It ends exclusion at once: the old holder works on until it learns of it, and only its
    /// token stops its writes. A lost answer is not followed by another attempt, which could hit the next holder.
    ///
    /// # Errors
    /// [`RequestError`], which says whether the lease may have been ended.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped, the lease may or may not be ended.
    pub async fn force(
        &self,
        name: impl AsRef<[u8]>,
        reason: impl AsRef<[u8]>,
    ) -> Result<Option<FenceToken>, RequestError> {
        let reason = valid_reason(reason.as_ref())?;
        let command = LeaseCommand::Force {
            name: valid(LeaseName::new(name))?,
            reason,
        };
        match self
            .ask(&command, Repeat::IfNotApplied, ForceReply::from_reply)
            .await?
        {
            ForceReply::Released { token } => Ok(Some(token)),
            ForceReply::NotHeld => Ok(None),
        }
    }

    /// Gives an acquire up that was made under a known request id ([`LeaseRequest::request_id`]): ends its wait, or
    /// its lease. It is never granted afterwards.
    ///
    /// # Errors
    /// [`RequestError`], which says whether the request may have been given up.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped, it may or may not be done. Repeating it is safe.
    pub async fn cancel(
        &self,
        name: impl AsRef<[u8]>,
        owner: &OwnerId,
        request: &RequestId,
    ) -> Result<CancelReply, RequestError> {
        let command = LeaseCommand::Cancel {
            name: valid(LeaseName::new(name))?,
            owner: owner.clone(),
            request: request.clone(),
        };
        self.ask(&command, Repeat::Safely, CancelReply::from_reply).await
    }

    /// Waits until the releases of dropped leases and the acquires that were given up are done, at most for `limit`.
    /// Call it before a process ends; what is not done by then ends with its time to live.
    ///
    /// # Cancel safety
    /// Cancel safe: the work goes on.
    pub async fn settle(&self, limit: Duration) {
        self.core.errands.settle(limit).await;
    }

    pub(crate) async fn reach(&self) -> Result<(), ConnectError> {
        let reached = self.core.caller.transport.reach().await;
        reached.map_err(|source| ConnectError::Unreachable { source })
    }

    async fn ask<R>(&self, command: &LeaseCommand, repeat: Repeat, read: Read<R>) -> Result<R, RequestError> {
        match self.core.caller.ask(command, repeat, read).await {
            Ok(understood) => Ok(understood.answer),
            Err(failure) => Err(request_error(failure)),
        }
    }
}

impl fmt::Debug for FenceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceClient")
            .field("owner", self.owner())
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}

fn request_error(failure: Failure) -> RequestError {
    let Failure {
        error,
        may_have_applied,
    } = failure;
    match error.refusal() {
        Some(reply) if !may_have_applied => RequestError::Refused { reply: reply.clone() },
        _ => RequestError::Failed {
            source: error,
            may_have_applied,
        },
    }
}

fn valid<T>(value: Result<T, InvalidValue>) -> Result<T, RequestError> {
    value.map_err(|invalid| RequestError::Invalid { invalid })
}

fn valid_reason(reason: &[u8]) -> Result<SharedBytes, RequestError> {
    if reason.len() > REASON_BYTES_MAX {
        let invalid = InvalidValue::Length {
            what: "reason",
            min: 0,
            max: REASON_BYTES_MAX,
            len: reason.len(),
        };
        return Err(RequestError::Invalid { invalid });
    }
    Ok(SharedBytes::from(reason))
}
