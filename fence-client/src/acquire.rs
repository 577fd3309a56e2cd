//! Acquiring a lease: one request id over all attempts, and nothing left behind when it is given up.

use std::sync::Arc;
use std::time::Duration;

use lease_core::limits::WAIT_MS_MAX;
use lease_core::wire::{AcquireCommand, AcquireReply, LeaseCommand};
use lease_core::{Fence, FenceToken, LeaseName, Metadata, OwnerId, RequestId, Ttl};
use tokio::time::Instant;

use crate::caller::{Attempts, Failure, Repeat};
use crate::client::Core;
use crate::clock::{Moment, timer_now};
use crate::error::{AcquireError, Holder};
use crate::hold::Hold;
use crate::lease::Lease;
use crate::lease_request::LeaseRequest;
use crate::random::random_name;
use crate::terms::{Feeding, Terms};
use crate::transport::{Lane, Request};
use crate::watchdog::Caution;

/// A wait without an answer for this long asks again over a new connection, in the same place of the queue: the
/// connection may be dead without a word. Below the time that most middle boxes keep a silent connection.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// One acquire under way. Dropped before it has an answer, it is given up.
pub(crate) struct Acquiring {
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

impl Acquiring {
    /// Checks what is asked for, before anything is sent.
    pub(crate) fn of(asked: LeaseRequest) -> Result<Self, AcquireError> {
        let invalid = |invalid| AcquireError::Invalid { invalid };
        let name = asked.name.map_err(invalid)?;
        let metadata = asked.metadata.map(Metadata::new).transpose().map_err(invalid)?;
        let (ttl, caution) = asked.core.settings.caution(asked.ttl)?;
        let request = match asked.request {
            Some(request) => request,
            None => {
                RequestId::new(random_name().map_err(|_| AcquireError::NoRandomness)?).map_err(invalid)?
            }
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

    /// Asks until there is an answer, or the time for it is over.
    pub(crate) async fn run(mut self) -> Result<Lease, AcquireError> {
        let settings = &self.core.settings;
        let mut attempts = Attempts::new(settings.operation_timeout, settings.backoff);
        let wait_until = timer_now().checked_add(self.wait);
        loop {
            let wait = left_until(wait_until);
            let (lane, request) = self.request(wait, attempts.left());
            self.owed = Owed::Cancel;
            let asked_at = timer_now();
            let error = match self
                .core
                .caller
                .once(lane, request, AcquireReply::from_reply)
                .await
            {
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
        let patience = if lane == Lane::Control {
            patience.min(left)
        } else {
            patience
        };
        (lane, Request::new(command, patience))
    }

    async fn on_reply(mut self, reply: AcquireReply, sent: Moment) -> Result<Lease, AcquireError> {
        match reply {
            AcquireReply::Granted {
                token,
                remaining_ms,
                waited_ms,
            } => {
                let grant = Grant {
                    token,
                    // Without a deadline in the store the lease is renewed as it was asked for.
                    remaining: remaining_ms.map_or(self.ttl.as_duration(), Duration::from_millis),
                    waited: Duration::from_millis(waited_ms),
                    sent,
                };
                self.on_grant(grant).await
            }
            AcquireReply::Held {
                token,
                remaining_ms,
                owner,
                held_for_ms,
                waiters,
            } => {
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
        let Grant {
            token,
            remaining,
            waited,
            sent,
        } = grant;
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
        let terms = Terms {
            deadline: window.deadline,
            maximum_until,
            feeding,
        };
        let standing = (self.core.clock.clone(), terms);
        let hold = Hold::new(
            self.core.next_hold(),
            fence,
            self.owner.clone(),
            self.ttl,
            standing,
        );
        let hold = Arc::new(hold);
        let watched = self
            .core
            .watchdog
            .watch(Arc::clone(&hold), self.caution, window, maximum_until);
        if let Err(source) = watched.await {
            return Err(AcquireError::Unknown { source });
        }
        self.owed = Owed::Nothing;
        Ok(Lease::new(Arc::clone(&self.core), hold))
    }

    fn on_failure(&mut self, failure: Failure) -> AcquireError {
        let Failure {
            error,
            may_have_applied,
        } = failure;
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

impl Drop for Acquiring {
    fn drop(&mut self) {
        if self.owed == Owed::Cancel {
            let (name, owner, request) = (self.name.clone(), self.owner.clone(), self.request.clone());
            self.core.errands.cancel(name, owner, request);
        }
    }
}

/// `None` is a wait beyond any clock.
fn left_until(until: Option<Instant>) -> Duration {
    until.map_or(Duration::MAX, |until| {
        until.saturating_duration_since(timer_now())
    })
}
