//! Joins what many callers ask for into one log entry, and hands each its outcome: the group commit.
//!
//! Owns: the batch being filled, and what is under way. Asks: Raft, and on a follower the leader. Asked by: the store's
//! callers, `timers`, other nodes. Stops: when its last handle is dropped, or nobody tells it the role any more.
//!
//! The stamp of an entry is taken after its last command is in, and never used for another entry. Every entry names the
//! leadership that stamped it, so nothing that waited here through a change of leaders can commit. A follower forwards
//! the commands alone.
//!
//! Nobody waits here for long: without a leader a caller is refused after [`LEADER_WITHIN`], and a caller whose command
//! has no outcome after [`handle::ANSWER_WITHIN`] is told that it is unknown. Its grant, if one comes later, is an orphan.
//!
//! What a follower forwards can be forwarded again when no answer came: it is harmless twice, or goes under a number by
//! which the machine knows it ([`numbers`]). So a leader that is killed is not noticed by who waits, as long as another one
//! takes over in time.

mod batch;
mod fate;
mod handle;
mod numbers;
mod route;

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lease_core::limits::{BATCH_COMMANDS_MAX, ENTRY_BYTES_MAX};
use lease_core::machine::Repeat;
use lease_core::machine::codec::{self, EncodedCommand};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use self::batch::{Ask, Batch, Origin, Whose};
use self::fate::{Done, Fate};
use self::route::State;
use crate::error::StoreError;
use crate::forward::Forward;
use crate::metrics::Metrics;
use crate::orphans::Orphans;
use crate::raft::error::{ProposeError, Refusal};
use crate::replica::Node;
use crate::role::{Leading, Role};
use crate::runtime::Rt;
use crate::waiters::Waiters;

pub(crate) use self::handle::{ProposerHandle, Request};
pub(crate) use self::numbers::Life;

/// Two full batches: what waits beyond that waits at its caller.
const MAILBOX_DEPTH: usize = 2 * BATCH_COMMANDS_MAX;
/// Bytes of the commands that are asked and not answered: what waits beyond that waits at its caller. A few of the largest
/// commands, or a mailbox full of usual ones many times over.
const BYTES_ASKED_MAX: usize = 64 * 1_024 * 1_024;
/// Entries in flight: while one is written, the next is filled. More were measured to be slower.
const ENTRIES_IN_FLIGHT_MAX: usize = 2;
/// Batches on their way to the leader: one, since two could overtake each other, and the changes of one connection take
/// effect in their order.
const BATCHES_FORWARDED_MAX: usize = 1;
/// How long until a leader that was not there is called again. A new one may be known before.
const FORWARD_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long until a leadership that Raft did not serve is tried again. It may stand all the same: Raft refuses proposals
/// while it has not heard from a quorum lately, and takes them once it has.
const PROPOSE_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long a command that undoes something waits after it was hindered.
const UNDO_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long a caller waits for a leader to be known: an election takes about as long.
const LEADER_WITHIN: Duration = Duration::from_millis(1_500);
type OnItsWay<I> = Pin<Box<dyn Future<Output = Done<I>> + Send>>;
type UnderWay<I> = FuturesUnordered<OnItsWay<I>>;

/// Where commands go now.
#[derive(Debug, Clone, Copy)]
enum Route<I> {
    Here(Leading<I>),
    To(u64),
    Nowhere,
}

/// What the proposer works with.
pub(crate) struct Proposer<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) forward: Arc<dyn Forward>,
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) waiters: Arc<Waiters>,
    /// Whose commands these are, where they are forwarded.
    pub(crate) life: Life,
    pub(crate) metrics: Arc<Metrics>,
}

impl<R: Rt> Proposer<R> {
    /// The handle, and the task to run.
    pub(crate) fn with_mailbox(self) -> (ProposerHandle<R::Instant>, impl Future<Output = ()> + Send) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let handle = ProposerHandle {
            mailbox,
            room: Arc::new(Semaphore::new(BYTES_ASKED_MAX)),
            orphans: Arc::clone(&self.orphans),
            asked: Arc::default(),
        };
        (handle, self.run(inbox))
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Ask<R::Instant>>) {
        let mut under_way = UnderWay::new();
        let mut state = State::new(self.life);
        let orphans = Arc::clone(&self.orphans);
        loop {
            let route = self.route(&mut state);
            let same_way = under_way.is_empty() || state.target == route.target();
            let sends = same_way
                && match route {
                    Route::Here(_) => under_way.len() < ENTRIES_IN_FLIGHT_MAX,
                    Route::To(_) => under_way.len() < BATCHES_FORWARDED_MAX,
                    Route::Nowhere => false,
                };
            if sends {
                state.target = route.target();
            }
            if sends && !state.waiting.is_empty() {
                let batch = Batch::fill(&orphans, None, &mut state.waiting, &mut inbox);
                under_way.extend(self.send(batch, route, &mut state).await);
                continue;
            }
            let takes = sends || (matches!(route, Route::Nowhere) && state.waiting.len() < MAILBOX_DEPTH);
            let wakes_at = state.wakes_at();
            tokio::select! {
                biased;
                Some(done) = under_way.next() => self.on_done(done, &mut state),
                changed = self.role.changed() => if changed.is_err() { break },
                () = orphans_ready::<R>(&orphans), if sends => {
                    let batch = Batch::fill(&orphans, None, &mut state.waiting, &mut inbox);
                    under_way.extend(self.send(batch, route, &mut state).await);
                }
                ask = inbox.recv(), if takes => match ask {
                    None => break,
                    Some(ask) if sends => {
                        let batch = Batch::fill(&orphans, Some(ask), &mut state.waiting, &mut inbox);
                        under_way.extend(self.send(batch, route, &mut state).await);
                    }
                    Some(ask) => self.put_aside(ask, &mut state),
                },
                () = sleep_until::<R>(wakes_at) => self.refuse_overdue(&mut state),
            }
        }
        state.recall = None;
        while let Some(done) = under_way.next().await {
            self.on_done(done, &mut state);
        }
        inbox.close();
        let never_sent = std::iter::from_fn(|| inbox.try_recv().ok());
        for ask in std::mem::take(&mut state.waiting).into_iter().chain(never_sent) {
            self.deliver(Whose::Caller(ask), Err(StoreError::ShutDown), &mut state);
        }
    }

    /// Stamps a batch, which takes no more commands now, and sends it off; or forwards it as it is.
    async fn send(
        &self,
        mut batch: Batch<R::Instant>,
        route: Route<R::Instant>,
        state: &mut State<R::Instant>,
    ) -> Option<OnItsWay<R::Instant>> {
        for ask in std::mem::take(&mut batch.gone) {
            self.give_up(ask, state);
        }
        if batch.whose.is_empty() {
            return None;
        }
        let commands = encode(&mut batch, &route, state);
        let whose = batch.whose;
        match route {
            Route::Here(leading) => Some(self.propose_here(leading, &commands, whose).await),
            Route::To(leader) => Some(self.forward_to(leader, commands, whose, state)),
            Route::Nowhere => None,
        }
    }

    async fn propose_here(
        &self,
        leading: Leading<R::Instant>,
        commands: &[EncodedCommand],
        whose: Vec<Whose<R::Instant>>,
    ) -> OnItsWay<R::Instant> {
        self.metrics.entry_proposed(commands.len());
        let id = leading.id;
        let in_line = match codec::join(commands) {
            Ok(body) => self.node.propose(leading.time(R::now()), body, id).await,
            Err(_) => Err(ProposeError::NotApplied {
                reason: too_long(commands),
            }),
        };
        Box::pin(async move {
            let result = match in_line {
                Ok(pending) => pending.await.map(|applied| applied.outcome),
                Err(error) => Err(error),
            };
            Done {
                whose,
                fate: Fate::Proposed { id, result },
            }
        })
    }

    fn forward_to(
        &self,
        leader: u64,
        commands: Vec<EncodedCommand>,
        whose: Vec<Whose<R::Instant>>,
        state: &mut State<R::Instant>,
    ) -> OnItsWay<R::Instant> {
        let forward = Arc::clone(&self.forward);
        let (recall, recalled) = oneshot::channel();
        state.recall = Some(recall);
        let asked = commands.len();
        Box::pin(async move {
            let outcomes = tokio::select! {
                biased;
                outcomes = forward.submit(leader, commands) => outcomes,
                _ = recalled => std::iter::repeat_n(Err(StoreError::Unknown), asked).collect(),
            };
            Done {
                whose,
                fate: Fate::Forwarded(outcomes),
            }
        })
    }
}

/// The commands of a batch as they are sent off. What is forwarded and must not be applied twice gets its number now, and
/// keeps it wherever it goes from here.
fn encode<I>(batch: &mut Batch<I>, route: &Route<I>, state: &mut State<I>) -> Vec<EncodedCommand> {
    if matches!(route, Route::To(_)) {
        for whose in &mut batch.whose {
            if let Whose::Caller(ask) = whose
                && (ask.origin, ask.request.repeat) == (Origin::Here, Repeat::NeedsNumber)
            {
                ask.number.get_or_insert_with(|| state.numbers.issue());
            }
        }
    }
    let encoded = batch.whose.iter_mut().map(|whose| match whose {
        Whose::Orphans(undoing) => undoing.command.clone(),
        Whose::Caller(Ask {
            request,
            number: Some(number),
            ..
        }) => {
            let numbered = request.command.numbered(&state.numbers.once(*number));
            // The largest command is a fraction of the largest entry.
            numbered.unwrap_or_else(|_| request.command.clone())
        }
        Whose::Caller(ask) => ask.request.command.clone(),
    });
    encoded.collect()
}

fn too_long(commands: &[EncodedCommand]) -> Refusal {
    Refusal::TooLong {
        bytes: commands
            .iter()
            .map(EncodedCommand::body_len)
            .fold(1, usize::saturating_add),
        max: ENTRY_BYTES_MAX,
    }
}

/// A disabled wait must still be an expression.
async fn sleep_until<R: Rt>(at: Option<R::Instant>) {
    match at {
        Some(at) => R::sleep_until(at).await,
        None => pending().await,
    }
}

/// Waits until there is something to undo; what was hindered is tried again after a while.
async fn orphans_ready<R: Rt>(orphans: &Orphans) {
    if orphans.any() {
        R::timeout(UNDO_AGAIN_AFTER, orphans.added()).await.unwrap_or(());
    } else {
        orphans.added().await;
    }
}

#[cfg(test)]
mod tests;
