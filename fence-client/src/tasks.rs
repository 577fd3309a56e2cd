//! The one place where this crate starts tasks.
//!
//! Each of them stops by itself: an actor when its last handle is dropped, a piece of background work when its time
//! is over.

use std::future::Future;

use tracing::Instrument as _;

/// Starts a task on the current tokio runtime.
///
/// # Panics
/// Outside of a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "the one place that starts tasks")]
pub(crate) fn spawn(span: tracing::Span, task: impl Future<Output = ()> + Send + 'static) {
    // Detached: the task ends with its mailbox, or with its time.
    drop(tokio::spawn(task.instrument(span)));
}
