//! What a script sees and changes: the machine as it stands, with the script's own changes over it.
//!
//! Changes are kept apart until the script has ended. So a script that reaches a bound has done nothing, a look that
//! finds that a script would change something throws nothing away but this, and waiting callers are looked at once, when
//! all is done.

use std::collections::BTreeMap;

use super::super::acquire::Grant;
use super::super::leases::{DeadlineSetBy, Hold};
use super::super::outcome::{Effect, EndReason, LimitKind, Refusal};
use super::super::{LeaseKey, LeaseMachine};
use crate::types::{FenceToken, OwnerId, SharedBytes, Timestamp, Ttl};

/// A key that is held, as a script sees it.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) value: OwnerId,
    pub(super) token: FenceToken,
    pub(super) deadline: Timestamp,
    pub(super) ttl: Option<Ttl>,
    pub(super) deadline_set_by: DeadlineSetBy,
    /// Bytes that count towards the bound of all.
    bytes: usize,
}

impl From<&Hold> for Standing {
    fn from(hold: &Hold) -> Self {
        Self {
            value: hold.owner.clone(),
            token: hold.token,
            deadline: hold.deadline,
            ttl: hold.ttl,
            deadline_set_by: hold.deadline_set_by,
            bytes: hold.bytes(),
        }
    }
}

/// When a key ends, and by whose word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until {
    pub(super) deadline: Timestamp,
    pub(super) ttl: Option<Ttl>,
    pub(super) by: DeadlineSetBy,
}

/// What a script stands on.
pub(super) trait Ground {
    /// Why a script goes no further on it.
    type Stop;

    /// The time of the whole script.
    fn now(&self) -> Timestamp;

    /// Who holds a key, as the script has left it.
    fn standing(&mut self, key: &LeaseKey) -> Result<Option<Standing>, Self::Stop>;

    /// Gives a key to a new value, in place of any other.
    fn grant(&mut self, key: &LeaseKey, value: OwnerId, until: Until) -> Result<FenceToken, Self::Stop>;

    /// Ends a key that is held.
    fn end(&mut self, key: &LeaseKey, reason: EndReason) -> Result<(), Self::Stop>;

    /// Moves the deadline of a key that is held.
    fn set_deadline(&mut self, key: &LeaseKey, until: Until) -> Result<(), Self::Stop>;

    /// Tells whoever listens.
    fn publish(&mut self, channel: SharedBytes, message: SharedBytes) -> Result<(), Self::Stop>;
}

/// A look that changes nothing.
#[derive(Debug)]
pub(super) struct Look<'a> {
    pub(super) machine: &'a LeaseMachine,
    pub(super) at: Timestamp,
}

/// Why a look goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LookEnd {
    /// The script would change something.
    Changes,
    /// The time of a key that it touches has passed, and the log has not ended it yet.
    Due(LeaseKey),
}

impl Ground for Look<'_> {
    type Stop = LookEnd;

    fn now(&self) -> Timestamp {
        self.at
    }

    fn standing(&mut self, key: &LeaseKey) -> Result<Option<Standing>, LookEnd> {
        let slot = self.machine.leases.find(key);
        match slot.and_then(|slot| self.machine.leases.hold(slot)) {
            Some(hold) if hold.is_due(self.at) => Err(LookEnd::Due(key.clone())),
            hold => Ok(hold.map(Standing::from)),
        }
    }

    fn grant(&mut self, _: &LeaseKey, _: OwnerId, _: Until) -> Result<FenceToken, LookEnd> {
        Err(LookEnd::Changes)
    }

    fn end(&mut self, _: &LeaseKey, _: EndReason) -> Result<(), LookEnd> {
        Err(LookEnd::Changes)
    }

    fn set_deadline(&mut self, _: &LeaseKey, _: Until) -> Result<(), LookEnd> {
        Err(LookEnd::Changes)
    }

    fn publish(&mut self, _: SharedBytes, _: SharedBytes) -> Result<(), LookEnd> {
        Err(LookEnd::Changes)
    }
}

/// One thing that a script has done.
#[derive(Debug)]
enum Change {
    Grant {
        value: OwnerId,
        token: FenceToken,
        until: Until,
    },
    End {
        reason: EndReason,
    },
    Deadline {
        until: Until,
    },
}

/// The machine while an entry is applied, with the changes of the script over it.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    machine: &'a mut LeaseMachine,
    effects: &'a mut Vec<Effect>,
    keys: BTreeMap<LeaseKey, Option<Standing>>,
    changes: Vec<(LeaseKey, Change)>,
    published: Vec<Effect>,
    /// Leases and bytes that the changes add and take away.
    leases: Tally,
    bytes: Tally,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    more: usize,
    fewer: usize,
}

impl Tally {
    const fn of(self, before: usize) -> usize {
        before.saturating_add(self.more).saturating_sub(self.fewer)
    }
}

impl<'a> Draft<'a> {
    pub(super) const fn new(machine: &'a mut LeaseMachine, effects: &'a mut Vec<Effect>) -> Self {
        Self {
            machine,
            effects,
            keys: BTreeMap::new(),
            changes: Vec::new(),
            published: Vec::new(),
            leases: Tally { more: 0, fewer: 0 },
            bytes: Tally { more: 0, fewer: 0 },
        }
    }

    /// Makes the changes, in their order, then looks at the queues of the keys that were changed.
    pub(super) fn commit(self) {
        let Self {
            machine,
            effects,
            changes,
            published,
            ..
        } = self;
        let mut changed: Vec<LeaseKey> = Vec::new();
        for (key, change) in changes {
            machine.make_change(&key, change, effects);
            changed.push(key);
        }
        for key in changed {
            if let Some(slot) = machine.leases.find(&key) {
                machine.serve_queue(slot, effects);
            }
        }
        effects.extend(published);
    }

    fn check_room(&self, key: &LeaseKey, before: Option<&Standing>, value: usize) -> Result<(), Refusal> {
        let machine = &self.machine;
        let more = match before {
            Some(before) => value.saturating_sub(before.bytes),
            None => {
                let held = self.leases.of(machine.leases.held());
                machine.check_limit(LimitKind::Leases, held, 1)?;
                value.saturating_add(self.name_bytes(key))
            }
        };
        if more == 0 {
            return Ok(());
        }
        machine.check_limit(LimitKind::Bytes, self.bytes.of(machine.bytes()), more)
    }

    /// Bytes of a name that has no record, in the machine or here.
    fn name_bytes(&self, key: &LeaseKey) -> usize {
        let is_new = self.machine.leases.find(key).is_none() && !self.keys.contains_key(key);
        if is_new { key.name.as_bytes().len() } else { 0 }
    }
}

impl Ground for Draft<'_> {
    /// A total bound: the whole script is refused.
    type Stop = Refusal;

    fn now(&self) -> Timestamp {
        self.machine.now
    }

    /// A key that is due ends first, and its head waiter is granted, whatever becomes of the script.
    fn standing(&mut self, key: &LeaseKey) -> Result<Option<Standing>, Refusal> {
        if let Some(standing) = self.keys.get(key) {
            return Ok(standing.clone());
        }
        let slot = self.machine.touch(key, self.effects);
        let hold = slot.and_then(|slot| self.machine.leases.hold(slot));
        Ok(hold.map(Standing::from))
    }

    fn grant(&mut self, key: &LeaseKey, value: OwnerId, until: Until) -> Result<FenceToken, Refusal> {
        let before = self.standing(key)?;
        let bytes = value.as_bytes().len();
        self.check_room(key, before.as_ref(), bytes)?;
        let token = self.machine.tokens.issue()?;
        if before.is_some() {
            self.end(key, EndReason::Superseded)?;
        }
        let added = bytes.saturating_add(self.name_bytes(key));
        self.leases.more = self.leases.more.saturating_add(1);
        self.bytes.more = self.bytes.more.saturating_add(added);
        let standing = Standing {
            value: value.clone(),
            token,
            deadline: until.deadline,
            ttl: until.ttl,
            deadline_set_by: until.by,
            bytes,
        };
        self.keys.insert(key.clone(), Some(standing));
        self.changes
            .push((key.clone(), Change::Grant { value, token, until }));
        Ok(token)
    }

    fn end(&mut self, key: &LeaseKey, reason: EndReason) -> Result<(), Refusal> {
        if let Some(standing) = self.standing(key)? {
            self.leases.fewer = self.leases.fewer.saturating_add(1);
            self.bytes.fewer = self.bytes.fewer.saturating_add(standing.bytes);
            self.keys.insert(key.clone(), None);
            self.changes.push((key.clone(), Change::End { reason }));
        }
        Ok(())
    }

    fn set_deadline(&mut self, key: &LeaseKey, until: Until) -> Result<(), Refusal> {
        if let Some(standing) = self.standing(key)? {
            let moved = Standing {
                deadline: until.deadline,
                ttl: until.ttl,
                deadline_set_by: until.by,
                ..standing
            };
            self.keys.insert(key.clone(), Some(moved));
            self.changes.push((key.clone(), Change::Deadline { until }));
        }
        Ok(())
    }

    fn publish(&mut self, channel: SharedBytes, message: SharedBytes) -> Result<(), Refusal> {
        self.published.push(Effect::Published { channel, message });
        Ok(())
    }
}

impl LeaseMachine {
    fn make_change(&mut self, key: &LeaseKey, change: Change, effects: &mut Vec<Effect>) {
        match change {
            Change::Grant { value, token, until } => {
                let slot = self.leases.find_or_make(key);
                let grant = Grant {
                    owner: value,
                    token,
                    deadline: until.deadline,
                    ttl: until.ttl,
                    metadata: None,
                };
                self.put_grant(slot, grant, effects);
            }
            Change::End { reason } => {
                if let Some(slot) = self.leases.find(key) {
                    self.end_hold(slot, reason, effects);
                }
            }
            Change::Deadline { until } => {
                if let Some(slot) = self.leases.find(key) {
                    self.leases
                        .set_deadline(slot, until.deadline, until.ttl, until.by);
                }
            }
        }
    }
}
