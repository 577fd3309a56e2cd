//! How long one answer of the store makes a lease good for. Pure; whole nanoseconds, no floats.
//!
//! The store counts a lease from some point after the request left and before the answer came. The client counts from
//! the earlier of the two, and takes off what the two clocks may differ by, so that it gives up first.

use std::time::Duration;

use crate::clock::Moment;

/// Parts of a million.
const MILLION: u128 = 1_000_000;

/// Part of the remaining time after which a lease is renewed: two more attempts fit before its end.
const RENEW_AFTER: u32 = 3;
/// Part of the remaining time after which a lease may come along with another one's renewal.
const JOIN_AFTER: u32 = 6;

/// By how much the client gives up before the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caution {
    /// Assumed error of the rate between the store's clock and ours, in parts per million.
    pub(crate) rate_error_ppm: u32,
    /// Taken off each deadline: what passes from the deadline until the work has stopped.
    pub(crate) margin: Duration,
}

/// What one answer makes of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The lease is not held from here on.
    pub(crate) deadline: Moment,
    /// It is renewed from here on.
    pub(crate) renew_at: Moment,
    /// It may come along with another renewal from here on.
    pub(crate) join_at: Moment,
}

impl Caution {
    /// The window of a grant whose request left at `sent`, which stood in the queue for `waited` and had `remaining`
    /// time to live at the answer's log entry.
    pub(crate) fn granted(self, sent: Moment, waited: Duration, remaining: Duration) -> Window {
        let deadline = sent
            .after(self.sure(waited.saturating_add(remaining)))
            .before(self.margin);
        Self::window(sent.after(self.sure(waited)), remaining, deadline)
    }

    /// The window of a renewal whose request left at `sent`, with `remaining` time to live at its log entry.
    pub(crate) fn renewed(self, sent: Moment, remaining: Duration) -> Window {
        self.granted(sent, Duration::ZERO, remaining)
    }

    /// The part of a time on the store's clock that certainly passes on ours too, rounded down.
    pub(crate) fn sure(self, time: Duration) -> Duration {
        let nanos = time.as_nanos();
        let kept = MILLION.saturating_sub(u128::from(self.rate_error_ppm));
        let sure = nanos.saturating_mul(kept).checked_div(MILLION).unwrap_or(0);
        Duration::from_nanos(u64::try_from(sure).unwrap_or(u64::MAX))
    }

    fn window(start: Moment, remaining: Duration, deadline: Moment) -> Window {
        let after = |part| start.after(remaining.checked_div(part).unwrap_or_default());
        Window {
            deadline,
            renew_at: after(RENEW_AFTER).min(deadline),
            join_at: after(JOIN_AFTER).min(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAUTION: Caution = Caution {
        rate_error_ppm: 1_000,
        margin: Duration::from_millis(100),
    };

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_grant_counts_from_its_send_with_wait_drift_and_margin() {
        for (sent, waited, remaining, deadline, renew) in [
            (0, 0, 5_000, 4_895, 1_666),
            (1_000, 0, 5_000, 5_895, 2_666),
            // Two seconds in the queue: the lease began at 1,998 at the earliest.
            (0, 2_000, 5_000, 6_893, 3_664),
            // A retry is told what is left.
            (9_000, 0, 1_000, 9_899, 9_333),
        ] {
            let window = CAUTION.granted(at(sent), ms(waited), ms(remaining));
            assert_eq!(window.deadline, at(deadline), "{sent} {waited} {remaining}");
            assert_eq!(
                window.renew_at.as_nanos() / 1_000_000,
                renew,
                "{sent} {waited} {remaining}"
            );
            assert!(window.join_at < window.renew_at);
        }
    }

    #[test]
    fn c11_the_deadline_does_not_know_when_the_answer_came() {
        // The ttl is 25 s and the answer takes 20 s: what counts is the send.
        let window = CAUTION.granted(at(0), ms(0), ms(25_000));
        assert_eq!(window.deadline, at(24_875));
    }

    #[test]
    fn a_lease_shorter_than_the_margin_is_over_at_once() {
        let window = CAUTION.renewed(at(1_000), ms(50));
        assert!(window.deadline < at(1_000));
        assert_eq!(window.renew_at, window.deadline);
    }

    #[test]
    fn the_longest_ttl_does_not_overflow() {
        let window = CAUTION.granted(at(1), ms(i64::MAX as u64), ms(i64::MAX as u64));
        assert!(window.deadline > at(1 << 40));
    }

    proptest! {
        // The rule itself, spelled out in milliseconds on a common scale: whatever the true rates are within the
        // error, the client's deadline comes before the store's.
        #[test]
        fn k2_the_client_gives_up_before_the_store(
            sent in 0_u64..1 << 40,
            waited in 0_u64..1 << 30,
            remaining in 1_u64..1 << 30,
            applied_after in 0_u64..1 << 20,
        ) {
            let window = CAUTION.granted(at(sent), ms(waited), ms(remaining));
            // The store's clock is fast by r: its (waited + remaining) last that much less on ours.
            let store_time = u128::from(waited + remaining) * 1_000_000;
            let fast = store_time * 1_000_000 / (1_000_000 + 1_000);
            let store_ends = u128::from(at(sent + applied_after).as_nanos()) + fast;
            prop_assert!(u128::from(window.deadline.as_nanos()) + 1_000_000 <= store_ends);
        }

        #[test]
        fn a_later_send_or_a_longer_time_never_ends_earlier(sent: u32, more: u32, remaining: u32, longer: u32) {
            let one = CAUTION.renewed(at(sent.into()), ms(remaining.into()));
            let later = CAUTION.renewed(at(u64::from(sent) + u64::from(more)), ms(remaining.into()));
            let long = CAUTION.renewed(at(sent.into()), ms(u64::from(remaining) + u64::from(longer)));
            prop_assert!(one.deadline <= later.deadline && one.deadline <= long.deadline);
        }
    }
}
