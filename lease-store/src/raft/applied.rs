//! How far this node has applied the log, for whoever waits for an entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The mark. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct AppliedMark {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The index after the last entry applied.
    next: AtomicU64,
    raised: Notify,
}

impl AppliedMark {
    pub(super) fn next(&self) -> u64 {
        self.shared.next.load(Ordering::Acquire)
    }

    /// Raises the mark and wakes whoever waits. Only the state machine calls it, in the order of the log.
    pub(super) fn set(&self, next: u64) {
        self.shared.next.store(next, Ordering::Release);
        self.shared.raised.notify_waiters();
    }

    /// Waits until the entry `index` is applied.
    pub(super) async fn wait(&self, index: u64) {
        loop {
            let mut raised = std::pin::pin!(self.shared.raised.notified());
            // Registers before the look, so that an entry in between is not missed.
            raised.as_mut().enable();
            if self.next() > index {
                return;
            }
            raised.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn whoever_waits_is_woken_by_its_entry_and_not_before() {
        let mark = AppliedMark::default();
        let mut waits = Box::pin(mark.wait(7));
        assert_eq!((&mut waits).now_or_never(), None);
        mark.set(7);
        assert_eq!((&mut waits).now_or_never(), None);
        mark.set(8);
        assert_eq!((&mut waits).now_or_never(), Some(()));
        assert_eq!(mark.wait(3).now_or_never(), Some(()));
    }
}
