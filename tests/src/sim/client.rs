//! A client: it takes leases and works under them, reads, forces, comes too late, and loses its patience.
//!
//! It is a process of its own, with a clock of its own, and may stand still at any time.

use std::time::Duration;

use lease_core::machine::{LeaseKey, Set, SetCondition, SetExpiry};
use lease_core::wire::{
    AcquireCommand, AcquireReply, CancelReply, ForceReply, ReleaseReply, RenewCommand, RenewReply,
};
use lease_core::{Database, FenceToken, LeaseName, Metadata, OwnerId, RequestId, Ttl};
use lease_store::Stored;
use lease_store::runtime::{AsyncRuntime as _, Instant as _};
use lease_store::simulation::{NodeInstant, NodeRt};

use super::note::now;
use super::stage::{NODES, Phase, Stage};
use super::wire::{self, Answer, Ask, NoAnswer};
use crate::history::{Micros, Op, Outcome, Record};
use crate::random::Random;

/// How often a client asks once more when it does not know.
const ATTEMPTS_MAX: u32 = 6;

/// How long a client that comes too late waits for its answer.
const LATE_RENEWAL_WITHIN: Duration = Duration::from_millis(800);

/// A client.
pub(super) struct Client {
    pub(super) stage: Stage,
    pub(super) id: u32,
    pub(super) random: Random,
    /// How much faster than true time its clock goes.
    pub(super) ppm: i32,
    pub(super) started: NodeInstant,
    pub(super) requests: u64,
    /// Leases that it held once.
    pub(super) old: Vec<(String, FenceToken, Duration)>,
    pub(super) names: u32,
}

/// A lease that was granted to this client just now.
#[derive(Debug, Clone)]
pub(super) struct Granted {
    pub(super) name: String,
    pub(super) token: FenceToken,
    pub(super) ttl: Duration,
    /// When the request that was answered was sent, on the client's clock.
    pub(super) sent: Duration,
    pub(super) waited: Duration,
    pub(super) remaining: Duration,
}

/// The only name on which force is used.
pub(super) const FORCED: &str = "forced";

impl Client {
    pub(super) async fn run(mut self) {
        while self.stage.phase() == Phase::Safety {
            match self.random.below(100) {
                0..62 => self.acquire_and_work().await,
                62..72 => self.set_and_work().await,
                72..86 => self.read().await,
                86..91 => self.force().await,
                91..97 => self.come_too_late().await,
                _ => {}
            }
            let pause = self.random.below(150);
            NodeRt::sleep(Duration::from_millis(pause)).await;
        }
        self.stage.notes().say(&format!("c{} is done", self.id));
    }

    /// The time on its own clock.
    pub(super) fn local(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn node(&mut self) -> u64 {
        *self.random.choose(&NODES)
    }

    fn some_name(&mut self) -> String {
        if self.random.percent(15) {
            return FORCED.to_owned();
        }
        format!("lease-{}", self.random.below(u64::from(self.names)))
    }

    pub(super) fn patience(&mut self) -> Duration {
        let most = *self.random.choose(&[150, 400, 1_000, 2_500]);
        Duration::from_millis(20 + self.random.below(most))
    }

    pub(super) async fn ask(&mut self, asked: Ask, within: Duration) -> Result<Answer, NoAnswer> {
        let node = self.node();
        let stage = self.stage.clone();
        let answer = wire::ask(&stage, &mut self.random, node, asked, within).await;
        if matches!(answer, Err(NoAnswer::NotApplied)) {
            self.stage.notes().count("not applied");
        }
        answer
    }

    pub(super) fn record(&self, op: Op, name: &str, call: Micros) -> Record {
        Record {
            process: self.id,
            op,
            resource: name.to_owned(),
            request_id: None,
            call,
            returned: Some(now()),
            outcome: Outcome::Ok,
            token: None,
            ttl_ms: None,
        }
    }

    /// Of what may have been applied.
    pub(super) fn unknown(record: Record) -> Record {
        Record {
            returned: None,
            outcome: Outcome::Unknown,
            ..record
        }
    }

    async fn acquire_and_work(&mut self) {
        let name = self.some_name();
        let ttl = Duration::from_millis(*self.random.choose(&[300, 700, 1_500, 3_000]));
        let granted = self.acquire(&name, ttl).await;
        if let Some(granted) = granted {
            self.work_under(granted).await;
        }
    }

    /// Makes some entries long, so that there are snapshots.
    fn metadata(&mut self) -> Option<Metadata> {
        let long = self.random.percent(50);
        let bytes = vec![b'm'; usize::try_from(self.random.below(800)).unwrap_or_default()];
        let metadata = Metadata::new(bytes).unwrap_or_else(|error| panic!("harness: {error}"));
        long.then_some(metadata)
    }

    /// Asks for a lease until there is an answer or the client's patience is at its end.
    async fn acquire(&mut self, name: &str, ttl: Duration) -> Option<Granted> {
        self.requests += 1;
        let owner = format!("c{}-{}", self.id, self.requests);
        let has_request = self.random.percent(80);
        let wait_ms = *self.random.choose(&[0, 0, 200, 1_000, 4_000]);
        let command = AcquireCommand {
            name: lease_name(name),
            owner: owner_id(&owner),
            ttl: ttl_of(ttl),
            wait_ms,
            request: has_request.then(|| request_id(&owner)),
            metadata: self.metadata(),
        };
        let attempts = if has_request { ATTEMPTS_MAX } else { 1 };
        let mut applied = false;
        for attempt in 0..attempts {
            if attempt > 0 {
                self.stage.notes().count("acquire retried");
                let pause = 20 + self.random.below(150);
                NodeRt::sleep(Duration::from_millis(pause)).await;
            }
            let within = self.patience() + Duration::from_millis(self.random.below(wait_ms + 1));
            let (call, sent) = (now(), self.local());
            let answer = self.ask(Ask::Acquire(command.clone()), within).await;
            let record = Record {
                request_id: has_request.then(|| owner.clone()),
                ttl_ms: Some(millis(ttl)),
                ..self.record(Op::Acquire, name, call)
            };
            match answer {
                Ok(Answer::Acquire(reply)) => return self.acquired(record, reply, (ttl, sent)),
                Ok(other) => self
                    .stage
                    .notes()
                    .wrong(format!("an acquire was answered {other:?}")),
                Err(NoAnswer::Unknown) => {
                    applied = true;
                    self.stage.notes().record(Self::unknown(record));
                }
                Err(NoAnswer::NotApplied) => {}
            }
        }
        if !applied {
            self.stage.notes().never_applied(&owner);
        } else if has_request && self.random.percent(50) {
            self.cancel(name, &owner).await;
        }
        None
    }

    fn acquired(
        &mut self,
        record: Record,
        reply: AcquireReply,
        (ttl, sent): (Duration, Duration),
    ) -> Option<Granted> {
        match reply {
            AcquireReply::Granted {
                token,
                remaining_ms,
                waited_ms,
            } => {
                if waited_ms > 0 {
                    self.stage.notes().count("acquire waited");
                }
                let remaining_ms = remaining_ms.unwrap_or_default();
                let granted = Granted {
                    name: record.resource.clone(),
                    token,
                    ttl,
                    sent,
                    waited: Duration::from_millis(waited_ms),
                    remaining: Duration::from_millis(remaining_ms),
                };
                self.stage.notes().record(Record {
                    token: Some(token.get()),
                    ttl_ms: Some(waited_ms + remaining_ms),
                    ..record
                });
                Some(granted)
            }
            AcquireReply::Held { token, owner, .. } => {
                self.stage.notes().shown(owner.as_bytes());
                self.stage.notes().record(Record {
                    token: Some(token.get()),
                    outcome: Outcome::Fail,
                    ..record
                });
                None
            }
            AcquireReply::Ended { token, .. } => {
                self.stage.notes().record(Record {
                    token: token.map(FenceToken::get),
                    outcome: Outcome::Ended,
                    ..record
                });
                None
            }
        }
    }

    /// Gives a request up. A lease that it was granted unseen is over then.
    async fn cancel(&mut self, name: &str, owner: &str) {
        let asked = Ask::Cancel(lease_name(name), owner_id(owner), request_id(owner));
        let within = self.patience();
        let call = now();
        match self.ask(asked, within).await {
            Ok(Answer::Cancel(reply)) => {
                self.stage.notes().count("cancel answered");
                if let CancelReply::Released { token } = reply {
                    let record = self.record(Op::Release, name, call);
                    self.stage.notes().record(Record {
                        token: Some(token.get()),
                        ..record
                    });
                }
            }
            Ok(other) => self
                .stage
                .notes()
                .wrong(format!("a cancel was answered {other:?}")),
            Err(_) => {}
        }
    }

    /// As a Redis client does: SET NX PX with a value of its own.
    async fn set_and_work(&mut self) {
        let name = self.some_name();
        self.requests += 1;
        let owner = format!("c{}-{}", self.id, self.requests);
        let ttl = Duration::from_millis(*self.random.choose(&[500, 1_500]));
        let set = Set {
            key: LeaseKey::new(Database::ZERO, lease_name(&name)),
            value: owner_id(&owner),
            expiry: SetExpiry::In(ttl_of(ttl)),
            condition: SetCondition::IfAbsent,
        };
        let within = self.patience();
        let (call, sent) = (now(), self.local());
        let answer = self.ask(Ask::Set(set), within).await;
        let record = Record {
            ttl_ms: Some(millis(ttl)),
            ..self.record(Op::Acquire, &name, call)
        };
        match answer {
            Ok(Answer::Set(Stored::Yes { token, .. })) => {
                self.stage.notes().count("set answered");
                self.stage.notes().record(Record {
                    token: Some(token.get()),
                    ..record
                });
                let granted = Granted {
                    name,
                    token,
                    ttl,
                    sent,
                    waited: Duration::ZERO,
                    remaining: ttl,
                };
                self.work_under(granted).await;
            }
            Ok(Answer::Set(Stored::No { .. })) => self.stage.notes().record(Record {
                outcome: Outcome::Fail,
                ..record
            }),
            Ok(other) => self.stage.notes().wrong(format!("a SET was answered {other:?}")),
            Err(NoAnswer::Unknown) => self.stage.notes().record(Self::unknown(record)),
            Err(NoAnswer::NotApplied) => self.stage.notes().never_applied(&owner),
        }
    }

    async fn read(&mut self) {
        let name = self.some_name();
        let within = self.patience();
        let call = now();
        match self.ask(Ask::Get(lease_name(&name)), within).await {
            Ok(Answer::Get(reply)) => {
                let lease = reply.lease;
                if let Some(lease) = &lease {
                    self.stage.notes().shown(lease.owner.as_bytes());
                }
                let record = self.record(Op::Read, &name, call);
                self.stage.notes().record(Record {
                    token: lease.as_ref().map(|lease| lease.token.get()),
                    ttl_ms: lease.and_then(|lease| lease.remaining_ms),
                    ..record
                });
            }
            Ok(other) => self.stage.notes().wrong(format!("a read was answered {other:?}")),
            Err(_) => {}
        }
    }

    async fn force(&mut self) {
        let within = self.patience();
        let call = now();
        let answer = self.ask(Ask::Force(lease_name(FORCED)), within).await;
        let record = self.record(Op::Force, FORCED, call);
        match answer {
            Ok(Answer::Force(ForceReply::Released { token })) => self.stage.notes().record(Record {
                token: Some(token.get()),
                ..record
            }),
            Ok(Answer::Force(ForceReply::NotHeld)) => self.stage.notes().record(Record {
                outcome: Outcome::Fail,
                ..record
            }),
            Ok(other) => self
                .stage
                .notes()
                .wrong(format!("a force was answered {other:?}")),
            Err(NoAnswer::Unknown) => self.stage.notes().record(Self::unknown(record)),
            Err(NoAnswer::NotApplied) => {}
        }
    }

    /// Renews a lease that it gave up, released or lost long ago.
    async fn come_too_late(&mut self) {
        if self.old.is_empty() {
            return;
        }
        let (name, token, ttl) = self.random.choose(&self.old).clone();
        self.stage.notes().count("zombie renewal");
        self.renew((&name, token, ttl), LATE_RENEWAL_WITHIN).await;
    }

    /// One renewal; what remains of the lease then, or why there is none.
    pub(super) async fn renew(
        &mut self,
        (name, token, ttl): (&str, FenceToken, Duration),
        within: Duration,
    ) -> Renewed {
        let call = now();
        let many = self.random.percent(50);
        let asked = if many {
            Ask::RenewMany(lease_core::wire::RenewManyCommand {
                leases: vec![(lease_name(name), token)],
            })
        } else {
            Ask::Renew(RenewCommand {
                name: lease_name(name),
                token,
                ttl: None,
            })
        };
        let reply = match self.ask(asked, within).await {
            Ok(Answer::Renew(reply)) => reply,
            Ok(Answer::RenewMany(many)) if many.answers.len() == 1 => {
                many.answers.into_iter().next().unwrap_or(RenewReply::Lost {
                    reason: lease_core::wire::LossReason::Unknown,
                })
            }
            Ok(other) => {
                self.stage
                    .notes()
                    .wrong(format!("a renewal was answered {other:?}"));
                return Renewed::Unknown;
            }
            Err(NoAnswer::Unknown) => {
                let record = Record {
                    token: Some(token.get()),
                    ttl_ms: Some(millis(ttl)),
                    ..self.record(Op::Renew, name, call)
                };
                self.stage.notes().record(Self::unknown(record));
                return Renewed::Unknown;
            }
            Err(NoAnswer::NotApplied) => return Renewed::Unknown,
        };
        let record = Record {
            token: Some(token.get()),
            ..self.record(Op::Renew, name, call)
        };
        match reply {
            RenewReply::Renewed { remaining_ms } => {
                self.stage.notes().record(Record {
                    ttl_ms: remaining_ms,
                    ..record
                });
                Renewed::Yes(Duration::from_millis(remaining_ms.unwrap_or_default()))
            }
            RenewReply::Lost { .. } => {
                self.stage.notes().record(Record {
                    outcome: Outcome::Fail,
                    ..record
                });
                Renewed::Lost
            }
        }
    }

    /// Releases a lease, and asks again until there is an answer or no patience left.
    pub(super) async fn release(&mut self, name: &str, token: FenceToken) {
        for _ in 0..ATTEMPTS_MAX {
            let within = self.patience();
            let call = now();
            let answer = self.ask(Ask::Release(lease_name(name), token), within).await;
            let record = Record {
                token: Some(token.get()),
                ..self.record(Op::Release, name, call)
            };
            match answer {
                Ok(Answer::Release(ReleaseReply::Released)) => return self.stage.notes().record(record),
                Ok(Answer::Release(ReleaseReply::Lost { .. })) => {
                    return self.stage.notes().record(Record {
                        outcome: Outcome::Fail,
                        ..record
                    });
                }
                Ok(other) => self
                    .stage
                    .notes()
                    .wrong(format!("a release was answered {other:?}")),
                Err(NoAnswer::Unknown) => self.stage.notes().record(Self::unknown(record)),
                Err(NoAnswer::NotApplied) => {}
            }
        }
    }
}

/// What came of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewed {
    Yes(Duration),
    Lost,
    Unknown,
}

pub(super) fn lease_name(name: &str) -> LeaseName {
    LeaseName::new(name).unwrap_or_else(|error| panic!("harness: {error}"))
}

pub(super) fn owner_id(owner: &str) -> OwnerId {
    OwnerId::new(owner).unwrap_or_else(|error| panic!("harness: {error}"))
}

fn request_id(request: &str) -> RequestId {
    RequestId::new(request).unwrap_or_else(|error| panic!("harness: {error}"))
}

pub(super) fn ttl_of(ttl: Duration) -> Ttl {
    Ttl::from_duration(ttl).unwrap_or_else(|error| panic!("harness: {error}"))
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
