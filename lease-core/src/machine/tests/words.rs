//! The words that the tests of the machine are written in.

use crate::machine::{
    Acquire, Command, Effect, EndReason, LeaseKey, LeaseMachine, Outcome, Refusal, ReleaseCause, Renewal,
    Set, SetCondition, SetExpiry, TtlCondition, Wait,
};
use crate::types::{
    Attachment, Database, FenceToken, LeaseName, Metadata, OwnerId, RequestId, SharedBytes, Timestamp, Ttl,
};

pub(super) fn key(name: &str) -> LeaseKey {
    LeaseKey::new(Database::ZERO, LeaseName::new(name).unwrap())
}

pub(super) fn owner(name: &str) -> OwnerId {
    OwnerId::new(name).unwrap()
}

pub(super) fn ttl(millis: u64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}

pub(super) fn token(number: u64) -> FenceToken {
    FenceToken::new(number).unwrap()
}

pub(super) fn request(id: &str) -> RequestId {
    RequestId::new(id).unwrap()
}

/// A caller parked at node 1, in its first life.
pub(super) fn caller(number: u64) -> Attachment {
    parked_at(1, 1, number)
}

pub(super) fn parked_at(node: u64, incarnation: u64, number: u64) -> Attachment {
    Attachment {
        node,
        incarnation,
        number,
    }
}

/// A request for a lease in the making.
#[derive(Debug, Clone)]
pub(super) struct Ask(Acquire);

/// `owner` asks for `name` for so many milliseconds.
pub(super) fn ask(name: &str, owner_name: &str, ttl_ms: u64) -> Ask {
    Ask(Acquire {
        key: key(name),
        owner: owner(owner_name),
        ttl: ttl(ttl_ms),
        wait: None,
        request: None,
        metadata: None,
    })
}

impl Ask {
    pub(super) fn waiting(mut self, for_ms: u64, attachment: Attachment) -> Self {
        self.0.wait = Some(Wait { for_ms, attachment });
        self
    }

    pub(super) fn requested(mut self, id: &str) -> Self {
        self.0.request = Some(request(id));
        self
    }

    pub(super) fn with_metadata(mut self, metadata: &str) -> Self {
        self.0.metadata = Some(Metadata::new(metadata).unwrap());
        self
    }

    pub(super) fn in_database(mut self, number: u64) -> Self {
        self.0.key.database = Database::new(number).unwrap();
        self
    }
}

impl From<Ask> for Command {
    fn from(ask: Ask) -> Self {
        Self::Acquire(ask.0)
    }
}

pub(super) fn renewal(name: &str, token: FenceToken, ttl_ms: u64) -> Renewal {
    Renewal {
        key: key(name),
        token,
        ttl: Some(ttl(ttl_ms)),
    }
}

pub(super) fn renew(name: &str, token: FenceToken, ttl_ms: u64) -> Command {
    Command::Renew(renewal(name, token, ttl_ms))
}

pub(super) fn release(name: &str, token: FenceToken) -> Command {
    Command::Release {
        key: key(name),
        token,
        cause: ReleaseCause::Holder,
    }
}

pub(super) fn release_by_owner(name: &str, owner_name: &str) -> Command {
    Command::ReleaseByOwner {
        key: key(name),
        owner: owner(owner_name),
    }
}

pub(super) fn force(name: &str, reason: &str) -> Command {
    Command::Force {
        key: key(name),
        reason: SharedBytes::from(reason),
    }
}

pub(super) fn delete(name: &str) -> Command {
    Command::Delete { key: key(name) }
}

pub(super) fn cancel(name: &str, owner_name: &str, id: &str) -> Command {
    Command::Cancel {
        key: key(name),
        owner: owner(owner_name),
        request: request(id),
    }
}

pub(super) fn set_ttl(name: &str, ttl_ms: Option<u64>, condition: TtlCondition) -> Command {
    Command::SetTtl {
        key: key(name),
        ttl: ttl_ms.map(ttl),
        condition,
    }
}

pub(super) fn pexpire(name: &str, ttl_ms: u64) -> Command {
    set_ttl(name, Some(ttl_ms), TtlCondition::Always)
}

pub(super) fn persist(name: &str) -> Command {
    set_ttl(name, None, TtlCondition::Always)
}

pub(super) fn set(name: &str, value: &str, expiry: SetExpiry, condition: SetCondition) -> Command {
    Command::Set(Set {
        key: key(name),
        value: OwnerId::redis_value(value).unwrap(),
        expiry,
        condition,
    })
}

pub(super) fn px(ttl_ms: u64) -> SetExpiry {
    SetExpiry::In(ttl(ttl_ms))
}

pub(super) fn detach(attachment: Attachment) -> Command {
    Command::Detach { attachment }
}

pub(super) fn node_started(node: u64, incarnation: u64) -> Command {
    Command::NodeStarted { node, incarnation }
}

/// A machine under test. After each entry its invariants are checked.
#[derive(Debug, Clone)]
pub(super) struct Lab {
    pub(super) machine: LeaseMachine,
    /// Of the last entry.
    pub(super) effects: Vec<Effect>,
}

impl Lab {
    /// With the counter open, so that the first token is 1.
    pub(super) fn new() -> Self {
        let mut lab = Self::before_any_floor();
        lab.at(0, Command::RaiseTokenFloor { floor: 0 });
        lab
    }

    pub(super) fn before_any_floor() -> Self {
        Self {
            machine: LeaseMachine::new(),
            effects: Vec::new(),
        }
    }

    /// An entry of one command at so many milliseconds.
    pub(super) fn at(&mut self, millis: u64, command: impl Into<Command>) -> Outcome {
        self.entry(millis, &[command.into()]).remove(0)
    }

    pub(super) fn entry(&mut self, millis: u64, commands: &[Command]) -> Vec<Outcome> {
        let applied = self
            .machine
            .apply(Timestamp::from_millis(millis), commands)
            .unwrap();
        assert_eq!(self.machine.check(), Ok(()));
        assert_eq!(applied.outcomes.len(), commands.len());
        self.effects = applied.effects;
        applied.outcomes
    }

    /// Takes a lease that is free.
    pub(super) fn grant(&mut self, millis: u64, command: impl Into<Command>) -> FenceToken {
        granted(&self.at(millis, command))
    }

    /// What the parked caller was told by the last entry, if anything; never twice.
    pub(super) fn told(&self, attachment: Attachment) -> Option<&Outcome> {
        let mut told = self.effects.iter().filter_map(|effect| match effect {
            Effect::Woken {
                attachment: found,
                outcome,
            } if *found == attachment => Some(outcome),
            Effect::Woken { .. }
            | Effect::Granted { .. }
            | Effect::Ended { .. }
            | Effect::Published { .. } => None,
        });
        let first = told.next();
        assert_eq!(told.next(), None, "{attachment} was told twice");
        first
    }

    pub(super) fn holder(&self, name: &str) -> Option<String> {
        self.machine.get(&key(name)).map(|lease| lease.owner.to_string())
    }

    pub(super) fn deadline(&self, name: &str) -> Timestamp {
        self.machine.get(&key(name)).unwrap().deadline
    }

    /// The waits of a name, whether or not anybody holds it.
    pub(super) fn waiters(&self) -> u64 {
        self.machine.stats().waiters
    }

    pub(super) fn snapshot(&self) -> Vec<u8> {
        snapshot_of(&self.machine)
    }
}

pub(super) fn snapshot_of(machine: &LeaseMachine) -> Vec<u8> {
    let mut bytes = Vec::new();
    machine.view().encode(&mut bytes).unwrap();
    bytes
}

pub(super) fn reloaded(machine: &LeaseMachine) -> LeaseMachine {
    LeaseMachine::decode(&mut snapshot_of(machine).as_slice()).unwrap()
}

/// The token of an answer that grants.
#[track_caller]
pub(super) fn granted(outcome: &Outcome) -> FenceToken {
    match outcome {
        Outcome::Granted { token, .. } | Outcome::Stored { token, .. } => *token,
        other => panic!("not granted: {other:?}"),
    }
}

pub(super) fn lost(reason: EndReason) -> Outcome {
    Outcome::Lost { reason }
}

pub(super) fn refused(refusal: Refusal) -> Outcome {
    Outcome::Refused(refusal)
}

pub(super) fn forced(reason: &str) -> EndReason {
    EndReason::Forced {
        reason: SharedBytes::from(reason),
    }
}
