//! Acquiring a lease: one request id over all attempts, and nothing left behind when it is given up.

use std::sync::Arc;
use std::time::Duration;

use lease_core::limits::WAIT_MS_MAX;
use lease_core::wire::{AcquireCommand, AcquireReply, LeaseCommand};
use lease_core::{Fence, FenceToken, InvalidValue, LeaseName, Metadata, OwnerId, RequestId, Ttl};
use tokio::time::Instant;

use crate::caller::{Attempts, Failure, Repeat};
use crate::client::Core;
use crate::clock::{Moment, timer_now};
use crate::error::{AcquireError, Holder};
use crate::hold::{Feeding, Hold, Terms};
use crate::lease::Lease;
use crate::random::random_name;
use crate::transport::{Lane, Request};
use crate::unavailable::Authority;
use crate::watchdog::Caution;

/// A wait without an answer for this long asks again over a new connection, in the same place of the queue: the
/// connection may be dead without a word. Below the time that most middle boxes keep a silent connection.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A lease to be acquired.
#[derive(Debug, Clone)]
#[must_use = "nothing is acquired yet"]
pub struct LeaseRequest {
    core: Arc<Core>,
    name: Result<LeaseName, InvalidValue>,
    owner: OwnerId,
    ttl: Duration,
    wait: Duration,
    request: Option<RequestId>,
    metadata: Option<Vec<u8>>,
    maximum_hold: Option<Duration>,
    fed: Option<Duration>,
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
        let acquired = Attempt::of(self)?.run().await;
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

/// One acquire under way. Dropped before it has an answer, it is given up.
struct Attempt {
    core: Arc<Core>,
    name: LeaseName,
    owner: OwnerId,
    request: RequestId,
    metadata: Option<Metadata>,
    ttl: Ttl,
    caution: Caution,
    wait: Duration,
    maximum_hold: Option<Duration>,
    fed: Option<Duration>,
    owed: Owed,
}

/// Whether something of this request may stand in the store that nobody would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    Nothing,
    Cancel,
}

/// A grant as it was answered.
struct Grant {
    token: FenceToken,
    remaining: Duration,
    waited: Duration,
    sent: Moment,
}

impl Attempt {
    fn of(asked: LeaseRequest) -> Result<Self, AcquireError> {
        let invalid = |invalid| AcquireError::Invalid { invalid };
        let name = asked.name.map_err(invalid)?;
        let metadata = asked.metadata.map(Metadata::new).transpose().map_err(invalid)?;
        let (ttl, caution) = asked.core.settings.caution(asked.ttl)?;
        let request = match asked.request {
            Some(request) => request,
            None => RequestId::new(random_name().map_err(|_| AcquireError::NoRandomness)?).map_err(invalid)?,
        };
        Ok(Self {
            core: asked.core,
            name,
            owner: asked.owner,
            request,
            metadata,
            ttl,
            caution,
            wait: asked.wait,
            maximum_hold: asked.maximum_hold,
            fed: asked.fed,
            owed: Owed::Nothing,
        })
    }

    async fn run(mut self) -> Result<Lease, AcquireError> {
        let settings = &self.core.settings;
        let mut attempts = Attempts::new(settings.operation_timeout, settings.backoff);
        let wait_until = timer_now().checked_add(self.wait);
        loop {
            let wait = left_until(wait_until);
            let (lane, request) = self.request(wait, attempts.left());
            self.owed = Owed::Cancel;
            let asked_at = timer_now();
            let error = match self.core.caller.once(lane, request, AcquireReply::from_reply).await {
                Ok((reply, sent)) => return self.on_reply(reply, sent).await,
                Err(error) => error,
            };
            if lane == Lane::Wait && asked_at.elapsed() >= settings.request_timeout {
                // It stood in the queue, so far as anybody knows. An outage counts from here.
                attempts.restart();
            }
            if let Err(failure) = attempts.failed(error, Repeat::Safely).await {
                return Err(self.on_failure(failure));
            }
        }
    }

    /// The next request: what is left of the wait, with the patience for it.
    fn request(&self, wait: Duration, left: Duration) -> (Lane, Request) {
        let timeout = self.core.settings.request_timeout;
        let (lane, patience) = if wait.is_zero() {
            (Lane::Control, timeout)
        } else if wait > ASK_AGAIN_AFTER {
            (Lane::Wait, ASK_AGAIN_AFTER)
        } else {
            (Lane::Wait, wait.saturating_add(timeout))
        };
        let wait_ms = wait.as_nanos().div_ceil(1_000_000);
        let command = LeaseCommand::Acquire(AcquireCommand {
            name: self.name.clone(),
            owner: self.owner.clone(),
            ttl: self.ttl,
            wait_ms: u64::try_from(wait_ms).unwrap_or(WAIT_MS_MAX).min(WAIT_MS_MAX),
            request: Some(self.request.clone()),
            metadata: self.metadata.clone(),
        });
        let patience = if lane == Lane::Control { patience.min(left) } else { patience };
        (lane, Request::new(command, patience))
    }

    async fn on_reply(mut self, reply: AcquireReply, sent: Moment) -> Result<Lease, AcquireError> {
        match reply {
            AcquireReply::Granted { token, remaining_ms, waited_ms } => {
                let grant = Grant {
                    token,
                    // Without a deadline in the store the lease is renewed as it was asked for.
                    remaining: remaining_ms.map_or(self.ttl.as_duration(), Duration::from_millis),
                    waited: Duration::from_millis(waited_ms),
                    sent,
                };
                self.on_grant(grant).await
            }
            AcquireReply::Held { token, remaining_ms, owner, held_for_ms, waiters } => {
                self.owed = Owed::Nothing;
                let holder = Holder {
                    owner,
                    token,
                    remaining: remaining_ms.map(Duration::from_millis),
                    held_for: Duration::from_millis(held_for_ms),
                    waiters,
                };
                Err(AcquireError::Held { holder })
            }
            AcquireReply::Ended { token, reason } => {
                self.owed = Owed::Nothing;
                Err(AcquireError::Ended { token, reason })
            }
        }
    }

    async fn on_grant(mut self, grant: Grant) -> Result<Lease, AcquireError> {
        let Grant { token, remaining, waited, sent } = grant;
        let fence = Fence::new(self.name.clone(), token);
        let window = self.caution.granted(sent, waited, remaining);
        let now = self.core.clock.now();
        if window.deadline <= now {
            self.owed = Owed::Nothing;
            self.core.errands.release(fence);
            return Err(AcquireError::AnsweredTooLate { token });
        }
        let maximum_until = self.maximum_hold.map_or(Moment::NEVER, |hold| now.after(hold));
        let feeding = self.fed.map(|interval| Feeding { interval, last: now });
        let terms = Terms { deadline: window.deadline, maximum_until, feeding };
        let standing = (self.core.clock.clone(), terms);
        let hold = Hold::new(self.core.next_hold(), fence, self.owner.clone(), self.ttl, standing);
        let hold = Arc::new(hold);
        let watched = self.core.watchdog.watch(Arc::clone(&hold), self.caution, window, maximum_until);
        if let Err(source) = watched.await {
            return Err(AcquireError::Unknown { source });
        }
        self.owed = Owed::Nothing;
        Ok(Lease::new(Arc::clone(&self.core), hold))
    }

    fn on_failure(&mut self, failure: Failure) -> AcquireError {
        let Failure { error, may_have_applied } = failure;
        if may_have_applied {
            return AcquireError::Unknown { source: error };
        }
        self.owed = Owed::Nothing;
        match error.refusal() {
            Some(reply) => AcquireError::Refused { reply: reply.clone() },
            None => AcquireError::Unavailable { source: error },
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.owed == Owed::Cancel {
            let (name, owner, request) = (self.name.clone(), self.owner.clone(), self.request.clone());
            self.core.errands.cancel(name, owner, request);
        }
    }
}

/// `None` is a wait beyond any clock.
fn left_until(until: Option<Instant>) -> Duration {
    until.map_or(Duration::MAX, |until| until.saturating_duration_since(timer_now()))
}
