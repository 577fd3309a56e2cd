//! The tasks of one simulated process: they stop at once when it crashes, stand still while it is paused, and read its
//! clock.
//!
//! A task that is spawned belongs to whoever spawned it, so Raft's own tasks belong to their node without knowing it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use openraft_rt_sim::SimSleep;

use super::chaos::{self, Step};
use super::clock::{ClockRate, NodeClock};

thread_local! {
    /// Whose task is being polled.
    static CURRENT: RefCell<Option<Arc<Group>>> = const { RefCell::new(None) };
    /// The processes that live, by number.
    static LIVING: RefCell<BTreeMap<u64, Arc<Group>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether the steps of a process are disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// Each task runs as soon as it is its turn.
    Prompt,
    /// Some tasks run a little later, by chance.
    Disturbed,
}

/// One life of one process.
pub(super) struct Group {
    clock: NodeClock,
    steps: Steps,
    state: Mutex<State>,
}

struct State {
    standing: Standing,
    tasks: BTreeMap<u64, Task>,
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Running,
    Paused,
    Dead,
}

struct Task {
    slot: Arc<dyn Clearing>,
    waker: Option<Waker>,
}

/// The future of a task, until it ends or its process does.
struct Slot<F>(Mutex<Option<Pin<Box<F>>>>);

trait Clearing: Send + Sync {
    fn clear(&self);
}

impl<F: Send> Clearing for Slot<F> {
    fn clear(&self) {
        let future = self.lock().take();
        drop(future);
    }
}

impl<F> Slot<F> {
    fn lock(&self) -> MutexGuard<'_, Option<Pin<Box<F>>>> {
        // A future that panicked is not polled again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task as the executor sees it: `None` once its process is gone.
pub(super) struct Shell<F: Future> {
    group: Arc<Group>,
    number: u64,
    slot: Arc<Slot<F>>,
    /// Until when the next step is put off.
    late: Option<SimSleep>,
}

impl Group {
    fn new(rate: ClockRate, steps: Steps) -> Arc<Self> {
        Arc::new(Self {
            clock: NodeClock::start(rate),
            steps,
            state: Mutex::new(State {
                standing: Standing::Running,
                tasks: BTreeMap::new(),
                next: 0,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_dead(&self) -> bool {
        self.lock().standing == Standing::Dead
    }

    /// Takes a future in; `None` if the process is gone.
    pub(super) fn adopt<F>(self: &Arc<Self>, future: F) -> Option<Shell<F>>
    where
        F: Future + Send + 'static,
    {
        let slot = Arc::new(Slot(Mutex::new(Some(Box::pin(future)))));
        let mut state = self.lock();
        if state.standing == Standing::Dead {
            drop(state);
            return None;
        }
        let number = state.next;
        state.next = number.saturating_add(1);
        let task = Task {
            slot: Arc::clone(&slot) as Arc<dyn Clearing>,
            waker: None,
        };
        state.tasks.insert(number, task);
        drop(state);
        Some(Shell {
            group: Arc::clone(self),
            number,
            slot,
            late: None,
        })
    }

    /// Whether a task may take a step now, and remembers how to wake it.
    fn admit(&self, number: u64, waker: &Waker) -> Standing {
        let mut state = self.lock();
        let standing = state.standing;
        if let Some(task) = state.tasks.get_mut(&number)
            && task.waker.is_none()
        {
            // One task has one waker in this executor.
            task.waker = Some(waker.clone());
        }
        standing
    }

    fn kill(self: &Arc<Self>) {
        let tasks = {
            let mut state = self.lock();
            state.standing = Standing::Dead;
            std::mem::take(&mut state.tasks)
        };
        let entered = Entered::new(self);
        for task in tasks.values() {
            task.slot.clear();
        }
        drop(entered);
        for waker in tasks.into_values().filter_map(|task| task.waker) {
            waker.wake();
        }
    }

    fn set_standing(&self, standing: Standing) {
        let mut state = self.lock();
        if state.standing == Standing::Dead {
            return;
        }
        state.standing = standing;
        let wakers: Vec<Waker> = state
            .tasks
            .values()
            .filter_map(|task| task.waker.clone())
            .collect();
        drop(state);
        if standing == Standing::Running {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl<F: Future> Future for Shell<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.group.admit(this.number, cx.waker()) {
            Standing::Dead => return Poll::Ready(None),
            Standing::Paused => return Poll::Pending,
            Standing::Running => {}
        }
        if this.late.is_none() && this.group.steps == Steps::Disturbed {
            match chaos::next_step() {
                Step::Now => {}
                Step::Again => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Step::Late(sleep) => this.late = Some(sleep),
            }
        }
        if let Some(late) = &mut this.late {
            if Pin::new(late).poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.late = None;
        }
        let entered = Entered::new(&this.group);
        let mut held = this.slot.lock();
        let Some(future) = held.as_mut() else {
            return Poll::Ready(None);
        };
        let counted = chaos::CountPanic;
        let polled = future.as_mut().poll(cx);
        drop(counted);
        if polled.is_pending() {
            return Poll::Pending;
        }
        let future = held.take();
        drop(held);
        drop(future);
        drop(entered);
        polled.map(Some)
    }
}

impl<F: Future> Drop for Shell<F> {
    fn drop(&mut self) {
        let task = self.group.lock().tasks.remove(&self.number);
        let _entered = Entered::new(&self.group);
        let future = self.slot.lock().take();
        drop((task, future));
    }
}

/// Makes a process the current one until it is dropped.
struct Entered {
    before: Option<Arc<Group>>,
}

impl Entered {
    fn new(group: &Arc<Group>) -> Self {
        let group = Some(Arc::clone(group));
        let before = CURRENT.with(|current| std::mem::replace(&mut *current.borrow_mut(), group));
        Self { before }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // At the end of the thread there is nothing left to restore.
        let _ = CURRENT.try_with(|current| std::mem::replace(&mut *current.borrow_mut(), before));
    }
}

/// The process whose task is being polled.
pub(super) fn current() -> Option<Arc<Group>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// A process that lives.
pub(super) fn living(process: u64) -> Option<Arc<Group>> {
    LIVING.with(|living| living.borrow().get(&process).cloned())
}

/// The clock of the current process, or the true one.
pub(super) fn clock() -> NodeClock {
    current().map_or_else(NodeClock::exact, |group| group.clock)
}

/// Starts a life of a process. Tasks come to it by `spawn_on`.
pub fn begin(process: u64, rate: ClockRate, steps: Steps) {
    let group = Group::new(rate, steps);
    let before = LIVING.with(|living| living.borrow_mut().insert(process, group));
    if let Some(before) = before {
        before.kill();
    }
}

/// Ends a life as kill -9 does: all tasks of the process are dropped at once, and none starts any more.
pub fn crash(process: u64) {
    let group = LIVING.with(|living| living.borrow_mut().remove(&process));
    if let Some(group) = group {
        group.kill();
    }
}

/// Has a process stand still as SIGSTOP does: its clock goes on, its tasks do not.
pub fn pause(process: u64) {
    if let Some(group) = living(process) {
        group.set_standing(Standing::Paused);
    }
}

/// Lets a paused process go on.
pub fn resume(process: u64) {
    if let Some(group) = living(process) {
        group.set_standing(Standing::Running);
    }
}

/// Whether a process lives.
#[must_use]
pub fn lives(process: u64) -> bool {
    living(process).is_some_and(|group| !group.is_dead())
}

/// Ends every process.
pub(super) fn end_all() {
    let all = LIVING.with(|living| std::mem::take(&mut *living.borrow_mut()));
    all.into_values().for_each(|group| group.kill());
}
