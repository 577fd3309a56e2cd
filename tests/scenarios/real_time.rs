//! Real time beside the paused time of a scenario: for what talks to sockets, files and threads.
//!
//! While somebody waits for it, the paused time stands: tokio moves no paused clock while blocking work is under way.

use std::sync::LazyLock;

use tokio::runtime::{EnterGuard, Runtime};
use tokio::task::JoinHandle;

/// A hook may hold up the thread that it is called on, and others must still be served.
const WORKERS: usize = 4;

static REAL_TIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .unwrap()
});

/// Does work in real time.
pub(crate) async fn in_real_time<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(move || REAL_TIME.block_on(work));
    match done.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Blocks a thread, which must not be one that drives tasks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Work that goes on in real time beside the test; whoever starts it ends it.
pub(crate) fn beside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    REAL_TIME.spawn(work)
}

/// What is started until the guard is dropped lives in real time.
pub(crate) fn enter() -> EnterGuard<'static> {
    REAL_TIME.enter()
}
