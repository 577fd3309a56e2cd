//! The state of one lease, as all its handles and the watchdog share it.
//!
//! Every change happens under one short lock, so that of a loss and a late answer exactly one comes first. A lease
//! that was lost never stands again.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lease_core::wire::LossReason as EndReason;
use lease_core::{Fence, OwnerId, Ttl};
use tokio::sync::watch;

use crate::call_error::CallError;
use crate::clock::{Clock, Moment};
use crate::loss::LossReason;
use crate::terms::{Feeding, Terms};
use crate::watchdog::{HoldId, Standing};

/// Where a lease stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It stands, until the deadline says otherwise.
    Held,
    /// Its release is on the way.
    Releasing,
    /// It was released.
    Released,
    /// Its release was sent, and nobody knows whether it was done: it may be another's by now.
    ReleaseUnknown,
    /// It is lost.
    Lost(LossReason),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// What a release under way comes back to if it fails for certain: a release of unknown outcome may have come
    /// before it.
    before_release: Phase,
    terms: Terms,
    handles: usize,
}

/// What became of a confirmed renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The lease stands until the new deadline.
    Yes,
    /// It was lost before the answer came.
    TooLate,
    /// Its release was asked for before the answer came.
    NotWanted,
}

/// What giving up one handle means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Other handles hold on to the lease.
    Shared,
    /// It was the last handle, and the lease may stand in the store: release it.
    Last,
    /// Nothing is left to do.
    Over,
}

/// One lease.
pub(crate) struct Hold {
    pub(crate) id: HoldId,
    pub(crate) fence: Fence,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    clock: Clock,
    state: watch::Sender<State>,
    renewal_failure: Mutex<Option<Arc<CallError>>>,
}

impl Hold {
    pub(crate) fn new(id: HoldId, fence: Fence, owner: OwnerId, ttl: Ttl, standing: (Clock, Terms)) -> Self {
        let (clock, terms) = standing;
        let state = State {
            phase: Phase::Held,
            before_release: Phase::Held,
            terms,
            handles: 1,
        };
        Self {
            id,
            fence,
            owner,
            ttl,
            clock,
            state: watch::Sender::new(state),
            renewal_failure: Mutex::new(None),
        }
    }

    /// How long the lease certainly stands from now on, or why it does not. Looks at the clock, and raises the loss
    /// if the deadline has passed.
    pub(crate) fn check(&self) -> Result<Duration, LossReason> {
        let now = self.clock.now();
        {
            let state = self.state.borrow();
            match &state.phase {
                Phase::Held if state.terms.over_at(now).is_none() => return Ok(now.until(state.terms.end())),
                Phase::Held => {}
                Phase::Releasing | Phase::Released | Phase::ReleaseUnknown => {
                    return Err(LossReason::Released);
                }
                Phase::Lost(reason) => return Err(reason.clone()),
            }
        }
        self.expire();
        match &self.state.borrow().phase {
            Phase::Lost(reason) => Err(reason.clone()),
            Phase::Held | Phase::Releasing | Phase::Released | Phase::ReleaseUnknown => {
                Err(LossReason::Released)
            }
        }
    }

    /// Raises the loss if the deadline has passed.
    pub(crate) fn expire(&self) {
        let now = self.clock.now();
        self.lose_if(|state| state.terms.over_at(now));
    }

    /// Raises a loss that the store reports.
    pub(crate) fn ended(&self, reason: EndReason) {
        self.lose_if(|_| Some(LossReason::Ended { reason }));
    }

    fn lose_if(&self, reason: impl FnOnce(&State) -> Option<LossReason>) {
        self.state.send_if_modified(|state| {
            if state.phase != Phase::Held {
                return false;
            }
            let Some(reason) = reason(state) else {
                return false;
            };
            tracing::warn!(lease = %self.fence, %reason, "lease lost");
            state.phase = Phase::Lost(reason);
            true
        });
    }

    /// Takes a confirmed renewal over, unless it comes too late.
    pub(crate) fn extend(&self, deadline: Moment) -> Extended {
        let now = self.clock.now();
        let mut extended = Extended::NotWanted;
        self.state.send_if_modified(|state| {
            match state.phase {
                Phase::Held => {}
                Phase::Lost(_) => {
                    extended = Extended::TooLate;
                    return false;
                }
                Phase::Releasing | Phase::Released | Phase::ReleaseUnknown => return false,
            }
            // First what was promised so far: an answer after that deadline revives nothing.
            let before = state.terms.over_at(now);
            state.terms.deadline = deadline;
            match before.or_else(|| state.terms.over_at(now)) {
                Some(reason) => {
                    tracing::warn!(lease = %self.fence, %reason, "lease lost before its renewal was confirmed");
                    state.phase = Phase::Lost(reason);
                    extended = Extended::TooLate;
                    true
                }
                None => {
                    extended = Extended::Yes;
                    false
                }
            }
        });
        extended
    }

    /// Whether the lease is to be renewed now.
    pub(crate) fn standing(&self) -> Standing {
        let now = self.clock.now();
        let state = self.state.borrow();
        let hungry = state.terms.feeding.is_some_and(|feeding| feeding.is_hungry(now));
        match state.phase {
            Phase::Held if hungry => Standing::Withheld,
            Phase::Held => Standing::Wanted,
            Phase::Releasing => Standing::Withheld,
            Phase::Released | Phase::ReleaseUnknown | Phase::Lost(_) => Standing::Over,
        }
    }

    /// Whether a renewal may leave at this very moment: the lease stands, and nobody has asked for its release.
    pub(crate) fn may_be_renewed(&self) -> bool {
        self.standing() == Standing::Wanted && self.check().is_ok()
    }

    /// From now on the work must show progress at least this often.
    pub(crate) fn set_feeding(&self, interval: Duration) {
        let last = self.clock.now();
        self.state.send_if_modified(|state| {
            state.terms.feeding = Some(Feeding { interval, last });
            false
        });
    }

    /// The work shows progress.
    pub(crate) fn feed(&self) {
        let now = self.clock.now();
        self.state.send_if_modified(|state| {
            if let Some(feeding) = &mut state.terms.feeding {
                feeding.last = now;
            }
            false
        });
    }

    /// One more handle, if the lease stands.
    pub(crate) fn enter(&self) -> Result<(), LossReason> {
        self.check()?;
        let mut entered = false;
        self.state.send_if_modified(|state| {
            if state.phase == Phase::Held {
                state.handles = state.handles.saturating_add(1);
                entered = true;
            }
            false
        });
        if entered {
            Ok(())
        } else {
            Err(self.check().err().unwrap_or(LossReason::Released))
        }
    }

    /// One handle is to be released; of the last one, the release begins. The last handle counts until it is dropped,
    /// since its release may fail.
    pub(crate) fn leave(&self) -> Left {
        let mut left = Left::Over;
        self.state.send_if_modified(|state| {
            if state.handles > 1 {
                state.handles = state.handles.saturating_sub(1);
                left = Left::Shared;
                return false;
            }
            match state.phase {
                Phase::Held | Phase::ReleaseUnknown => {
                    left = Left::Last;
                    state.before_release = std::mem::replace(&mut state.phase, Phase::Releasing);
                    true
                }
                Phase::Releasing | Phase::Released | Phase::Lost(_) => false,
            }
        });
        left
    }

    /// One handle is dropped.
    pub(crate) fn drop_handle(&self) -> Left {
        let mut left = Left::Shared;
        self.state.send_if_modified(|state| {
            state.handles = state.handles.saturating_sub(1);
            if state.handles > 0 {
                return false;
            }
            match &state.phase {
                Phase::Held | Phase::ReleaseUnknown => {
                    left = Left::Last;
                    state.phase = Phase::Released;
                    true
                }
                // A release that is on its way goes on without the handle.
                Phase::Releasing | Phase::Released | Phase::Lost(LossReason::Ended { .. }) => {
                    left = Left::Over;
                    false
                }
                // The store counts the lease a little longer than the client does.
                Phase::Lost(_) => {
                    left = Left::Last;
                    false
                }
            }
        });
        left
    }

    /// The release failed, and certainly nothing was done: the lease is as before, if anybody still wants it.
    pub(crate) fn release_failed(&self) {
        self.state.send_if_modified(|state| {
            let ours = state.phase == Phase::Releasing;
            if ours {
                state.phase = match state.handles {
                    0 => Phase::Released,
                    _ => state.before_release.clone(),
                };
            }
            ours
        });
        self.expire();
    }

    /// Whether the release under way follows one of unknown outcome.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.state.borrow().before_release == Phase::ReleaseUnknown
    }

    /// The release was sent, and its outcome is not known.
    pub(crate) fn release_unknown(&self) {
        self.set_after_release(Phase::ReleaseUnknown);
    }

    /// The lease was released.
    pub(crate) fn released(&self) {
        self.set_after_release(Phase::Released);
    }

    /// The release found the lease over before.
    pub(crate) fn release_found(&self, reason: EndReason) {
        self.set_after_release(Phase::Lost(LossReason::Ended { reason }));
    }

    fn set_after_release(&self, phase: Phase) {
        self.state.send_if_modified(|state| {
            let ours = matches!(state.phase, Phase::Releasing | Phase::ReleaseUnknown);
            if ours {
                state.phase = phase;
            }
            ours
        });
    }

    /// Whether the lease was lost, as opposed to released.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Lost(_))
    }

    /// Whether the store may still count a lease that the client has given up.
    pub(crate) fn may_stand_in_store(&self) -> bool {
        match &self.state.borrow().phase {
            Phase::Lost(LossReason::Ended { .. }) => false,
            Phase::Lost(_) => true,
            Phase::Held | Phase::Releasing | Phase::Released | Phase::ReleaseUnknown => false,
        }
    }

    /// Where the lease stands, whatever the clock says.
    pub(crate) fn phase(&self) -> Phase {
        self.state.borrow().phase.clone()
    }

    /// Waits until the lease is over, and says why. A release that fails gives the lease back, so its end is waited
    /// for too.
    pub(crate) async fn over(&self) -> LossReason {
        if let Err(reason) = self.check()
            && self.phase() != Phase::Releasing
        {
            return reason;
        }
        self.wait_for_phase(|phase| match phase {
            Phase::Held | Phase::Releasing => None,
            Phase::Released | Phase::ReleaseUnknown => Some(LossReason::Released),
            Phase::Lost(reason) => Some(reason.clone()),
        })
        .await
    }

    /// Waits until `wanted` says something about the phase.
    pub(crate) async fn wait_for_phase<T>(&self, wanted: impl Fn(&Phase) -> Option<T>) -> T {
        let mut changes = self.state.subscribe();
        loop {
            if let Some(found) = wanted(&changes.borrow_and_update().phase) {
                return found;
            }
            if changes.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Keeps why the last renewal failed.
    pub(crate) fn set_renewal_failure(&self, failure: Option<Arc<CallError>>) {
        *self
            .renewal_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Why the last renewal failed; `None` if it did not.
    pub(crate) fn renewal_failure(&self) -> Option<Arc<CallError>> {
        self.renewal_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn set_deadline(&self, deadline: Moment) {
        self.state.send_if_modified(|state| {
            state.terms.deadline = deadline;
            false
        });
        self.expire();
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("fence", &self.fence)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
