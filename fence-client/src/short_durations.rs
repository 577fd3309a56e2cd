use std::time::Duration;

/// `5.secs()` for `Duration::from_secs(5)`.
pub trait ShortDurations {
    /// So many seconds.
    #[must_use]
    fn secs(self) -> Duration;

    /// So many milliseconds.
    #[must_use]
    fn millis(self) -> Duration;
}

impl ShortDurations for u64 {
    fn secs(self) -> Duration {
        Duration::from_secs(self)
    }

    fn millis(self) -> Duration {
        Duration::from_millis(self)
    }
}
