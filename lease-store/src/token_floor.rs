//! The floor that the token counter starts above, so that no token of an earlier life can come again.
//!
//! A directory may be an old copy, and a cluster may be built anew beside a ledger that remembers the tokens of the one
//! before. So at each start of a single voter the counter is lifted to the milliseconds since 2026 times 4,096: above
//! all that an earlier life can have issued, unless it granted 4,096 leases in each millisecond of its life. It stays
//! below 2^53 until 2095. This is the only place where a wall clock matters.

use std::time::{Duration, SystemTime};

use lease_core::limits::ISSUED_TOKEN_MAX;
use thiserror::Error;

use crate::runtime::Rt;

/// 2026-01-01T00:00:00Z, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_767_225_600_000;
/// 2026-11-01T00:00:00Z: this code was not there before.
const EARLIEST_MS: u64 = 1_793_491_200_000;
/// 2060-01-01T00:00:00Z: a clock that is decades ahead would use up the tokens of decades.
const LATEST_MS: u64 = 2_840_140_800_000;
/// Tokens for each millisecond, as a power of two.
const TOKENS_PER_MS_LOG2: u32 = 12;

/// How long the wall clock may take to leave its millisecond. A slew takes some more of it, a step back for ever.
const LEFT_WITHIN: Duration = Duration::from_secs(1);

const _: () = assert!((LATEST_MS - EPOCH_MS) << TOKENS_PER_MS_LOG2 < ISSUED_TOKEN_MAX);

/// Where the token counter starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFloor {
    /// Above all that an earlier life can have issued, by the wall clock.
    WallClock,
    /// At a number that the operator gives; tests start at 0.
    At(u64),
    /// Where it stands, since the cluster's own log is its memory; by the wall clock where the log has none yet, at the
    /// cluster's beginning.
    Keep,
}

/// Whether a floor was ever raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    No,
    Yes,
}

/// A floor that was taken from the wall clock, or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) token: u64,
    /// The millisecond that must pass before the first grant; a later life then starts in a later one.
    from_ms: Option<u64>,
}

/// The wall clock cannot be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the wall clock shows {shown_ms} ms since 1970, which lies before this build or decades ahead: fencing tokens would \
     fall back or run out; set the clock, or give --token-floor"
)]
pub struct FloorError {
    /// What the clock shows.
    pub shown_ms: u64,
}

impl TokenFloor {
    /// The floor to raise at the start of a leadership; `opened` tells whether the log has one already.
    pub(crate) fn at_start<R: Rt>(self, opened: Opened) -> Result<Option<Floor>, FloorError> {
        match self {
            Self::Keep if opened == Opened::No => floor_at(wall_clock_ms::<R>()).map(Some),
            Self::WallClock => floor_at(wall_clock_ms::<R>()).map(Some),
            Self::At(token) => Ok(Some(Floor { token, from_ms: None })),
            Self::Keep => Ok(None),
        }
    }
}

impl Floor {
    /// Waits until the wall clock has left the millisecond that the floor was taken from. One that was set back meanwhile is
    /// not waited for: that would hold up every grant for as long as it was set back.
    pub(crate) async fn wait_out<R: Rt>(self) {
        let deadline = R::now() + LEFT_WITHIN;
        while let Some(behind_ms) = self.behind_ms(wall_clock_ms::<R>()) {
            if R::now() >= deadline {
                tracing::warn!(
                    behind_ms,
                    "the wall clock was set back: the floor of a later start may lie below tokens of this one, unless it knows of \
                     them from its own log"
                );
                return;
            }
            R::sleep(Duration::from_millis(1)).await;
        }
    }

    /// How far the wall clock lies before the end of the millisecond that the floor was taken from.
    fn behind_ms(self, now_ms: u64) -> Option<u64> {
        let left = self.from_ms?.saturating_add(1);
        left.checked_sub(now_ms).filter(|behind| *behind > 0)
    }
}

fn wall_clock_ms<R: Rt>() -> u64 {
    let since_1970 = R::wall_clock()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

fn floor_at(now_ms: u64) -> Result<Floor, FloorError> {
    if !(EARLIEST_MS..LATEST_MS).contains(&now_ms) {
        return Err(FloorError { shown_ms: now_ms });
    }
    let token = now_ms.saturating_sub(EPOCH_MS) << TOKENS_PER_MS_LOG2;
    Ok(Floor {
        token,
        from_ms: Some(now_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Tokio;

    #[test]
    fn a_later_start_has_a_floor_above_all_that_an_earlier_one_can_have_issued() {
        let first = floor_at(EARLIEST_MS).unwrap();
        let later = floor_at(EARLIEST_MS + 10).unwrap();
        // Granting throughout, from the millisecond after the first start on.
        assert_eq!(first.token + 4_096 * 10, later.token);
        assert!(later.token < ISSUED_TOKEN_MAX);
    }

    #[test]
    fn the_millisecond_of_a_floor_is_left_when_the_next_one_has_come() {
        let floor = floor_at(EARLIEST_MS).unwrap();
        assert_eq!(floor.behind_ms(EARLIEST_MS), Some(1));
        assert_eq!(floor.behind_ms(EARLIEST_MS + 1), None);
        assert_eq!(floor.behind_ms(EARLIEST_MS - 3_600_000), Some(3_600_001));
        let given = Floor {
            token: 1,
            from_ms: None,
        };
        assert_eq!(given.behind_ms(EARLIEST_MS), None);
    }

    #[tokio::test]
    async fn nothing_is_granted_before_the_millisecond_of_the_floor_is_over() {
        let from_ms = wall_clock_ms::<Tokio>() + 20;
        let floor = Floor {
            token: 1,
            from_ms: Some(from_ms),
        };
        floor.wait_out::<Tokio>().await;
        assert!(wall_clock_ms::<Tokio>() > from_ms);
    }

    #[test]
    fn an_absurd_wall_clock_is_refused() {
        let refused = floor_at(EARLIEST_MS - 1).unwrap_err();
        assert!(refused.to_string().contains("--token-floor"));
        assert!(floor_at(LATEST_MS).is_err());
        assert!(floor_at(0).is_err());
    }
}
