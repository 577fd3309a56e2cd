//! The machine's rules once more, as plainly as they can be said: lists that are searched from end to end, no index,
//! no slot, no link. The machine must agree with it in everything that shows.

mod bounds;
mod keys;
mod leases;
mod queue;
mod redis;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::limits::{ISSUED_TOKEN_MAX, RENEW_MANY_MAX, SWEEP_RECORDS_MAX};
use crate::machine::{
    Applied, Command, Effect, EndReason, LeaseInfo, LeaseKey, Limits, MachineVersion, Outcome, Refusal,
    ReleaseCause, Stats,
};
use crate::types::{Attachment, FenceToken, Metadata, OwnerId, RequestId, Timestamp, Ttl};

#[derive(Debug)]
pub(in crate::machine::tests) struct Model {
    now: Timestamp,
    limits: Limits,
    /// The last token or the floor; `None` before a floor.
    last_token: Option<u64>,
    leases: BTreeMap<LeaseKey, Lease>,
    /// In order of arrival.
    waits: Vec<Waiting>,
    /// In order of the ends.
    over: Vec<Over>,
    endings: VecDeque<(LeaseKey, FenceToken, EndReason, Timestamp)>,
    incarnations: BTreeMap<u64, u64>,
    effects: Vec<Effect>,
    /// Keys whose queues are looked at once several commands are done; `None` between them.
    later: Option<Vec<LeaseKey>>,
}

#[derive(Debug)]
struct Lease {
    owner: OwnerId,
    token: FenceToken,
    since: Timestamp,
    deadline: Timestamp,
    ttl: Option<Ttl>,
    metadata: Option<Metadata>,
    request: Option<RequestId>,
    shortened_by_others: bool,
}

#[derive(Debug)]
struct Waiting {
    key: LeaseKey,
    owner: OwnerId,
    ttl: Ttl,
    metadata: Option<Metadata>,
    request: Option<RequestId>,
    attachment: Attachment,
    attempt_at: Timestamp,
    deadline: Timestamp,
    attached: bool,
}

#[derive(Debug)]
struct Over {
    key: LeaseKey,
    owner: OwnerId,
    id: RequestId,
    token: Option<FenceToken>,
    reason: EndReason,
    at: Timestamp,
}

impl Model {
    pub(in crate::machine::tests) fn new() -> Self {
        Self {
            now: Timestamp::ZERO,
            limits: Limits::default(),
            last_token: None,
            leases: BTreeMap::new(),
            waits: Vec::new(),
            over: Vec::new(),
            endings: VecDeque::new(),
            incarnations: BTreeMap::new(),
            effects: Vec::new(),
            later: None,
        }
    }

    pub(in crate::machine::tests) fn apply(&mut self, at: Timestamp, commands: &[Command]) -> Applied {
        self.now = self.now.max(at.min(Timestamp::LAST));
        self.forget_the_old();
        let outcomes = commands.iter().map(|command| self.one(command)).collect();
        self.sweep();
        Applied {
            outcomes,
            effects: std::mem::take(&mut self.effects),
        }
    }

    pub(in crate::machine::tests) fn last_token(&self) -> u64 {
        self.last_token.unwrap_or(0)
    }

    pub(in crate::machine::tests) fn next_due(&self) -> Option<Timestamp> {
        let leases = self.leases.values().map(|lease| lease.deadline);
        let waits = self.waits.iter().map(|wait| wait.deadline);
        leases.chain(waits).filter(|at| *at != Timestamp::NEVER).min()
    }

    pub(in crate::machine::tests) fn get(&self, key: &LeaseKey) -> Option<LeaseInfo> {
        let lease = self.leases.get(key)?;
        Some(LeaseInfo {
            name: key.name.clone(),
            owner: lease.owner.clone(),
            token: lease.token,
            granted_at: lease.since,
            deadline: lease.deadline,
            waiters: self.waiters_of(key),
            metadata: lease.metadata.clone(),
        })
    }

    pub(in crate::machine::tests) fn stats(&self) -> Stats {
        Stats {
            leases: self.leases.len() as u64,
            waiters: self.waits.len() as u64,
            requests: self.requests() as u64,
            endings: self.endings.len() as u64,
            bytes: self.bytes() as u64,
            last_token: self.last_token(),
        }
    }

    /// The attachments of all who stand in a queue.
    pub(in crate::machine::tests) fn parked(&self) -> BTreeSet<Attachment> {
        self.waits.iter().map(|wait| wait.attachment).collect()
    }

    fn one(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Tick => Outcome::Done,
            Command::Touch { key } => {
                self.touch(key);
                Outcome::Done
            }
            Command::Acquire(acquire) => self.acquire(acquire),
            Command::Renew(renewal) => self.renew(renewal),
            Command::RenewMany(renewals) if renewals.len() > RENEW_MANY_MAX => {
                let max = RENEW_MANY_MAX as u64;
                Outcome::Refused(Refusal::TooManyRenewals { max })
            }
            Command::RenewMany(renewals) => {
                Outcome::RenewedMany(renewals.iter().map(|renewal| self.renew(renewal)).collect())
            }
            Command::Release { key, token, cause } => {
                self.touch(key);
                if self.leases.get(key).is_none_or(|lease| lease.token != *token) {
                    return self.lost(key, *token);
                }
                self.end_and_serve(
                    key,
                    match cause {
                        ReleaseCause::Holder => EndReason::Released,
                        ReleaseCause::Orphaned => EndReason::Orphaned,
                    },
                )
            }
            Command::ReleaseByOwner { key, owner } => {
                self.touch(key);
                match self.leases.get(key) {
                    Some(lease) if lease.owner == *owner => self.end_and_serve(key, EndReason::Released),
                    _ => Outcome::NotFound,
                }
            }
            Command::Force { key, reason } => {
                self.touch(key);
                let reason = reason.clone();
                self.end_and_serve(key, EndReason::Forced { reason })
            }
            Command::Delete { key } => {
                self.touch(key);
                self.end_and_serve(key, EndReason::Overridden)
            }
            Command::SetTtl { key, ttl, condition } => self.set_ttl(key, *ttl, *condition),
            Command::Set(set) => self.set(set),
            Command::Cancel { key, owner, request } => self.cancel(key, owner, request),
            Command::Detach { attachment } => self.detach(*attachment),
            Command::NodeLost { node, incarnation } => {
                self.detach_all(|it| it.node == *node && it.incarnation <= *incarnation)
            }
            Command::NodeStarted { node, incarnation } => self.node_started(*node, *incarnation),
            Command::RaiseTokenFloor { floor } => {
                self.last_token = Some(self.last_token().max((*floor).min(ISSUED_TOKEN_MAX)));
                Outcome::Done
            }
            Command::Activate { version } if *version < MachineVersion::FIRST => {
                let active = MachineVersion::FIRST;
                Outcome::Refused(Refusal::VersionBelowActive { active })
            }
            Command::Activate { .. } => Outcome::Done,
            Command::SetLimits(limits) => {
                self.limits = *limits;
                Outcome::Done
            }
            Command::Key(command) => self.alone(command),
            Command::Transaction { watched, commands } => self.transaction(watched, commands),
            // Numbers have a model of their own, in `forwarding`.
            Command::Withdraw { .. } => Outcome::NotFound,
            // Scripts are compared with transactions, in `tests/scripts.rs`.
            Command::LoadScript { .. } | Command::RunScript(_) | Command::FlushScripts => unreachable!(),
        }
    }

    fn touch(&mut self, key: &LeaseKey) {
        if let Some(lease) = self.leases.get(key).filter(|lease| lease.deadline <= self.now) {
            let reason = if lease.shortened_by_others {
                EndReason::Overridden
            } else {
                EndReason::Expired
            };
            self.end_and_serve(key, reason);
        }
    }

    fn sweep(&mut self) {
        for _ in 0..SWEEP_RECORDS_MAX {
            let waits = self.waits.iter().enumerate();
            let wait = waits.map(|(index, wait)| (wait.deadline, index)).min();
            let leases = self.leases.iter();
            let lease = leases
                .map(|(key, lease)| (lease.deadline, lease.token, key))
                .min();
            match (wait, lease) {
                (Some((at, index)), _) if at <= self.now => {
                    self.end_wait(index);
                }
                (_, Some((at, _, key))) if at <= self.now => {
                    let key = key.clone();
                    self.touch(&key);
                }
                _ => return,
            }
        }
    }

    fn bound_endings(&mut self) {
        while self.endings.len() as u64 > self.limits.endings_max {
            self.endings.pop_front();
        }
    }

    fn forget_the_old(&mut self) {
        self.bound_endings();
        let memory = self.limits.request_memory_ms;
        let is_old = |at: Timestamp, now: Timestamp| {
            at.as_millis()
                .checked_add(memory)
                .is_some_and(|until| until < now.as_millis())
        };
        let now = self.now;
        self.over.retain(|over| !is_old(over.at, now));
        self.endings.retain(|(.., at)| !is_old(*at, now));
    }
}
