//! Until when a lease stands, and why it is over then. Pure: the time is an argument.

use std::time::Duration;

use crate::clock::Moment;
use crate::loss::LossReason;

/// Until when a lease stands, and on which conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// As of the last confirmed renewal.
    pub(crate) deadline: Moment,
    /// It is not held beyond this.
    pub(crate) maximum_until: Moment,
    /// How long the work may go without showing progress, and when it last did.
    pub(crate) feeding: Option<Feeding>,
}

/// The promise of the work to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Feeding {
    pub(crate) interval: Duration,
    pub(crate) last: Moment,
}

impl Feeding {
    /// Whether it has shown none for too long.
    pub(crate) fn is_hungry(self, now: Moment) -> bool {
        self.last.after(self.interval) <= now
    }
}

impl Terms {
    /// Where the lease ends if nothing changes.
    pub(crate) fn end(&self) -> Moment {
        self.deadline.min(self.maximum_until)
    }

    /// Why the lease is over at `now`; `None` while it stands.
    pub(crate) fn over_at(&self, now: Moment) -> Option<LossReason> {
        if now < self.end() {
            return None;
        }
        let hungry = self.feeding.is_some_and(|feeding| feeding.is_hungry(now));
        Some(match () {
            () if self.maximum_until <= now => LossReason::MaximumHold,
            () if hungry => LossReason::NotFed,
            () => LossReason::DeadlinePassed,
        })
    }
}
