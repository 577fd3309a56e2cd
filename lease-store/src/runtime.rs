//! The seam: spawn, sleep, now, random and blocking work come from here, and from nowhere else.
//!
//! [`Rt`] is openraft's runtime trait with what our own actors need beside it. It is implemented for tokio; a
//! simulated runtime implements it too, and then the very same actors, and Raft under them, run in a seeded
//! simulation in virtual time. What this leaves to others: sockets and files, which the simulation replaces whole.
//!
//! Under the simulation the tokio channels (mpsc, oneshot, `Notify`) are deterministic; a tokio `watch` is so only
//! with one waiter, `select!` only with `biased`. Tokio's own timers and `spawn` do not work there at all.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

pub use openraft_rt::{AsyncRuntime, Instant, Select2};
use openraft_rt_tokio::TokioRuntime;
use rand::Rng as _;

/// A runtime that Raft and our actors run on.
pub trait Rt: AsyncRuntime + Send + Sync + Sized {
    /// Starts a task that belongs to `node`: the simulation drops all tasks of a node when it crashes the node.
    fn spawn_on<F>(node: u64, task: F) -> Self::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Runs `work`, which may block on a disk or take long, where it holds up no task.
    ///
    /// # Errors
    /// The thread could not be started, or `work` panicked.
    fn run_blocking<T, F>(work: F) -> impl Future<Output = io::Result<T>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static;

    /// The monotonic time. It is no wall-clock time and does not count a suspend of the machine.
    #[must_use]
    fn now() -> Self::Instant {
        <Self::Instant as Instant>::now()
    }

    /// The wall clock. The floor of the token counter asks for it, and whoever is told a time of the wall clock: nothing
    /// else.
    #[must_use]
    fn wall_clock() -> SystemTime;

    /// A random number, unpredictable in production and from the seed in a simulation.
    #[must_use]
    fn random_u64() -> u64 {
        Self::thread_rng().next_u64()
    }
}

/// The time since 1970 by the wall clock; zero before that.
pub(crate) fn unix_time<R: Rt>() -> Duration {
    R::wall_clock()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// The tokio runtime: what the server and the embedded store run on.
pub type Tokio = TokioRuntime;

impl Rt for TokioRuntime {
    fn spawn_on<F>(_node: u64, task: F) -> Self::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Self::spawn(task)
    }

    fn run_blocking<T, F>(work: F) -> impl Future<Output = io::Result<T>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let task = tokio::task::spawn_blocking(work);
        async { task.await.map_err(io::Error::other) }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn wall_clock() -> SystemTime {
        SystemTime::now()
    }
}

/// The tasks of one node, so that its shutdown can wait for them and the early end of one is seen.
///
/// Dropping it leaves the tasks running: they stop when their mailboxes close.
pub struct Tasks<R: Rt> {
    node: u64,
    running: Vec<Running<R>>,
}

struct Running<R: Rt> {
    name: &'static str,
    handle: R::JoinHandle<()>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskEnd {
    /// The name it was started under.
    pub name: &'static str,
    /// What ended it.
    pub cause: EndCause,
}

/// What ended a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// It returned.
    Returned,
    /// It panicked: a bug of ours.
    Panicked,
    /// The runtime dropped it.
    Cancelled,
}

impl<R: Rt> Tasks<R> {
    /// No tasks yet, for this node.
    #[must_use]
    pub fn new(node: u64) -> Self {
        Self {
            node,
            running: Vec::new(),
        }
    }

    /// Starts a task and keeps hold of it.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let handle = R::spawn_on(self.node, task);
        self.running.push(Running { name, handle });
    }

    /// Waits for the next task that ends; `None` once there is none left.
    ///
    /// # Cancel safety
    /// Cancel safe: an end that was not returned is returned by the next call.
    pub async fn next_end(&mut self) -> Option<TaskEnd> {
        if self.running.is_empty() {
            return None;
        }
        std::future::poll_fn(|cx| {
            for (position, task) in self.running.iter_mut().enumerate() {
                if let Poll::Ready(end) = Pin::new(&mut task.handle).poll(cx) {
                    let cause = match end {
                        Ok(()) => EndCause::Returned,
                        Err(error) if R::is_panic(&error) => EndCause::Panicked,
                        Err(_) => EndCause::Cancelled,
                    };
                    let name = task.name;
                    drop(self.running.swap_remove(position));
                    return Poll::Ready(Some(TaskEnd { name, cause }));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for all tasks to end, at most for `limit` in all, and answers with the names of those still running.
    ///
    /// # Cancel safety
    /// Cancel safe: a later call goes on waiting for the rest.
    pub async fn join_all(&mut self, limit: Duration) -> Vec<&'static str> {
        let deadline = R::now() + limit;
        while !self.running.is_empty() {
            if R::timeout_at(deadline, self.next_end()).await.is_err() {
                break;
            }
        }
        self.running.iter().map(|task| task.name).collect()
    }
}

impl<R: Rt> std::fmt::Debug for Tasks<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks")
            .field("node", &self.node)
            .field(
                "running",
                &self.running.iter().map(|task| task.name).collect::<Vec<_>>(),
            )
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_task_is_seen_with_its_cause() {
        let mut tasks = Tasks::<Tokio>::new(1);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn("waits", async move {
            let _ = stopped.await;
        });
        tasks.spawn("panics", async { panic!("on purpose") });
        assert_eq!(
            tasks.next_end().await,
            Some(TaskEnd {
                name: "panics",
                cause: EndCause::Panicked
            })
        );
        drop(stop);
        assert_eq!(
            tasks.next_end().await,
            Some(TaskEnd {
                name: "waits",
                cause: EndCause::Returned
            })
        );
        assert_eq!(tasks.next_end().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn joining_names_those_that_do_not_stop() {
        let mut tasks = Tasks::<Tokio>::new(1);
        tasks.spawn("stubborn", std::future::pending());
        tasks.spawn("quick", async {});
        assert_eq!(tasks.join_all(Duration::from_secs(1)).await, ["stubborn"]);
    }

    #[tokio::test]
    async fn blocking_work_that_panics_is_an_error() {
        assert_eq!(Tokio::run_blocking(|| 7).await.unwrap(), 7);
        assert!(Tokio::run_blocking(|| panic!("on purpose")).await.is_err());
    }
}
