//! The seam on the simulated runtime: spawn, sleep, now and random as a node of the simulation has them.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use openraft_rt::OptionalSend;
use openraft_rt_sim::{SimJoinError, SimJoinHandle, SimRuntime};
use rand::Rng as _;

use super::chaos::{self, Chaos};
use super::clock::{NodeInstant, true_time};
use super::group;
use crate::runtime::{AsyncRuntime, Instant as _, Rt};

/// When simulations take place: 2026-12-01T00:00:00Z, in seconds since 1970.
const WALL_CLOCK_STARTS_AT: u64 = 1_796_083_200;
/// What work on files takes at the most.
const BLOCKING_WORK_MAX: Duration = Duration::from_millis(3);

/// The runtime of a simulation. All of it happens on one thread, in virtual time, and the same seed gives the same run.
#[derive(Debug)]
pub struct NodeRt {
    runtime: SimRuntime,
}

impl NodeRt {
    /// A simulation of this seed. There may be one at a time on a thread.
    #[must_use]
    pub fn with_seed(seed: u64, chaos: Chaos) -> Self {
        chaos::begin(seed, chaos);
        let runtime = SimRuntime::with_seed(seed);
        Self { runtime }
    }

    /// Has every step of the executor written down, for [`NodeRt::take_trace`].
    pub fn record_trace(&mut self) {
        self.runtime.record_trace(true);
    }

    /// What the executor did since the last call.
    #[must_use]
    pub fn take_trace(&self) -> Vec<String> {
        self.runtime.take_trace()
    }
}

impl Drop for NodeRt {
    fn drop(&mut self) {
        // Within the runtime: what is dropped may have timers.
        self.runtime.block_on(async { group::end_all() });
    }
}

/// Why a task has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeJoinError {
    /// It panicked.
    Panicked(String),
    /// Its process is gone.
    Cancelled,
}

impl fmt::Display for NodeJoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "the task panicked: {message}"),
            Self::Cancelled => f.write_str("the process of the task is gone"),
        }
    }
}

/// The result of a task, once there is one.
pub struct NodeJoinHandle<T>(SimJoinHandle<Option<T>>);

impl<T> fmt::Debug for NodeJoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeJoinHandle").finish_non_exhaustive()
    }
}

impl<T> Future for NodeJoinHandle<T> {
    type Output = Result<T, NodeJoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|end| match end {
            Ok(Some(output)) => Ok(output),
            Ok(None) | Err(SimJoinError::Cancelled) => Err(NodeJoinError::Cancelled),
            Err(SimJoinError::Panic(message)) => Err(NodeJoinError::Panicked(message)),
        })
    }
}

fn spawn_in<F>(group: Option<std::sync::Arc<group::Group>>, future: F) -> NodeJoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    NodeJoinHandle(match group.and_then(|group| group.adopt(future)) {
        Some(shell) => SimRuntime::spawn(shell),
        None => SimRuntime::spawn(std::future::ready(None)),
    })
}

impl AsyncRuntime for NodeRt {
    type JoinError = NodeJoinError;
    type JoinHandle<T: OptionalSend + 'static> = NodeJoinHandle<T>;
    type Sleep = <SimRuntime as AsyncRuntime>::Sleep;
    type Instant = NodeInstant;
    type TimeoutError = <SimRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <SimRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <SimRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <SimRuntime as AsyncRuntime>::Mpsc;
    type Watch = <SimRuntime as AsyncRuntime>::Watch;
    type Oneshot = <SimRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <SimRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        match group::current() {
            Some(group) => spawn_in(Some(group), future),
            // The harness itself.
            None => NodeJoinHandle(SimRuntime::spawn(async { Some(future.await) })),
        }
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        SimRuntime::sleep(group::clock().true_span(duration))
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        Self::sleep(deadline.saturating_duration_since(NodeInstant::now()))
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> Self::Timeout<R, F> {
        SimRuntime::timeout(group::clock().true_span(duration), future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: Self::Instant,
        future: F,
    ) -> Self::Timeout<R, F> {
        Self::timeout(deadline.saturating_duration_since(NodeInstant::now()), future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        matches!(error, NodeJoinError::Panicked(_))
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        SimRuntime::thread_rng()
    }

    fn new(_threads: usize) -> Self {
        Self::with_seed(0, Chaos::NONE)
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.runtime.block_on(future)
    }
}

impl Rt for NodeRt {
    fn spawn_on<F>(node: u64, task: F) -> Self::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_in(group::living(node), task)
    }

    /// The work is done in one go, some time later, unless the process crashes before.
    fn run_blocking<T, F>(work: F) -> impl Future<Output = io::Result<T>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let span = u64::try_from(BLOCKING_WORK_MAX.as_micros()).unwrap_or(1);
        let takes = Duration::from_micros(Self::thread_rng().next_u64() % span);
        // In a task of its own: whoever waits for it may leave, and it is done all the same.
        let done = Self::spawn(async move {
            Self::sleep(takes).await;
            work()
        });
        async { done.await.map_err(|error| io::Error::other(error.to_string())) }
    }

    fn wall_clock() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(WALL_CLOCK_STARTS_AT) + true_time()
    }
}
