//! The only file that reads clocks.

use std::fmt;
#[cfg(any(feature = "sled", feature = "postgres"))]
use std::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::types::UnixMillis;

/// The wall clock of a ledger: it dates receipts and forgets old refusals, and decides nothing.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> UnixMillis;
}

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
    fn now(&self) -> UnixMillis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMillis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A point on a clock that only goes forward, to measure how long something takes.
#[cfg(any(feature = "sled", feature = "postgres"))]
#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
pub(crate) fn monotonic_now() -> Instant {
    Instant::now()
}
