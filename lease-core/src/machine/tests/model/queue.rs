//! Queues: who stands in them, who leaves them and how.

use super::bounds::request_bytes;
use super::{Lease, Model, Over};
use crate::limits::DETACHED_WAIT_MS;
use crate::machine::{Effect, EndReason, LeaseKey, LimitKind, Outcome, Refusal};
use crate::types::{Attachment, OwnerId, RequestId};

impl Model {
    pub(super) fn first_in_line(&self, key: &LeaseKey) -> Option<usize> {
        self.waits
            .iter()
            .position(|wait| wait.key == *key && wait.attached)
    }

    pub(super) fn end_due_in_front(&mut self, key: &LeaseKey) {
        while let Some(first) = self.first_in_line(key)
            && self.waits[first].deadline <= self.now
        {
            self.end_wait(first);
        }
    }

    pub(super) fn serve(&mut self, key: &LeaseKey) {
        if let Some(later) = &mut self.later {
            later.push(key.clone());
            return;
        }
        self.end_due_in_front(key);
        while !self.leases.contains_key(key)
            && let Some(first) = self.first_in_line(key)
        {
            let wait = self.waits.remove(first);
            let outcome = match self.issue() {
                Err(refusal) => Outcome::Refused(refusal),
                Ok(token) => {
                    let now = self.now;
                    let deadline = now.after(wait.ttl);
                    let lease = Lease {
                        owner: wait.owner,
                        token,
                        since: now,
                        deadline,
                        ttl: Some(wait.ttl),
                        metadata: wait.metadata,
                        request: wait.request,
                        shortened_by_others: false,
                    };
                    self.grant(key, lease);
                    Outcome::Granted {
                        token,
                        remaining_ms: Some(deadline.millis_since(now)),
                        waited_ms: now.millis_since(wait.attempt_at),
                    }
                }
            };
            self.wake(wait.attachment, outcome);
        }
    }

    pub(super) fn end_wait(&mut self, index: usize) -> Outcome {
        let wait = self.waits.remove(index);
        let outcome = self.holder(&wait.key).map_or(Outcome::WaitOver, Outcome::Held);
        self.wake(wait.attachment, outcome.clone());
        outcome
    }

    pub(super) fn cancel(&mut self, key: &LeaseKey, owner: &OwnerId, id: &RequestId) -> Outcome {
        self.touch(key);
        if let Some(lease) = self.leases.get(key)
            && lease.owner == *owner
            && lease.request.as_ref() == Some(id)
        {
            return self.end_and_serve(key, EndReason::Cancelled);
        }
        if self.over(key, owner, id).is_some() {
            return Outcome::NotFound;
        }
        let outcome = if let Some(index) = self.waiting(key, owner, id) {
            let wait = self.waits.remove(index);
            self.wake(wait.attachment, Outcome::Cancelled);
            Outcome::Cancelled
        } else {
            let room = self
                .room(LimitKind::Requests, self.requests(), 1)
                .and_then(|()| self.room(LimitKind::Bytes, self.bytes(), request_bytes(key, owner, id)));
            if let Err(refusal) = room {
                return Outcome::Refused(refusal);
            }
            Outcome::NotFound
        };
        self.over.push(Over {
            key: key.clone(),
            owner: owner.clone(),
            id: id.clone(),
            token: None,
            reason: EndReason::Cancelled,
            at: self.now,
        });
        outcome
    }

    pub(super) fn detach(&mut self, attachment: Attachment) -> Outcome {
        let found = self.waits.iter().position(|wait| wait.attachment == attachment);
        let Some(index) = found else {
            return Outcome::NotFound;
        };
        if self.waits[index].request.is_none() {
            self.end_wait(index);
        } else {
            let until = self.now.after_millis(DETACHED_WAIT_MS);
            let wait = &mut self.waits[index];
            wait.attached = false;
            wait.deadline = wait.deadline.min(until);
        }
        Outcome::Done
    }

    pub(super) fn node_started(&mut self, node: u64, incarnation: u64) -> Outcome {
        let known = *self.incarnations.entry(node).or_insert(0);
        if incarnation < known {
            return Outcome::Refused(Refusal::StaleIncarnation { known });
        }
        self.incarnations.insert(node, incarnation);
        self.detach_all(|it| it.node == node && it.incarnation < incarnation)
    }

    pub(super) fn detach_all(&mut self, is_gone: impl Fn(Attachment) -> bool) -> Outcome {
        for attachment in self.parked() {
            if is_gone(attachment) {
                self.detach(attachment);
            }
        }
        Outcome::Done
    }

    pub(super) fn wake(&mut self, attachment: Attachment, outcome: Outcome) {
        self.effects.push(Effect::Woken { attachment, outcome });
    }
}
