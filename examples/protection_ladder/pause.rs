//! A worker that can be stopped as a whole: a thread with a runtime of its own. While it stops, nothing of it runs: no
//! timer, no watchdog, no answer is taken in. It is a process under SIGSTOP in all that a lock service can see, save that
//! its sockets are this process's.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Failure;

/// The worker's thread, as the worker sees it.
#[derive(Debug)]
pub(crate) struct Thread {
    runtime: Runtime,
}

impl Thread {
    /// Does a piece of the work.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.runtime.block_on(work)
    }

    /// Stops the whole worker until it is told to go on, or nobody is left to tell it.
    #[expect(
        clippy::unused_self,
        reason = "whoever stops shows that it is the worker's own thread"
    )]
    pub(crate) fn stop_until(&self, told: oneshot::Receiver<()>) {
        let _ = told.blocking_recv();
    }
}

/// Starts `worker` on a thread of its own.
pub(crate) fn start<T: Send + 'static>(
    worker: impl FnOnce(&Thread) -> Result<T, Failure> + Send + 'static,
) -> JoinHandle<Result<T, Failure>> {
    tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        worker(&Thread { runtime })
    })
}
