//! How long to wait before the next attempt: doubled each time up to a cap, with full jitter. Pure: the random number
//! is an argument.
//!
//! Source: M. Brooker, "Exponential Backoff And Jitter" (2015): of the variants compared there, full jitter spreads
//! competing clients with the least work.

use std::time::Duration;

/// Doublings past this change nothing: any cap is reached long before.
const DOUBLINGS_MAX: u32 = 30;

/// The bounds of the waits between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// Longest wait after the first failure.
    pub(crate) base: Duration,
    /// Longest wait ever.
    pub(crate) cap: Duration,
}

impl Backoff {
    /// The wait after `failures` failures in a row, anywhere between zero and its ceiling, as `random` has it.
    pub(crate) fn delay(self, failures: u32, random: u64) -> Duration {
        let ceiling = self.ceiling(failures).as_nanos();
        let random = u128::from(random);
        let nanos = random.checked_rem(ceiling.saturating_add(1)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn ceiling(self, failures: u32) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let doublings = failures.saturating_sub(1).min(DOUBLINGS_MAX);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff = Backoff {
        base: Duration::from_millis(50),
        cap: Duration::from_secs(2),
    };

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        for (failures, millis) in [
            (0, 0),
            (1, 50),
            (2, 100),
            (3, 200),
            (6, 1_600),
            (7, 2_000),
            (u32::MAX, 2_000),
        ] {
            assert_eq!(
                BACKOFF.ceiling(failures),
                Duration::from_millis(millis),
                "{failures}"
            );
        }
    }

    #[test]
    fn the_whole_range_up_to_the_ceiling_is_used() {
        let ceiling = 50_000_000;
        assert_eq!(BACKOFF.delay(1, 0), Duration::ZERO);
        assert_eq!(BACKOFF.delay(1, ceiling), Duration::from_nanos(ceiling));
        assert_eq!(BACKOFF.delay(1, ceiling + 1), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn no_wait_is_above_its_ceiling(failures: u32, random: u64) {
            prop_assert!(BACKOFF.delay(failures, random) <= BACKOFF.ceiling(failures));
        }
    }
}
