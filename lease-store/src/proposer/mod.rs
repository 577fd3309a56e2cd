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
//! has no outcome after [`ANSWER_WITHIN`] is told that it is unknown. Its grant, if one comes later, is an orphan.

mod batch;

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lease_core::limits::BATCH_COMMANDS_MAX;
use lease_core::machine::Outcome;
use lease_core::machine::codec::{self, EncodedCommand};
use tokio::sync::{mpsc, oneshot, watch};

use self::batch::{Ask, Batch, Whose};
use crate::error::StoreError;
use crate::forward::Forward;
use crate::metrics::Metrics;
use crate::orphans::{IfUndelivered, Orphans};
use crate::raft::error::{ProposeError, Refusal};
use crate::raft::types::LeadershipId;
use crate::replica::Node;
use crate::role::{Leading, Role};
use crate::runtime::{Instant, Rt};
use crate::waiters::Waiters;

pub(crate) use self::batch::Origin;

/// Two full batches: what waits beyond that waits at its caller.
const MAILBOX_DEPTH: usize = 2 * BATCH_COMMANDS_MAX;
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
/// How long a caller waits for an outcome. Longer than [`LEADER_WITHIN`], so that whoever was surely not applied is told
/// so.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_000);

/// The way to the proposer.
#[derive(Debug)]
pub(crate) struct ProposerHandle<I> {
    mailbox: mpsc::Sender<Ask<I>>,
    orphans: Arc<Orphans>,
    /// Counts what was asked: whatever is tried again keeps its place among the others.
    asked: Arc<AtomicU64>,
}

/// A batch that has its outcomes, or will not have them.
struct Done<I> {
    whose: Vec<Whose<I>>,
    fate: Fate,
}

/// What became of a batch.
enum Fate {
    /// Proposed here.
    Proposed {
        id: LeadershipId,
        result: Result<Vec<Outcome>, ProposeError>,
    },
    /// Forwarded.
    Forwarded(Vec<Result<Outcome, StoreError>>),
}

type OnItsWay<I> = Pin<Box<dyn Future<Output = Done<I>> + Send>>;
type UnderWay<I> = FuturesUnordered<OnItsWay<I>>;

/// Where commands go now.
#[derive(Debug, Clone, Copy)]
enum Route<I> {
    Here(Leading<I>),
    To(u64),
    Nowhere,
}

/// What the proposer remembers between batches.
struct State<I> {
    /// Callers that wait for a leader, oldest first.
    waiting: VecDeque<Ask<I>>,
    /// A leadership of this node that Raft did not serve, and until when it is left alone: its end is seen late.
    refused: Option<(LeadershipId, I)>,
    /// Where the batches under way went. Another way is taken only once they are back: what they bring back comes first.
    target: Option<Target>,
    /// No forwarding before: the leader that is known was not there.
    not_before: Option<I>,
}

impl<I: Instant> State<I> {
    /// When something is to be done although nothing happens.
    fn wakes_at(&self) -> Option<I> {
        let overdue = self.waiting.front().map(|ask| ask.asked_at + LEADER_WITHIN);
        let again = self.refused.map(|(_, until)| until);
        overdue.into_iter().chain(self.not_before).chain(again).min()
    }
}

/// Where a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Here(LeadershipId),
    To(u64),
}

impl<I> Route<I> {
    const fn target(&self) -> Option<Target> {
        match self {
            Self::Here(leading) => Some(Target::Here(leading.id)),
            Self::To(leader) => Some(Target::To(*leader)),
            Self::Nowhere => None,
        }
    }
}

/// What the proposer works with.
pub(crate) struct Proposer<R: Rt> {
    pub(crate) node: Node<R>,
    pub(crate) role: watch::Receiver<Role<R::Instant>>,
    pub(crate) forward: Arc<dyn Forward>,
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) metrics: Arc<Metrics>,
}

impl<I: Instant> ProposerHandle<I> {
    /// Proposes one command of a caller here, and waits for its outcome.
    ///
    /// # Errors
    /// [`StoreError`] says whether it may have been applied.
    ///
    /// # Cancel safety
    /// A command that is not in the log yet is dropped. One that is stays; a grant that nobody waits for any more is
    /// treated as `if_undelivered` says.
    pub(crate) async fn propose<R: Rt<Instant = I>>(
        &self,
        command: EncodedCommand,
        if_undelivered: IfUndelivered,
    ) -> Result<Outcome, StoreError> {
        let asked = self.ask::<R>(command, if_undelivered, Origin::Here);
        R::timeout(ANSWER_WITHIN, asked)
            .await
            .unwrap_or(Err(StoreError::Unknown))
    }

    /// Proposes one command that another node forwarded. That node bounds how long it waits.
    pub(crate) async fn propose_for_peer<R: Rt<Instant = I>>(
        &self,
        command: EncodedCommand,
        if_undelivered: IfUndelivered,
    ) -> Result<Outcome, StoreError> {
        self.ask::<R>(command, if_undelivered, Origin::Peer).await
    }

    async fn ask<R: Rt<Instant = I>>(
        &self,
        command: EncodedCommand,
        if_undelivered: IfUndelivered,
        origin: Origin,
    ) -> Result<Outcome, StoreError> {
        let (reply, answer) = oneshot::channel();
        let mut answer = Answer {
            answer,
            if_undelivered: if_undelivered.clone(),
            orphans: &self.orphans,
        };
        let ask = Ask {
            command,
            if_undelivered,
            origin,
            sequence: self.asked.fetch_add(1, Ordering::Relaxed),
            asked_at: R::now(),
            reply,
        };
        self.mailbox.send(ask).await.map_err(|_| StoreError::ShutDown)?;
        // The proposer answers everything that it took, unless it was ended in the middle.
        (&mut answer.answer).await.unwrap_or(Err(StoreError::Unknown))
    }
}

impl<I> Clone for ProposerHandle<I> {
    fn clone(&self) -> Self {
        Self {
            mailbox: self.mailbox.clone(),
            orphans: Arc::clone(&self.orphans),
            asked: Arc::clone(&self.asked),
        }
    }
}

/// An answer under way. Dropping it before it was looked at leaves a grant to the orphans.
struct Answer<'a> {
    answer: oneshot::Receiver<Result<Outcome, StoreError>>,
    if_undelivered: IfUndelivered,
    orphans: &'a Orphans,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(outcome)) = self.answer.try_recv() {
            self.orphans.undelivered(&outcome, &self.if_undelivered);
        }
    }
}

impl<R: Rt> Proposer<R> {
    /// The handle, and the task to run.
    pub(crate) fn with_mailbox(self) -> (ProposerHandle<R::Instant>, impl Future<Output = ()> + Send) {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let handle = ProposerHandle {
            mailbox,
            orphans: Arc::clone(&self.orphans),
            asked: Arc::default(),
        };
        (handle, self.run(inbox))
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Ask<R::Instant>>) {
        let mut under_way = UnderWay::new();
        let mut state = State {
            waiting: VecDeque::new(),
            refused: None,
            target: None,
            not_before: None,
        };
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
                under_way.extend(self.send(batch, route).await);
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
                    under_way.extend(self.send(batch, route).await);
                }
                ask = inbox.recv(), if takes => match ask {
                    None => break,
                    Some(ask) if sends => {
                        let batch = Batch::fill(&orphans, Some(ask), &mut state.waiting, &mut inbox);
                        under_way.extend(self.send(batch, route).await);
                    }
                    Some(ask) => self.put_aside(ask, &mut state),
                },
                () = sleep_until::<R>(wakes_at) => self.refuse_overdue(&mut state),
            }
        }
        while let Some(done) = under_way.next().await {
            self.on_done(done, &mut state);
        }
    }

    /// To the current leadership of this node, unless it failed, or Raft has just refused it; else to the leader that is
    /// known.
    fn route(&mut self, state: &mut State<R::Instant>) -> Route<R::Instant> {
        let role = *self.role.borrow_and_update();
        if state.not_before.is_some_and(|at| R::now() >= at) {
            state.not_before = None;
        }
        if state.refused.is_some_and(|(_, until)| R::now() >= until) {
            state.refused = None;
        }
        match role {
            _ if self.node.failure().is_some() => Route::Nowhere,
            Role::Leading(leading) if state.refused.is_some_and(|(id, _)| id == leading.id) => Route::Nowhere,
            Role::Following { .. } if state.not_before.is_some() => Route::Nowhere,
            Role::Leading(leading) => Route::Here(leading),
            Role::Following { leader: Some(leader) } => Route::To(leader),
            Role::Following { leader: None } => Route::Nowhere,
        }
    }

    /// Stamps a batch, which takes no more commands now, and sends it off; or forwards it as it is.
    async fn send(&self, batch: Batch<R::Instant>, route: Route<R::Instant>) -> Option<OnItsWay<R::Instant>> {
        if batch.commands.is_empty() {
            return None;
        }
        let Batch { commands, whose, .. } = batch;
        match route {
            Route::Here(leading) => {
                self.metrics.entry_proposed(commands.len());
                let body = codec::join(&commands);
                let id = leading.id;
                let in_line = self.node.propose(leading.time(R::now()), body, id).await;
                Some(Box::pin(async move {
                    let result = match in_line {
                        Ok(pending) => pending.await.map(|applied| applied.outcome),
                        Err(error) => Err(error),
                    };
                    Done {
                        whose,
                        fate: Fate::Proposed { id, result },
                    }
                }))
            }
            Route::To(leader) => {
                let forward = Arc::clone(&self.forward);
                Some(Box::pin(async move {
                    let outcomes = forward.submit(leader, commands).await;
                    Done {
                        whose,
                        fate: Fate::Forwarded(outcomes),
                    }
                }))
            }
            Route::Nowhere => None,
        }
    }

    /// Answers the callers of a batch.
    fn on_done(&self, Done { whose, fate }: Done<R::Instant>, state: &mut State<R::Instant>) {
        match fate {
            Fate::Proposed {
                result: Ok(outcomes), ..
            } => {
                for (whose, outcome) in whose.into_iter().zip(outcomes) {
                    self.deliver(whose, Ok(outcome));
                }
            }
            Fate::Proposed {
                id,
                result: Err(error),
            } => {
                tracing::debug!(%error, commands = whose.len(), "an entry was not applied, or may not have been");
                if !matches!(
                    error,
                    ProposeError::NotApplied {
                        reason: Refusal::TooLong { .. }
                    }
                ) {
                    state.refused = Some((id, R::now() + PROPOSE_AGAIN_AFTER));
                }
                let told = self.store_error(&error);
                for whose in whose {
                    self.deliver_or_put_aside(whose, Err(told.clone()), state);
                }
            }
            Fate::Forwarded(outcomes) => {
                for (whose, outcome) in whose.into_iter().zip(outcomes) {
                    if matches!(outcome, Err(StoreError::Unavailable { .. })) {
                        state
                            .not_before
                            .get_or_insert_with(|| R::now() + FORWARD_AGAIN_AFTER);
                    }
                    self.deliver_or_put_aside(whose, outcome, state);
                }
            }
        }
    }

    /// What was surely not applied is tried again while its caller still waits: a change of leaders need not be seen.
    fn deliver_or_put_aside(
        &self,
        whose: Whose<R::Instant>,
        outcome: Result<Outcome, StoreError>,
        state: &mut State<R::Instant>,
    ) {
        match (whose, outcome) {
            (Whose::Caller(ask), Err(StoreError::Unavailable { .. })) => self.put_aside(ask, state),
            (whose, outcome) => self.deliver(whose, outcome),
        }
    }

    /// Keeps a caller until there is a leader, or its time is over.
    fn put_aside(&self, ask: Ask<R::Instant>, state: &mut State<R::Instant>) {
        let late = R::now() >= ask.asked_at + LEADER_WITHIN;
        if late || ask.origin == Origin::Peer || self.node.failure().is_some() {
            self.refuse(ask);
        } else {
            let place = state
                .waiting
                .partition_point(|other| other.sequence < ask.sequence);
            state.waiting.insert(place, ask);
        }
    }

    fn refuse_overdue(&self, state: &mut State<R::Instant>) {
        let now = R::now();
        while state
            .waiting
            .front()
            .is_some_and(|ask| now >= ask.asked_at + LEADER_WITHIN)
            && let Some(ask) = state.waiting.pop_front()
        {
            self.refuse(ask);
        }
    }

    fn deliver(&self, whose: Whose<R::Instant>, outcome: Result<Outcome, StoreError>) {
        match whose {
            Whose::Caller(Ask {
                reply,
                if_undelivered,
                ..
            }) => {
                if let Err(Ok(outcome)) = reply.send(outcome) {
                    self.orphans.undelivered(&outcome, &if_undelivered);
                }
            }
            Whose::Orphans(undoing) => match outcome {
                Ok(_) => undoing
                    .detaches
                    .into_iter()
                    .for_each(|attachment| self.waiters.forget(attachment)),
                Err(_) => self.orphans.again(undoing),
            },
        }
    }

    fn refuse(&self, ask: Ask<R::Instant>) {
        let failed = |failure| StoreError::Failed(Arc::new(failure));
        let unavailable = StoreError::Unavailable {
            leader: self.role.borrow().leader(),
        };
        // A caller that is gone needs no answer.
        let _ = ask
            .reply
            .send(Err(self.node.failure().map_or(unavailable, failed)));
    }

    fn store_error(&self, error: &ProposeError) -> StoreError {
        let failure = self.node.failure();
        match (error, failure) {
            (
                ProposeError::NotApplied {
                    reason: Refusal::TooLong { .. },
                },
                _,
            ) => StoreError::TooLarge,
            (_, Some(failure)) => StoreError::Failed(Arc::new(failure)),
            (ProposeError::NotApplied { .. }, None) => StoreError::Unavailable {
                leader: self.role.borrow().leader(),
            },
            (ProposeError::Unknown { .. }, None) => StoreError::Unknown,
        }
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
