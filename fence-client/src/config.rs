//! The settings of a client, checked against each other.

use std::time::Duration;

#[cfg(any(test, feature = "embedded"))]
use lease_core::Database;
use lease_core::{OwnerId, Ttl};

use crate::backoff::Backoff;
use crate::error::{AcquireError, ConnectError};
use crate::greeting::Greeting;
use crate::unavailable::UnavailablePolicy;
use crate::watchdog::Caution;

/// Highest clock rate error that may be assumed, in parts per million: a tenth. A clock that is worse is broken.
pub(crate) const RATE_ERROR_PPM_MAX: u32 = 100_000;
/// Shortest margin: the store's stamps are whole milliseconds, so a lease may end up to one earlier than its ttl says.
const MARGIN_MIN: Duration = Duration::from_millis(1);
/// Longest time that any one setting may ask to wait.
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// The default margin is a 50th of the ttl, within these bounds: a timer of tokio is a millisecond late, a busy
/// runtime some more, and stopping the work takes what it takes.
const MARGIN_PART: u32 = 50;
const MARGIN_AUTO_MIN: Duration = Duration::from_millis(10);
const MARGIN_AUTO_MAX: Duration = Duration::from_millis(500);

/// Settings that were not checked yet.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) greeting: Greeting,
    pub(crate) owner: Option<OwnerId>,
    pub(crate) default_ttl: Duration,
    pub(crate) rate_error_ppm: u32,
    pub(crate) margin: Option<Duration>,
    pub(crate) connect_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) operation_timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) waits_max: usize,
    pub(crate) unavailable: UnavailablePolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            greeting: Greeting::default(),
            owner: None,
            default_ttl: Duration::from_secs(10),
            rate_error_ppm: 1_000,
            margin: None,
            connect_timeout: Duration::from_secs(1),
            request_timeout: Duration::from_secs(2),
            operation_timeout: Duration::from_secs(5),
            backoff: Backoff {
                base: Duration::from_millis(50),
                cap: Duration::from_secs(1),
            },
            waits_max: 64,
            unavailable: UnavailablePolicy::closed(),
        }
    }
}

impl Settings {
    /// Checks each setting, and those that depend on each other.
    pub(crate) fn check(&self) -> Result<(), ConnectError> {
        if self.rate_error_ppm > RATE_ERROR_PPM_MAX {
            return Err(ConnectError::RateError {
                ppm: self.rate_error_ppm,
                max: RATE_ERROR_PPM_MAX,
            });
        }
        if let Some(margin) = self.margin {
            between(
                "margin",
                margin,
                MARGIN_MIN,
                "1 ms to 1 h: the store counts in milliseconds",
            )?;
        }
        let some = Duration::from_millis(1);
        between("connect_timeout", self.connect_timeout, some, "1 ms to 1 h")?;
        between("request_timeout", self.request_timeout, some, "1 ms to 1 h")?;
        between(
            "operation_timeout",
            self.operation_timeout,
            self.request_timeout,
            "at least request_timeout, since an operation is one request or more, and at most 1 h",
        )?;
        between("backoff", self.backoff.base, some, "1 ms to 1 h")?;
        between(
            "backoff_max",
            self.backoff.cap,
            self.backoff.base,
            "at least backoff, and at most 1 h",
        )?;
        self.caution(self.default_ttl)
            .map(drop)
            .map_err(|_| ConnectError::Config {
                what: "default_ttl",
                value: self.default_ttl,
                rule: "at least twice what margin and clock rate error take off it",
            })
    }

    /// What is taken off the deadlines of a lease of this ttl.
    ///
    /// At least half of the ttl must be left: then a renewal after a third of it, and one more attempt, still fit.
    pub(crate) fn caution(&self, ttl: Duration) -> Result<(Ttl, Caution), AcquireError> {
        let auto = ttl.checked_div(MARGIN_PART).unwrap_or_default();
        let margin = self
            .margin
            .unwrap_or(auto.clamp(MARGIN_AUTO_MIN, MARGIN_AUTO_MAX));
        let caution = Caution {
            rate_error_ppm: self.rate_error_ppm,
            margin,
        };
        let half = ttl.checked_div(2).unwrap_or_default();
        if caution.sure(ttl).saturating_sub(margin) < half || ttl < MARGIN_MIN {
            let least = self.least_ttl();
            return Err(AcquireError::TtlTooShort { ttl, margin, least });
        }
        let ttl = Ttl::from_duration(ttl).map_err(|invalid| AcquireError::Invalid { invalid })?;
        Ok((ttl, caution))
    }

    /// The shortest ttl of which half is left, in whole milliseconds: margin / (1/2 - rate error).
    fn least_ttl(&self) -> Duration {
        let margin = self.margin.unwrap_or(MARGIN_AUTO_MIN).as_micros();
        let half_kept = u128::from(500_000_u32.saturating_sub(self.rate_error_ppm)).max(1);
        let micros = margin.saturating_mul(1_000_000).div_ceil(half_kept);
        Duration::from_millis(u64::try_from(micros.div_ceil(1_000)).unwrap_or(u64::MAX))
    }

    /// The database that all names are in.
    #[cfg(any(test, feature = "embedded"))]
    pub(crate) fn database(&self) -> Database {
        self.greeting.database.unwrap_or(Database::ZERO)
    }
}

fn between(
    what: &'static str,
    value: Duration,
    least: Duration,
    rule: &'static str,
) -> Result<(), ConnectError> {
    if (least..=TIMEOUT_MAX).contains(&value) {
        Ok(())
    } else {
        Err(ConnectError::Config { what, value, rule })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_margin_is_a_fiftieth_within_bounds() {
        let settings = Settings::default();
        for (ttl_ms, margin_ms) in [
            (100, 10),
            (500, 10),
            (5_000, 100),
            (25_000, 500),
            (3_600_000, 500),
        ] {
            let (_, caution) = settings.caution(Duration::from_millis(ttl_ms)).unwrap();
            assert_eq!(caution.margin, Duration::from_millis(margin_ms), "{ttl_ms}");
        }
    }

    #[test]
    fn a_ttl_that_leaves_no_room_is_refused_and_the_least_one_is_taken() {
        for margin in [None, Some(1), Some(250)] {
            let margin = margin.map(Duration::from_millis);
            let settings = Settings {
                margin,
                ..Settings::default()
            };
            let error = settings.caution(Duration::from_millis(1)).unwrap_err();
            let AcquireError::TtlTooShort { least, .. } = error else {
                panic!("{error:?}");
            };
            settings.caution(least).unwrap();
            let shorter = least.saturating_sub(Duration::from_millis(1));
            assert!(settings.caution(shorter).is_err(), "{least:?} is not the least");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused_by_name() {
        let default = Settings::default();
        default.check().unwrap();
        let second = Duration::from_secs(1);
        for (what, settings) in [
            (
                "margin",
                Settings {
                    margin: Some(Duration::from_micros(999)),
                    ..default.clone()
                },
            ),
            (
                "operation_timeout",
                Settings {
                    operation_timeout: second,
                    ..default.clone()
                },
            ),
            (
                "connect_timeout",
                Settings {
                    connect_timeout: Duration::ZERO,
                    ..default.clone()
                },
            ),
            (
                "default_ttl",
                Settings {
                    margin: Some(6 * second),
                    ..default.clone()
                },
            ),
            (
                "backoff_max",
                Settings {
                    backoff: Backoff {
                        base: 2 * second,
                        cap: second,
                    },
                    ..default.clone()
                },
            ),
        ] {
            let error = settings.check().unwrap_err();
            assert!(
                matches!(error, ConnectError::Config { what: found, .. } if found == what),
                "{what}: {error}"
            );
        }
        let drift = Settings {
            rate_error_ppm: RATE_ERROR_PPM_MAX + 1,
            ..default
        };
        assert!(matches!(drift.check(), Err(ConnectError::RateError { .. })));
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_leaves_half_of_the_ttl(ttl_ms in 1_u64..100_000, margin_ms in 1_u64..60_000) {
            let margin = Some(Duration::from_millis(margin_ms));
            let settings = Settings { margin, ..Settings::default() };
            if let Ok((ttl, caution)) = settings.caution(Duration::from_millis(ttl_ms)) {
                let left = caution.sure(ttl.as_duration()).checked_sub(caution.margin).unwrap();
                prop_assert!(left * 2 >= ttl.as_duration());
            }
        }
    }
}
