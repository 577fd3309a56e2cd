//! One release, from its request to a known end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lease_core::wire::{LeaseCommand, LossReason as EndReason, ReleaseReply};

use crate::caller::{Caller, Earlier, Failure, Repeat};
use crate::error::ReleaseError;
use crate::hold::Hold;
use crate::loss::{LossReason, Lost};
use crate::watchdog::WatchdogHandle;

/// How a release went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Released {
    /// The lease is over by this call.
    Now,
    /// It had been released before.
    Before,
    /// The handle is given up; others still hold the lease.
    Shared,
}

/// One handle's part in its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It counts.
    Open,
    /// It was the last one, and the release is on its way.
    Releasing,
    /// It was given up.
    Gone,
}

/// A release on its way.
pub(crate) struct Releasing {
    pub(crate) caller: Caller,
    pub(crate) watchdog: WatchdogHandle,
    pub(crate) hold: Arc<Hold>,
    pub(crate) part: Arc<Mutex<Part>>,
    pub(crate) budget: Duration,
}

impl Releasing {
    pub(crate) async fn run(self) -> Result<Released, ReleaseError> {
        let fence = &self.hold.fence;
        let command = LeaseCommand::Release {
            name: fence.resource.clone(),
            token: fence.token,
        };
        let asked = self
            .caller
            .ask_within(&command, Repeat::Safely, ReleaseReply::from_reply, self.budget)
            .await;
        match asked {
            Ok(understood) => self.on_reply(understood.answer, understood.earlier),
            Err(failure) => self.on_failure(failure),
        }
    }

    fn on_reply(&self, reply: ReleaseReply, earlier: Earlier) -> Result<Released, ReleaseError> {
        self.set_part(Part::Gone);
        let released = match reply {
            ReleaseReply::Released => Ok(Released::Now),
            // By an attempt of ours whose answer was lost.
            ReleaseReply::Lost {
                reason: EndReason::Released,
            } => Ok(match earlier {
                Earlier::MayHaveApplied => Released::Now,
                Earlier::NotApplied => Released::Before,
            }),
            ReleaseReply::Lost { reason } => Err(reason),
        };
        let released = match released {
            Ok(released) => {
                self.hold.released();
                Ok(released)
            }
            Err(reason) => {
                self.hold.release_found(reason.clone());
                let source = Lost::new(self.hold.fence.clone(), LossReason::Ended { reason });
                Err(ReleaseError::Lost { source })
            }
        };
        self.watchdog.forget(self.hold.id);
        released
    }

    fn on_failure(&self, failure: Failure) -> Result<Released, ReleaseError> {
        let Failure {
            error,
            may_have_applied,
        } = failure;
        // Before the phase changes: whoever sees the change may begin anew.
        self.set_part(Part::Open);
        if may_have_applied || self.hold.is_in_doubt() {
            self.hold.release_unknown();
            self.watchdog.forget(self.hold.id);
            return Err(ReleaseError::Unknown { source: error });
        }
        self.hold.release_failed();
        Err(match error.refusal() {
            Some(reply) => ReleaseError::Refused { reply: reply.clone() },
            None => ReleaseError::Unavailable { source: error },
        })
    }

    /// A handle that was dropped meanwhile stays given up.
    fn set_part(&self, next: Part) {
        let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        if *part == Part::Releasing {
            *part = next;
        }
    }
}
