//! Cluster time as one leadership counts it.
//!
//! There is one clock for each leadership: it is made when the leadership's own first entry is applied on the leading
//! node, and dropped with it. It goes on from the last stamp before that entry, plus the monotonic time that this node
//! has seen pass since it applied that stamp. So cluster time never runs ahead of real time, and a change of leaders
//! costs it almost nothing.

use std::time::Duration;

use lease_core::Timestamp;

use crate::runtime::Instant;

/// The clock of one leadership. It only says what time it is; who may stamp with it is decided by Raft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterClock<I> {
    anchor: Timestamp,
    anchored_at: I,
}

impl<I: Instant> ClusterClock<I> {
    /// A clock that stood at `anchor` when this node's monotonic clock stood at `anchored_at`.
    pub(crate) const fn new(anchor: Timestamp, anchored_at: I) -> Self {
        Self { anchor, anchored_at }
    }

    /// The stamp at the local time `now`. Rounded down: cluster time never runs ahead.
    pub(crate) fn at(&self, now: I) -> Timestamp {
        let passed = if now > self.anchored_at {
            now - self.anchored_at
        } else {
            Duration::ZERO
        };
        self.anchor
            .after_millis(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }

    /// How long from the local time `now` until this clock shows `stamp`; zero once it has.
    pub(crate) fn until(&self, stamp: Timestamp, now: I) -> Duration {
        let target = Duration::from_millis(stamp.millis_since(self.anchor));
        let passed = if now > self.anchored_at {
            now - self.anchored_at
        } else {
            Duration::ZERO
        };
        target.saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Rt, Tokio};

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_from_the_anchor_and_rounds_down() {
        let start = Tokio::now();
        let clock = ClusterClock::new(Timestamp::from_millis(1_000), start);
        assert_eq!(clock.at(start), Timestamp::from_millis(1_000));
        assert_eq!(
            clock.at(start + Duration::from_micros(1_999)),
            Timestamp::from_millis(1_001)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn once_the_time_until_a_stamp_has_passed_the_clock_shows_it() {
        let start = Tokio::now();
        let clock = ClusterClock::new(Timestamp::from_millis(7), start);
        let now = start + Duration::from_micros(300);
        let due = Timestamp::from_millis(25);
        assert_eq!(clock.at(now + clock.until(due, now)), due);
        assert_eq!(clock.until(Timestamp::from_millis(3), now), Duration::ZERO);
    }
}
