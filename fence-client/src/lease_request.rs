use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lease_core::{InvalidValue, LeaseName, OwnerId, RequestId};

use crate::acquire::Acquiring;
use crate::client::Core;
use crate::error::AcquireError;
use crate::lease::Lease;
use crate::unavailable::Authority;

/// A lease to be acquired.
#[derive(Clone)]
#[must_use = "nothing is acquired yet"]
pub struct LeaseRequest {
    pub(crate) core: Arc<Core>,
    pub(crate) name: Result<LeaseName, InvalidValue>,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    pub(crate) request: Option<RequestId>,
    pub(crate) metadata: Option<Vec<u8>>,
    pub(crate) maximum_hold: Option<Duration>,
    pub(crate) fed: Option<Duration>,
}

impl LeaseRequest {
    pub(crate) fn new(core: Arc<Core>, name: Result<LeaseName, InvalidValue>) -> Self {
        let (owner, ttl) = (core.owner.clone(), core.settings.default_ttl);
        Self {
            core,
            name,
            owner,
            ttl,
            wait: Duration::ZERO,
            request: None,
            metadata: None,
            maximum_hold: None,
            fed: None,
        }
    }

    /// Who asks. The client's own owner by default.
    pub fn owner(mut self, owner: OwnerId) -> Self {
        self.owner = owner;
        self
    }

    /// How long the lease lasts after the last renewal, in whole milliseconds. It is renewed after a third of it.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long to stand in the queue while somebody else holds the lease. Zero, the default, answers at once.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// What others shall see beside the lease: a host, a build, a trace id.
    pub fn metadata(mut self, metadata: impl Into<Vec<u8>>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// The name of this request, so that a retry of it gets the same lease, and never a second one. By default each
    /// acquire draws a random one, which holds over its own attempts.
    pub fn request_id(mut self, request: RequestId) -> Self {
        self.request = Some(request);
        self
    }

    /// How long to hold the lease at the most: then the handle is lost, and the lease ends with its time to live.
    pub const fn maximum_hold(mut self, hold: Duration) -> Self {
        self.maximum_hold = Some(hold);
        self
    }

    /// Renew the lease only as long as [`Lease::feed`] is called at least this often.
    pub const fn fed(mut self, interval: Duration) -> Self {
        self.fed = Some(interval);
        self
    }

    /// Acquires the lease if nobody holds it, without waiting.
    ///
    /// # Errors
    /// As [`LeaseRequest::acquire`].
    ///
    /// # Cancel safety
    /// As [`LeaseRequest::acquire`].
    pub async fn try_acquire(self) -> Result<Lease, AcquireError> {
        self.wait(Duration::ZERO).acquire().await
    }

    /// Acquires the lease.
    ///
    /// The same client asking twice is two askers: a second acquire of a name waits for the first, also within one
    /// process. To work under a lease that is held already, take another handle on it: [`Lease::reenter`].
    ///
    /// # Errors
    /// [`AcquireError`]. After [`AcquireError::Unknown`] the lease may have been granted: it is given up in the
    /// background.
    ///
    /// # Cancel safety
    /// Dropped, the request is given up: in the background its wait is ended, or its grant released. Should that fail,
    /// a grant ends with its time to live.
    pub async fn acquire(self) -> Result<Lease, AcquireError> {
        let core = Arc::clone(&self.core);
        let acquired = Acquiring::of(self)?.run().await;
        if !acquired.as_ref().is_err_and(AcquireError::is_unavailable) {
            core.outage.over();
        }
        acquired
    }

    /// Acquires the lease, or gives leave to work without one if the store is unavailable and the client's
    /// [`crate::UnavailablePolicy`] says so. A lease that somebody else holds is an error in any case.
    ///
    /// # Errors
    /// As [`LeaseRequest::acquire`].
    ///
    /// # Cancel safety
    /// As [`LeaseRequest::acquire`].
    pub async fn acquire_or_unfenced(self) -> Result<Authority, AcquireError> {
        let (core, name) = (Arc::clone(&self.core), self.name.clone());
        let error = match self.acquire().await {
            Ok(lease) => return Ok(Authority::Fenced(lease)),
            Err(error) => error,
        };
        match name {
            Ok(name) if error.is_unavailable() => match core.outage.permit(&name) {
                Some(permit) => Ok(Authority::Unfenced(permit)),
                None => Err(error),
            },
            _ => Err(error),
        }
    }
}

impl fmt::Debug for LeaseRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseRequest")
            .field("name", &self.name)
            .field("owner", &self.owner)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
