//! The harness's own clock, deadlines on it, and the wait for a condition.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long anything may take that a healthy server does at once. The machine may be busy with other tests.
pub const SOON: Duration = Duration::from_secs(30);
/// Pause between two looks at a condition that cannot be waited on.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Now, on the monotonic clock of this process.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the clock that the rest of the harness reads"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// A moment after which a wait is given up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// So far from now.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(now() + time)
    }

    /// What is left; `None` once it has passed.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        self.0
            .checked_duration_since(now())
            .filter(|left| !left.is_zero())
    }
}

/// Counts the time of a run.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// One that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self(now())
    }

    /// Microseconds since its start.
    #[must_use]
    pub fn micros(self) -> u64 {
        u64::try_from(now().duration_since(self.0).as_micros()).unwrap_or(u64::MAX)
    }
}

/// Looks again and again until `condition` gives something; panics with `what` if that takes longer than [`SOON`].
pub fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::after(SOON);
    // Nobody ever sends: a receive is a pause.
    let (_sender, nobody) = mpsc::sync_channel::<()>(0);
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(deadline.left().is_some(), "waited in vain until {what}");
        let _ = nobody.recv_timeout(LOOK_EVERY);
    }
}
