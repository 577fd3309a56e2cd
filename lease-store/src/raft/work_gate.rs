//! Counts work that runs beside the runtime, so that a shutdown can wait for it before the folder is let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The gate. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkGate {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    inside: AtomicUsize,
    empty: Notify,
}

/// One piece of work; dropping it ends it.
#[derive(Debug)]
pub(super) struct WorkPass {
    shared: Arc<Shared>,
}

impl WorkGate {
    pub(super) fn enter(&self) -> WorkPass {
        self.shared.inside.fetch_add(1, Ordering::AcqRel);
        WorkPass {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Waits until no work is left.
    pub(super) async fn empty(&self) {
        loop {
            let mut empty = std::pin::pin!(self.shared.empty.notified());
            empty.as_mut().enable();
            if self.shared.inside.load(Ordering::Acquire) == 0 {
                return;
            }
            empty.await;
        }
    }
}

impl Drop for WorkPass {
    fn drop(&mut self) {
        if self.shared.inside.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.empty.notify_waiters();
        }
    }
}
