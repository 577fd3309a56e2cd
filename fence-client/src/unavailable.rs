//! What work may do while the lease store cannot be reached: nothing, unless it was decided otherwise by name.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lease_core::LeaseName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::{Clock, Moment};
use crate::lease::Lease;

/// What [`crate::LeaseRequest::acquire_or_unfenced`] gives while the lease store is unavailable.
#[derive(Debug, Clone, Default)]
pub struct UnavailablePolicy(Option<Open>);

#[derive(Debug, Clone)]
struct Open {
    permits: Arc<Semaphore>,
    for_at_most: Duration,
}

impl UnavailablePolicy {
    /// An error, and no work. The default.
    #[must_use]
    pub const fn closed() -> Self {
        Self(None)
    }

    /// An [`UnfencedPermit`], to at most `max_permits` callers at once, and only during the first `for_at_most` of an
    /// outage as this client sees it.
    ///
    /// Several workers may then do the same work at once, and none of them has a token: the unique key of the
    /// resource alone must keep the result right. Never do this for money or items that have no such key.
    #[must_use]
    pub fn open_limited(max_permits: usize, for_at_most: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(max_permits.min(Semaphore::MAX_PERMITS)));
        Self(Some(Open { permits, for_at_most }))
    }
}

/// What work may be done under.
#[derive(Debug)]
pub enum Authority {
    /// A lease, with a token to show to the resource.
    Fenced(Lease),
    /// No lease: the store is unavailable, and the client was told to go on in this case.
    Unfenced(UnfencedPermit),
}

/// Leave to work without a lease while the store is unavailable. It has no token and excludes nobody.
#[derive(Debug)]
#[must_use = "the permit counts against its limit until it is dropped"]
pub struct UnfencedPermit {
    name: LeaseName,
    _permit: OwnedSemaphorePermit,
}

impl UnfencedPermit {
    /// The lease that could not be asked for.
    #[must_use]
    pub const fn name(&self) -> &LeaseName {
        &self.name
    }
}

/// Applies the policy of one client, and knows since when the store is unavailable.
#[derive(Debug)]
pub(crate) struct Outage {
    policy: UnavailablePolicy,
    clock: Clock,
    since: Mutex<Option<Moment>>,
}

impl Outage {
    pub(crate) const fn new(policy: UnavailablePolicy, clock: Clock) -> Self {
        Self {
            policy,
            clock,
            since: Mutex::new(None),
        }
    }

    /// The store answered.
    pub(crate) fn over(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The store could not be asked for `name`: a permit, if the policy gives one.
    pub(crate) fn permit(&self, name: &LeaseName) -> Option<UnfencedPermit> {
        let now = self.clock.now();
        let since = *self
            .since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(now);
        let open = self.policy.0.as_ref()?;
        if since.until(now) >= open.for_at_most {
            return None;
        }
        let permit = Arc::clone(&open.permits).try_acquire_owned().ok()?;
        tracing::warn!(lease = %name, "the lease store is unavailable: work goes on unfenced");
        Some(UnfencedPermit {
            name: name.clone(),
            _permit: permit,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn closed_never_gives_a_permit() {
        let outage = Outage::new(UnavailablePolicy::default(), Clock::SYSTEM);
        assert!(outage.permit(&LeaseName::new("a").unwrap()).is_none());
    }

    #[test]
    fn an_open_policy_is_limited_in_number_and_in_time() {
        let seconds = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&seconds);
        let clock = Clock::from_fn(move || Moment::from_nanos(shown.load(Ordering::SeqCst) * 1_000_000_000));
        let outage = Outage::new(UnavailablePolicy::open_limited(2, Duration::from_secs(60)), clock);
        let name = LeaseName::new("a").unwrap();
        let one = outage.permit(&name).unwrap();
        let _two = outage.permit(&name).unwrap();
        assert!(outage.permit(&name).is_none(), "both are given out");
        drop(one);
        let _three = outage.permit(&name).unwrap();
        drop(_two);
        seconds.store(60, Ordering::SeqCst);
        assert!(outage.permit(&name).is_none(), "the outage lasts too long");
        outage.over();
        assert!(outage.permit(&name).is_some(), "the next outage counts anew");
    }
}
