use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName, OwnerId};
use tokio::sync::oneshot;
use tracing::info_span;

use crate::call_error::CallError;
use crate::client::Core;
use crate::error::ReleaseError;
use crate::hold::{Hold, Left, Phase};
use crate::loss::{LossReason, Lost};
use crate::release::{Part, Released, Releasing};
use crate::tasks;

/// A handle on a lease that was acquired. It is renewed in the background until it is released, lost, or dropped.
///
/// The token never changes: a handle that is lost still shows the token that it had, and never its successor's.
///
/// Dropping the last handle of a lease releases it in the background, best effort; [`Lease::release`] says what came
/// of it.
#[must_use = "a lease that is dropped is released"]
pub struct Lease {
    core: Arc<Core>,
    hold: Arc<Hold>,
    part: Arc<Mutex<Part>>,
}

impl Lease {
    pub(crate) fn new(core: Arc<Core>, hold: Arc<Hold>) -> Self {
        Self {
            core,
            hold,
            part: Arc::new(Mutex::new(Part::Open)),
        }
    }

    /// The fencing token of this grant.
    #[must_use]
    pub fn token(&self) -> FenceToken {
        self.hold.fence.token
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.hold.fence.resource
    }

    /// What a writer shows to the resource: name and token.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.hold.fence.clone()
    }

    /// Who holds it, as the store has it.
    #[must_use]
    pub fn owner(&self) -> &OwnerId {
        &self.hold.owner
    }

    /// For how long the lease certainly stands from now on, unless it is renewed; zero if it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold.check().unwrap_or_default()
    }

    /// Whether the lease stands, by a clock that counts suspend. It may be over the moment after: only the token keeps
    /// a late write out.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.hold.check().is_ok()
    }

    /// As [`Lease::is_valid`], with the reason.
    ///
    /// # Errors
    /// [`Lost`] if the lease does not stand.
    pub fn check(&self) -> Result<(), Lost> {
        self.hold
            .check()
            .map(drop)
            .map_err(|reason| self.lost_for(reason))
    }

    /// Waits until the lease is over, and says why.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> LossReason {
        self.hold.over().await
    }

    /// Does `work` under the lease. The lease is checked each time before the work goes on, and the work is dropped
    /// at the loss.
    ///
    /// # Errors
    /// [`Lost`] if the lease was lost first. The work may have been done in part.
    ///
    /// # Cancel safety
    /// Dropped, the work is dropped; the lease stands.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let mut work = pin!(work);
        let mut lost = pin!(self.hold.over());
        std::future::poll_fn(|context| {
            if let Err(reason) = self.hold.check() {
                return Poll::Ready(Err(self.lost_for(reason)));
            }
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            lost.as_mut()
                .poll(context)
                .map(|reason| Err(self.lost_for(reason)))
        })
        .await
    }

    /// From now on the lease is renewed only as long as [`Lease::feed`] is called at least this often: renewal by
    /// itself proves that the process lives, and not that the work advances. Unfed, the lease is not released; it
    /// ends at its deadline.
    pub fn fed(&self, interval: Duration) {
        self.hold.set_feeding(interval);
    }

    /// The work shows progress.
    pub fn feed(&self) {
        self.hold.feed();
    }

    /// Why the last renewal failed; `None` if it did not. A revoked password shows here before the lease is lost.
    #[must_use]
    pub fn renewal_failure(&self) -> Option<Arc<CallError>> {
        self.hold.renewal_failure()
    }

    /// Another handle on the same lease, with the same token, for work within work. The lease is released with its
    /// last handle.
    ///
    /// # Errors
    /// [`Lost`] if the lease does not stand.
    pub fn reenter(&self) -> Result<Self, Lost> {
        self.hold.enter().map_err(|reason| self.lost_for(reason))?;
        Ok(Self::new(Arc::clone(&self.core), Arc::clone(&self.hold)))
    }

    /// Releases the lease, with several attempts if need be, within the client's time for one operation.
    ///
    /// From the call on the lease is not renewed, and the handle is not valid. A handle that shares the lease with
    /// others gives up its part only. Calling this again is safe: it ends no later hold.
    ///
    /// # Errors
    /// [`ReleaseError`]. After `Unavailable` and `Refused` nothing was applied, and the handle is valid and renewed as
    /// before. After `Unknown` the lease may have been released: the handle stays invalid.
    ///
    /// # Cancel safety
    /// Dropped, the release goes on in the background.
    pub async fn release(&self) -> Result<Released, ReleaseError> {
        self.release_within(self.core.caller.operation_timeout).await
    }

    /// As [`Lease::release`], within `budget`. Without any time left nothing is sent.
    ///
    /// # Errors
    /// As [`Lease::release`].
    ///
    /// # Cancel safety
    /// As [`Lease::release`].
    pub async fn release_within(&self, budget: Duration) -> Result<Released, ReleaseError> {
        if budget.is_zero() {
            let source = CallError::NotSent { patience: budget };
            return Err(ReleaseError::Unavailable { source });
        }
        loop {
            match self.begin_release() {
                Begun::Last => return self.finish_release(budget).await,
                Begun::Shared => return Ok(Released::Shared),
                Begun::UnderWay => {
                    self.hold
                        .wait_for_phase(|phase| (*phase != Phase::Releasing).then_some(()))
                        .await;
                }
                Begun::Over => return self.already_over(),
            }
        }
    }

    fn begin_release(&self) -> Begun {
        let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        match *part {
            Part::Open => {}
            Part::Releasing => return Begun::UnderWay,
            Part::Gone if self.hold.phase() == Phase::Held => return Begun::Shared,
            Part::Gone => return Begun::Over,
        }
        let (next, begun) = match self.hold.leave() {
            Left::Shared => (Part::Gone, Begun::Shared),
            Left::Last => (Part::Releasing, Begun::Last),
            Left::Over => (Part::Gone, Begun::Over),
        };
        *part = next;
        drop(part);
        if begun == Begun::Over && self.hold.may_stand_in_store() {
            self.core.errands.release(self.fence());
        }
        begun
    }

    /// Sends the release, in a task of its own, so that it is not lost with its caller.
    async fn finish_release(&self, budget: Duration) -> Result<Released, ReleaseError> {
        let (reply, answer) = oneshot::channel();
        let releasing = Releasing {
            caller: self.core.caller.clone(),
            watchdog: self.core.watchdog.clone(),
            hold: Arc::clone(&self.hold),
            part: Arc::clone(&self.part),
            budget,
        };
        tasks::spawn(info_span!("release", lease = %self.hold.fence), async move {
            let released = releasing.run().await;
            let _ = reply.send(released);
        });
        answer.await.unwrap_or(Err(ReleaseError::Unknown {
            source: CallError::Stopped,
        }))
    }

    fn already_over(&self) -> Result<Released, ReleaseError> {
        match self.hold.phase() {
            Phase::Lost(reason) => Err(ReleaseError::Lost {
                source: self.lost_for(reason),
            }),
            Phase::Held | Phase::Releasing | Phase::Released | Phase::ReleaseUnknown => Ok(Released::Before),
        }
    }

    fn lost_for(&self, reason: LossReason) -> Lost {
        Lost::new(self.fence(), reason)
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.hold).finish()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let part = {
            let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *part, Part::Gone)
        };
        if part == Part::Gone {
            return;
        }
        match self.hold.drop_handle() {
            Left::Last => self.core.errands.release(self.fence()),
            Left::Shared => return,
            Left::Over => {}
        }
        self.core.watchdog.forget(self.hold.id);
    }
}

/// How a release begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// The lease is to be released.
    Last,
    /// Others hold on to it.
    Shared,
    /// Another call is at it.
    UnderWay,
    /// There is nothing to release.
    Over,
}
