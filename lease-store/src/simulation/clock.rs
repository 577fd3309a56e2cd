//! The clocks of simulated nodes and clients: each runs at a rate of its own, from a start of its own.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use openraft_rt_sim::SimInstant;

use super::group;
use crate::runtime::Instant;

/// Parts of a million.
const MILLION: u128 = 1_000_000;
/// Where the clock of nobody in particular starts, and the least that any starts at: code that takes a timeout off the
/// present time does not come below zero.
const START_NANOS: u64 = 86_400 * 1_000_000_000;
/// Rounding of a span on two clocks, in nanoseconds: who waits for a local point in time must find it reached.
const ROUNDING_NANOS: u64 = 2;

/// How one clock goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockRate {
    /// How much faster than true time, in parts per million; negative is slower.
    pub ppm: i32,
    /// By how much it is ahead at its start. A monotonic clock starts anywhere.
    pub ahead: Duration,
}

/// A clock that started at a point of the simulation's own time.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeClock {
    rate: ClockRate,
    started_nanos: u64,
}

/// A point on the clock of whoever asked for it. It means nothing on another clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeInstant(u64);

impl NodeClock {
    pub(super) fn start(rate: ClockRate) -> Self {
        let started_nanos = true_nanos();
        Self { rate, started_nanos }
    }

    /// The true clock.
    pub(super) const fn exact() -> Self {
        let rate = ClockRate {
            ppm: 0,
            ahead: Duration::ZERO,
        };
        Self {
            rate,
            started_nanos: 0,
        }
    }

    fn parts(self) -> u128 {
        let parts = 1_000_000_i64.saturating_add(i64::from(self.rate.ppm));
        u128::try_from(parts).unwrap_or(1).max(1)
    }

    /// What it shows now.
    pub(super) fn now(self) -> NodeInstant {
        let passed = u128::from(true_nanos().saturating_sub(self.started_nanos));
        let shown = passed.saturating_mul(self.parts()) / MILLION;
        let start = START_NANOS.saturating_add(nanos_of(self.rate.ahead));
        NodeInstant(start.saturating_add(saturated(shown)))
    }

    /// The true time in which it goes on by `span`, rounded up.
    pub(super) fn true_span(self, span: Duration) -> Duration {
        if span.is_zero() {
            return span;
        }
        let nanos = span.as_nanos().saturating_mul(MILLION).div_ceil(self.parts());
        Duration::from_nanos(saturated(nanos).saturating_add(ROUNDING_NANOS))
    }
}

/// The simulation's own time since its start.
#[must_use]
pub fn true_time() -> Duration {
    SimInstant::try_now().map_or(Duration::ZERO, SimInstant::elapsed_since_start)
}

fn true_nanos() -> u64 {
    nanos_of(true_time())
}

fn nanos_of(span: Duration) -> u64 {
    saturated(span.as_nanos())
}

fn saturated(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

impl Instant for NodeInstant {
    fn now() -> Self {
        group::clock().now()
    }
}

impl Add<Duration> for NodeInstant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(span)))
    }
}

impl AddAssign<Duration> for NodeInstant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for NodeInstant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos_of(span)))
    }
}

impl SubAssign<Duration> for NodeInstant {
    fn sub_assign(&mut self, span: Duration) {
        *self = *self - span;
    }
}

impl Sub for NodeInstant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for NodeInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
