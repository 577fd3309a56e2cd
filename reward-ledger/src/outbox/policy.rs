//! How a publisher tries, and when it gives up.

use std::time::Duration;

use crate::error::InvalidConfig;
use crate::limits::LEASED_ROWS_MAX;

/// How a publisher tries, and when it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishPolicy {
    pub(super) tries_max: u32,
    pub(super) dedup_window: Duration,
    pub(super) give_up_after: Duration,
    pub(super) request_timeout: Duration,
    pub(super) lease_for: Duration,
    pub(super) backoff_base: Duration,
    pub(super) backoff_cap: Duration,
    pub(super) poll_every: Duration,
    pub(super) rows_in_flight_max: usize,
}

impl PublishPolicy {
    /// A policy towards an outside server that remembers an idempotency key for `dedup_window` after it first saw it.
    /// After that the same key would do the work again, so it is never sent any more: only the status is asked for.
    pub const fn builder(dedup_window: Duration) -> PublishPolicyBuilder {
        PublishPolicyBuilder {
            policy: Self {
                tries_max: 10,
                dedup_window,
                give_up_after: Duration::ZERO,
                request_timeout: Duration::from_secs(5),
                lease_for: Duration::from_secs(30),
                backoff_base: Duration::from_millis(200),
                backoff_cap: Duration::from_secs(60),
                poll_every: Duration::from_millis(100),
                rows_in_flight_max: 256,
            },
        }
    }
}

/// Builds a [`PublishPolicy`].
#[derive(Debug, Clone, Copy)]
#[must_use = "a builder makes nothing until `build`"]
pub struct PublishPolicyBuilder {
    policy: PublishPolicy,
}

impl PublishPolicyBuilder {
    /// Tries before a row is given up; 10 unless said, 1 to 1,000.
    ///
    /// Too few: a short outage fills the list of dead letters. Too many: a row that can never succeed holds up its player.
    pub const fn tries_max(mut self, tries: u32) -> Self {
        self.policy.tries_max = tries;
        self
    }

    /// How long after the first try a row is still sent; unless said, half of the deduplication window. With the time of
    /// one request it must end within that window.
    ///
    /// Too short: a long outage fills the list of dead letters. Too long: it does not fit.
    pub const fn give_up_after(mut self, time: Duration) -> Self {
        self.policy.give_up_after = time;
        self
    }

    /// How long one request may take; 5 s unless said. After that its outcome is unknown.
    ///
    /// Too short: slow work is asked for again. Too long: a dead server holds up everybody.
    pub const fn request_timeout(mut self, time: Duration) -> Self {
        self.policy.request_timeout = time;
        self
    }

    /// How long rows are leased; 30 s unless said, twice the time of one request at the least. Rows of a publisher that
    /// died wait as long.
    pub const fn lease_for(mut self, time: Duration) -> Self {
        self.policy.lease_for = time;
        self
    }

    /// The longest waits after the first failure and ever; 0.2 s and 60 s unless said. They double in between, and each is
    /// drawn between zero and its longest.
    pub const fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.policy.backoff_base = base;
        self.policy.backoff_cap = cap;
        self
    }

    /// How often an idle publisher looks for new rows; 0.1 s unless said.
    ///
    /// Too rare: a reward arrives later by that much. Too often: the store is asked for nothing.
    pub const fn poll_every(mut self, time: Duration) -> Self {
        self.policy.poll_every = time;
        self
    }

    /// Rows that are delivered side by side at the most; 256 unless said, 1 to [`LEASED_ROWS_MAX`].
    ///
    /// Too few: the outside server idles. Too many: it is overrun.
    pub const fn rows_in_flight_max(mut self, rows: usize) -> Self {
        self.policy.rows_in_flight_max = rows;
        self
    }

    /// The policy.
    ///
    /// # Errors
    /// [`InvalidConfig::Publish`] where the times do not fit into each other, or a number is out of its range.
    pub fn build(self) -> Result<PublishPolicy, InvalidConfig> {
        let mut policy = self.policy;
        if policy.give_up_after.is_zero() {
            policy.give_up_after = policy.dedup_window / 2;
        }
        let says = |problem: String| Err(InvalidConfig::Publish { problem });
        let last_request = policy.give_up_after.saturating_add(policy.request_timeout);
        if last_request > policy.dedup_window {
            return says(format!(
                "the last request may end {last_request:?} after the first, the outside server forgets its key after {:?}",
                policy.dedup_window
            ));
        }
        if policy.request_timeout.is_zero() || policy.lease_for < policy.request_timeout.saturating_mul(2) {
            return says(format!(
                "rows leased for {:?} leave no room for requests of {:?}: twice as long at the least",
                policy.lease_for, policy.request_timeout
            ));
        }
        if policy.backoff_base > policy.backoff_cap {
            return says(format!(
                "the first wait of {:?} is above the longest, {:?}",
                policy.backoff_base, policy.backoff_cap
            ));
        }
        if policy.poll_every.is_zero() {
            return says("looking for rows without a pause would never end".to_owned());
        }
        if !(1..=1_000).contains(&policy.tries_max) {
            return says(format!("1 to 1,000 tries, not {}", policy.tries_max));
        }
        if !(1..=LEASED_ROWS_MAX).contains(&policy.rows_in_flight_max) {
            return says(format!(
                "1 to {LEASED_ROWS_MAX} rows in flight, not {}",
                policy.rows_in_flight_max
            ));
        }
        Ok(policy)
    }
}
