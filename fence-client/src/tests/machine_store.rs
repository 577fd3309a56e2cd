//! A store for tests: the real lease machine, on a clock of its own, without log and cluster.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what no command of a kind is answered fails the test"
)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use lease_core::machine::{
    Acquire, Applied, Command, Effect, EndReason, LeaseKey, LeaseMachine, Outcome, ReleaseCause, Renewal,
    Wait,
};
use lease_core::wire::{
    AcquireCommand, AcquireReply, CancelReply, ErrorWord, ForceReply, GetReply, LeaseCommand, LeaseVerb,
    LeaseView, LossReason, ReleaseReply, RenewManyReply, RenewReply, Reply, TokenReply,
};
use lease_core::{Attachment, Database, FenceToken, LeaseName, Timestamp};
use tokio::sync::oneshot;

use crate::call_error::CallError;
use crate::clock::Clock;
use crate::random::jitter;
use crate::testing::ManualClock;
use crate::transport::{Answered, Call, Lane, Request, Transport};

/// How often the store ends what is due.
const TICK: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct MachineStore {
    /// The store's own time; moved with the client's where a test says that real time passes for both.
    pub(super) clock: ManualClock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    machine: LeaseMachine,
    parked: BTreeMap<Attachment, oneshot::Sender<Outcome>>,
    attachments: u64,
    seen: Vec<LeaseCommand>,
}

impl MachineStore {
    pub(super) fn start() -> Arc<Self> {
        let state = State {
            machine: LeaseMachine::new(),
            parked: BTreeMap::new(),
            attachments: 0,
            seen: Vec::new(),
        };
        let store = Arc::new(Self {
            clock: ManualClock::new(),
            state: Mutex::new(state),
        });
        store.apply(&[Command::RaiseTokenFloor { floor: 0 }]);
        crate::tasks::spawn(tracing::Span::none(), tick(Arc::downgrade(&store)));
        store
    }

    /// Serves one request as the server does. Dropped, its caller is gone.
    pub(super) async fn execute(&self, command: LeaseCommand) -> Reply {
        self.state.lock().unwrap().seen.push(command.clone());
        match command {
            LeaseCommand::Acquire(command) => self.acquire(command).await,
            LeaseCommand::RenewMany(command) => {
                let renewals = command
                    .leases
                    .into_iter()
                    .map(|(name, token)| renewal(name, token));
                match self.one(Command::RenewMany(renewals.collect())) {
                    Outcome::RenewedMany(answers) => {
                        let answers = answers.into_iter().map(renew_reply).collect();
                        RenewManyReply { answers }.to_reply()
                    }
                    other => unexpected(&other),
                }
            }
            LeaseCommand::Release { name, token } => {
                let cause = ReleaseCause::Holder;
                match self.one(Command::Release {
                    key: key(name),
                    token,
                    cause,
                }) {
                    Outcome::Released { .. } => ReleaseReply::Released.to_reply(),
                    Outcome::Lost { reason } => ReleaseReply::Lost { reason: loss(reason) }.to_reply(),
                    other => unexpected(&other),
                }
            }
            LeaseCommand::Cancel { name, owner, request } => {
                match self.one(Command::Cancel {
                    key: key(name),
                    owner,
                    request,
                }) {
                    Outcome::Cancelled => CancelReply::Cancelled.to_reply(),
                    Outcome::Released { token } => CancelReply::Released { token }.to_reply(),
                    Outcome::NotFound => CancelReply::NotFound.to_reply(),
                    other => unexpected(&other),
                }
            }
            LeaseCommand::Force { name, reason } => match self.one(Command::Force {
                key: key(name),
                reason,
            }) {
                Outcome::Released { token } => ForceReply::Released { token }.to_reply(),
                Outcome::NotFound => ForceReply::NotHeld.to_reply(),
                other => unexpected(&other),
            },
            LeaseCommand::Get { name } => GetReply {
                lease: self.view(name),
            }
            .to_reply(),
            LeaseCommand::Token { name, owner } => {
                let view = self.view(name).filter(|view| view.owner == owner);
                TokenReply {
                    token: view.map(|view| view.token),
                }
                .to_reply()
            }
            other => Reply::error(
                ErrorWord::Err,
                format_args!("{} is not served here", other.verb()),
            ),
        }
    }

    async fn acquire(&self, command: AcquireCommand) -> Reply {
        let mut parked = self.park();
        let wait = (command.wait_ms > 0).then_some(Wait {
            for_ms: command.wait_ms,
            attachment: parked.attachment,
        });
        let mut outcome = self.one(Command::Acquire(Acquire {
            key: key(command.name),
            owner: command.owner,
            ttl: command.ttl,
            wait,
            request: command.request,
            metadata: command.metadata,
        }));
        if outcome == Outcome::Queued {
            outcome = parked.answer.take().unwrap().await.unwrap();
        }
        parked.answer = None;
        match outcome {
            Outcome::Granted {
                token,
                remaining_ms,
                waited_ms,
            } => AcquireReply::Granted {
                token,
                remaining_ms,
                waited_ms,
            }
            .to_reply(),
            Outcome::Held(holder) => AcquireReply::Held {
                token: holder.token,
                remaining_ms: holder.remaining_ms,
                owner: holder.owner,
                held_for_ms: holder.held_for_ms,
                waiters: holder.waiters,
            }
            .to_reply(),
            Outcome::Ended { token, reason } => AcquireReply::Ended {
                token,
                reason: loss(reason),
            }
            .to_reply(),
            Outcome::Cancelled => AcquireReply::Ended {
                token: None,
                reason: LossReason::Cancelled,
            }
            .to_reply(),
            other => unexpected(&other),
        }
    }

    fn park(&self) -> Parked<'_> {
        let mut state = self.state.lock().unwrap();
        state.attachments += 1;
        let attachment = Attachment {
            node: 1,
            incarnation: 1,
            number: state.attachments,
        };
        let (reply, answer) = oneshot::channel();
        state.parked.insert(attachment, reply);
        Parked {
            store: self,
            attachment,
            answer: Some(answer),
        }
    }

    /// Applies one command at the store's time.
    pub(super) fn one(&self, command: Command) -> Outcome {
        self.apply(&[command]).outcomes.remove(0)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(u64::try_from(self.clock.elapsed().as_millis()).unwrap())
    }

    fn is_due(&self) -> bool {
        let due = self.state.lock().unwrap().machine.next_due();
        due.is_some_and(|due| due <= self.now())
    }

    fn apply(&self, commands: &[Command]) -> Applied {
        let now = self.now();
        let mut state = self.state.lock().unwrap();
        let applied = state.machine.apply(now, commands).unwrap();
        for effect in &applied.effects {
            if let Effect::Woken { attachment, outcome } = effect
                && let Some(reply) = state.parked.remove(attachment)
            {
                let _ = reply.send(outcome.clone());
            }
        }
        applied
    }

    pub(super) fn view(&self, name: LeaseName) -> Option<LeaseView> {
        self.apply(&[Command::Touch {
            key: key(name.clone()),
        }]);
        let state = self.state.lock().unwrap();
        let (info, now) = (state.machine.get(&key(name))?, state.machine.now());
        Some(LeaseView {
            owner: info.owner,
            token: info.token,
            remaining_ms: (info.deadline != Timestamp::NEVER).then(|| info.deadline.millis_since(now)),
            held_for_ms: now.millis_since(info.granted_at),
            waiters: info.waiters,
            metadata: info.metadata,
        })
    }

    pub(super) fn holder_of(&self, name: &str) -> Option<FenceToken> {
        self.view(LeaseName::new(name).unwrap()).map(|view| view.token)
    }

    /// Callers in all queues.
    pub(super) fn waiters(&self) -> u64 {
        self.state.lock().unwrap().machine.stats().waiters
    }

    /// Leases held.
    pub(super) fn leases(&self) -> u64 {
        self.apply(&[Command::Tick]);
        self.state.lock().unwrap().machine.stats().leases
    }

    /// Requests of one kind so far.
    pub(super) fn seen(&self, verb: LeaseVerb) -> usize {
        let state = self.state.lock().unwrap();
        state.seen.iter().filter(|command| command.verb() == verb).count()
    }
}

/// A caller that waits for its answer. Dropped before it has it, the store learns that it is gone.
struct Parked<'a> {
    store: &'a MachineStore,
    attachment: Attachment,
    answer: Option<oneshot::Receiver<Outcome>>,
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.store.state.lock().unwrap().parked.remove(&self.attachment);
        self.store.apply(&[Command::Detach {
            attachment: self.attachment,
        }]);
    }
}

async fn tick(store: Weak<MachineStore>) {
    loop {
        tokio::time::sleep(TICK).await;
        let Some(store) = store.upgrade() else { return };
        if store.is_due() {
            store.apply(&[Command::Tick]);
        }
    }
}

fn key(name: LeaseName) -> LeaseKey {
    LeaseKey::new(Database::ZERO, name)
}

fn renewal(name: LeaseName, token: FenceToken) -> Renewal {
    Renewal {
        key: key(name),
        token,
        ttl: None,
    }
}

fn renew_reply(outcome: Outcome) -> RenewReply {
    match outcome {
        Outcome::Renewed { remaining_ms } => RenewReply::Renewed { remaining_ms },
        Outcome::Lost { reason } => RenewReply::Lost { reason: loss(reason) },
        other => panic!("{other:?}"),
    }
}

fn unexpected(outcome: &Outcome) -> Reply {
    Reply::error(ErrorWord::Unknown, format_args!("{outcome:?}"))
}

fn loss(reason: EndReason) -> LossReason {
    match reason {
        EndReason::Expired => LossReason::Expired,
        EndReason::Released => LossReason::Released,
        EndReason::Forced { reason } => LossReason::Forced { reason },
        EndReason::Superseded => LossReason::Superseded,
        EndReason::Overridden => LossReason::Overridden,
        EndReason::Orphaned => LossReason::Orphaned,
        EndReason::Cancelled => LossReason::Cancelled,
        EndReason::Unknown => LossReason::Unknown,
    }
}

/// The store without sockets, each answer after a random latency.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) store: Arc<MachineStore>,
    pub(super) clock: Clock,
    pub(super) latency_max: Duration,
    pub(super) counted_from: CountedFrom,
}

/// Which moment the transport calls the send. Only a negative control lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedFrom {
    Send,
    Receipt,
}

impl Transport for Direct {
    fn call(&self, _: Lane, request: Request) -> Call<'_> {
        Box::pin(async move {
            let patience = request.patience;
            let sent = self.clock.now();
            let command = request.into_command().ok_or(CallError::Withdrawn)?;
            let answered = tokio::time::timeout(patience, async {
                let reply = self.store.execute(command).await;
                if !self.latency_max.is_zero() {
                    let nanos = u64::try_from(self.latency_max.as_nanos()).unwrap();
                    tokio::time::sleep(Duration::from_nanos(jitter() % nanos)).await;
                }
                reply
            });
            let reply = answered.await.map_err(|_| CallError::NoAnswer { patience })?;
            let sent = match self.counted_from {
                CountedFrom::Send => sent,
                CountedFrom::Receipt => self.clock.now(),
            };
            Ok(Answered { reply, sent })
        })
    }

    fn reach(&self) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
