//! Commits a tick when something is due.
//!
//! Owns: nothing but the wait. Asks: the proposer. Asked by: nobody. Stops: when the machine's schedule, the role or
//! the proposer is gone.
//!
//! While leases live it commits a tick at least once a second as well, so that a restart or a change of leaders finds
//! cluster time no further back than that. While anything due remains, the next tick follows at once.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

use crate::proposer::{ProposerHandle, Request};
use crate::replica::Schedule;
use crate::role::Role;
use crate::runtime::Rt;

/// Longest time between ticks while leases live.
const TICK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);
/// Pause after a tick that could not be committed: the leadership is likely over.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// What the timers work with.
pub(crate) struct Timers<R: Rt> {
    role: watch::Receiver<Role<R::Instant>>,
    schedule: watch::Receiver<Schedule>,
    proposer: ProposerHandle<R::Instant>,
}

impl<R: Rt> Timers<R> {
    pub(crate) fn new(
        role: watch::Receiver<Role<R::Instant>>,
        schedule: watch::Receiver<Schedule>,
        proposer: ProposerHandle<R::Instant>,
    ) -> Self {
        Self {
            role,
            schedule,
            proposer,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            let wait = self.next_wait();
            tokio::select! {
                biased;
                changed = self.role.changed() => if changed.is_err() { break },
                changed = self.schedule.changed() => if changed.is_err() { break },
                () = sleep::<R>(wait) => self.on_due().await,
            }
        }
    }

    /// How long until the next tick; `None` while this node does not lead or nothing lives.
    fn next_wait(&mut self) -> Option<Duration> {
        let leading = *self.role.borrow_and_update().leading()?;
        let schedule = *self.schedule.borrow_and_update();
        let due = schedule.next_due.map(|due| leading.clock.until(due, R::now()));
        let regular = (schedule.leases > 0).then_some(TICK_AT_LEAST_EVERY);
        due.into_iter().chain(regular).min()
    }

    async fn on_due(&self) {
        if let Err(error) = self.proposer.propose::<R>(Request::tick()).await {
            tracing::debug!(%error, "a tick was not committed");
            R::sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}

/// A disabled wait must still be an expression.
async fn sleep<R: Rt>(wait: Option<Duration>) {
    match wait {
        Some(wait) => R::sleep(wait).await,
        None => pending().await,
    }
}
