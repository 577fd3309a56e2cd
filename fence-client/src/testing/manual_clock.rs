use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Moment, timer_now};

/// A client's clock that goes with tokio's timers, and that a test can put forward.
///
/// In paused time it moves only as the test has it. Putting it forward alone is what a suspend looks like: the clock
/// has moved, the timers have not.
#[derive(Debug, Clone)]
pub struct ManualClock {
    start: tokio::time::Instant,
    ahead_nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that goes with the timers from here on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: timer_now(),
            ahead_nanos: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Puts the clock forward.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.ahead_nanos.fetch_add(nanos, Ordering::SeqCst);
    }

    /// The time since the clock was made.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let ahead = Duration::from_nanos(self.ahead_nanos.load(Ordering::SeqCst));
        timer_now()
            .saturating_duration_since(self.start)
            .saturating_add(ahead)
    }

    pub(crate) fn clock(&self) -> Clock {
        let shared = self.clone();
        // Away from the start, so that a moment before now exists.
        Clock::from_fn(move || Moment::from_nanos(1_000_000_000).after(shared.elapsed()))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}
