//! The clock that leases are counted on: it goes on while the machine sleeps.
//!
//! A lease that ran out during a suspend must be seen as lost by the first call after it. `std::time::Instant`, and
//! so every timer of tokio, stands still meanwhile on Linux. Hence timers only wake the client up; what time it is,
//! it asks here. No wall clock is used: somebody may set it.
//!
//! | system | clock | counts suspend |
//! |---|---|---|
//! | Linux, Android | `CLOCK_BOOTTIME` | yes |
//! | macOS, iOS | `CLOCK_MONOTONIC` | yes (there, `CLOCK_UPTIME_RAW` is the one that does not) |
//! | Windows | `QueryPerformanceCounter`, through `std::time::Instant` | yes |
//! | others | `std::time::Instant` | not known: a suspend may be seen too late |
//!
//! Source: clock_gettime(2) of Linux; clock_gettime(3) of macOS; "Acquiring high-resolution time stamps" of Windows.

use std::fmt;
#[cfg(any(test, feature = "test-util"))]
use std::sync::Arc;
use std::time::Duration;

/// A point on the client's clock, in nanoseconds since an arbitrary start. It means nothing to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment(u64);

impl Moment {
    /// A point that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// A point from its nanoseconds.
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    #[cfg(test)]
    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This much later; stays at [`Moment::NEVER`] where the sum would pass it.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(duration)))
    }

    /// This much earlier; stays at the start of the clock.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos_of(duration)))
    }

    /// From this point to `later`; zero if that has passed.
    pub(crate) const fn until(self, later: Self) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Where the client asks for the time.
#[derive(Clone)]
pub(crate) struct Clock(Source);

#[derive(Clone)]
enum Source {
    System,
    #[cfg(any(test, feature = "test-util"))]
    Test(Arc<dyn Fn() -> Moment + Send + Sync>),
}

impl Clock {
    /// The system's clock that counts suspend.
    pub(crate) const SYSTEM: Self = Self(Source::System);

    /// A clock that a test moves.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn from_fn(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Source::Test(Arc::new(now)))
    }

    pub(crate) fn now(&self) -> Moment {
        match &self.0 {
            Source::System => system_now(),
            #[cfg(any(test, feature = "test-util"))]
            Source::Test(now) => now(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}

/// The time of tokio's timers, for waiting alone: it may stand still in a suspend.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the timers' time"
)]
pub(crate) fn timer_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn system_now() -> Moment {
    of_timespec(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
}

#[cfg(target_vendor = "apple")]
fn system_now() -> Moment {
    of_timespec(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn of_timespec(time: rustix::time::Timespec) -> Moment {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Moment::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
#[expect(clippy::disallowed_methods, reason = "the one place that reads this clock")]
fn system_now() -> Moment {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    Moment::from_nanos(0).after(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_goes_forward() {
        let first = Clock::SYSTEM.now();
        let mut later = Clock::SYSTEM.now();
        for _ in 0..1_000_000 {
            if later > first {
                return;
            }
            later = Clock::SYSTEM.now();
        }
        panic!("the clock stood still at {first:?}");
    }

    #[test]
    fn sums_stay_within_the_clock() {
        let moment = Moment::from_nanos(5);
        assert_eq!(moment.after(Duration::MAX), Moment::NEVER);
        assert_eq!(moment.before(Duration::MAX), Moment::from_nanos(0));
        assert_eq!(Moment::NEVER.until(moment), Duration::ZERO);
        assert_eq!(moment.until(Moment::from_nanos(8)), Duration::from_nanos(3));
    }
}
