//! How long things take, scaled together.

use std::time::Duration;

/// Time to live of an ordinary lock, unscaled.
const TTL: Duration = Duration::from_secs(3);
/// Time to live of rung 3, unscaled.
const LONG_TTL: Duration = Duration::from_secs(30);

/// The times of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) scale: f64,
}

impl Times {
    /// Shortest: below it, a ttl is as short as a busy machine's hiccups.
    pub(crate) const SCALE_MIN: f64 = 0.03;
    /// Longest: the times as users have them.
    pub(crate) const SCALE_MAX: f64 = 1.0;

    /// The ordinary time to live.
    pub(crate) fn ttl(self) -> Duration {
        TTL.mul_f64(self.scale)
    }

    /// Ten times the ordinary one.
    pub(crate) fn long_ttl(self) -> Duration {
        LONG_TTL.mul_f64(self.scale)
    }

    /// Work that takes longer than an ordinary lock lives.
    pub(crate) fn long_work(self) -> Duration {
        self.ttl() * 2
    }

    /// Between two looks whether a lock is free.
    pub(crate) fn ask_every(self) -> Duration {
        self.ttl() / 15
    }
}
