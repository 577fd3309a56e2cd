//! A worker that can be stopped as a whole: a thread with a runtime of its own. While it stops, nothing of it runs: no
//! timer, no watchdog, no answer is taken in.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Failure;

/// The worker's thread, as the worker sees it.
#[derive(Debug)]
pub(crate) struct Pausable {
    runtime: Runtime,
    paused: Option<oneshot::Sender<()>>,
}

impl Pausable {
    /// Does a piece of the work.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.runtime.block_on(work)
    }

    /// Stops the whole worker.
    #[expect(clippy::disallowed_methods, reason = "to block the runtime is the point")]
    pub(crate) fn stop_for(&mut self, pause: Duration) {
        if let Some(paused) = self.paused.take() {
            // Who does not want to know is gone.
            let _ = paused.send(());
        }
        std::thread::sleep(pause);
    }
}

/// Starts `worker` on a thread of its own; `paused` is told when it stops for the first time.
pub(crate) fn spawn_pausable<T: Send + 'static>(
    paused: oneshot::Sender<()>,
    worker: impl FnOnce(&mut Pausable) -> Result<T, Failure> + Send + 'static,
) -> JoinHandle<Result<T, Failure>> {
    tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        worker(&mut Pausable {
            runtime,
            paused: Some(paused),
        })
    })
}
