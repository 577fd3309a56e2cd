//! Leases: taken, kept, ended.

use super::bounds::{bytes_of, request_bytes};
use super::{Lease, Model, Over, Waiting};
use crate::machine::{Acquire, Effect, EndReason, LeaseKey, LimitKind, Outcome, Refusal, Renewal};
use crate::types::{FenceToken, Timestamp};

impl Model {
    pub(super) fn acquire(&mut self, acquire: &Acquire) -> Outcome {
        self.touch(&acquire.key);
        if let Some(wait) = acquire.wait {
            let known = self.incarnations.get(&wait.attachment.node).copied().unwrap_or(0);
            if wait.attachment.incarnation < known {
                return Outcome::Refused(Refusal::StaleIncarnation { known });
            }
        }
        let Some(id) = &acquire.request else {
            return self.acquire_anew(acquire);
        };
        if let Some(lease) = self.leases.get(&acquire.key)
            && lease.owner == acquire.owner
            && lease.request.as_ref() == Some(id)
        {
            return Outcome::Granted {
                token: lease.token,
                remaining_ms: self.remaining_ms(lease),
                waited_ms: 0,
            };
        }
        if let Some(over) = self.over(&acquire.key, &acquire.owner, id) {
            return Outcome::Ended {
                token: over.token,
                reason: over.reason.clone(),
            };
        }
        match self.waiting(&acquire.key, &acquire.owner, id) {
            Some(index) => self.retry_wait(acquire, index),
            None => self.acquire_anew(acquire),
        }
    }

    pub(super) fn retry_wait(&mut self, acquire: &Acquire, index: usize) -> Outcome {
        let wait = &self.waits[index];
        let (old, due) = (wait.attachment, wait.deadline <= self.now);
        let again = acquire.wait.filter(|wait| wait.for_ms > 0);
        if let Some(again) = again {
            let new = again.attachment;
            if new == old {
                return if due {
                    self.end_wait(index)
                } else {
                    Outcome::Queued
                };
            }
            if new.node == old.node && (new.incarnation, new.number) < (old.incarnation, old.number) {
                return Outcome::Moved;
            }
            if !due {
                if self.parked().contains(&new) {
                    return Outcome::Refused(Refusal::AttachmentInUse);
                }
                self.wake(old, Outcome::Moved);
                let now = self.now;
                let wait = &mut self.waits[index];
                wait.attachment = new;
                wait.attempt_at = now;
                wait.deadline = now.after_millis(again.for_ms);
                wait.attached = true;
                self.serve(&acquire.key);
                return Outcome::Queued;
            }
        }
        self.end_wait(index);
        self.acquire_anew(acquire)
    }

    pub(super) fn acquire_anew(&mut self, acquire: &Acquire) -> Outcome {
        let payload = bytes_of(&acquire.owner, acquire.metadata.as_ref());
        let mut bytes = payload;
        if let Some(id) = &acquire.request {
            bytes += request_bytes(&acquire.key, &acquire.owner, id);
            if let Err(refusal) = self.room(LimitKind::Requests, self.requests(), 1) {
                return Outcome::Refused(refusal);
            }
        }
        let wait = acquire.wait.filter(|wait| wait.for_ms > 0);
        match (self.holder(&acquire.key), wait) {
            (Some(holder), None) => Outcome::Held(holder),
            (Some(_), Some(wait)) => {
                let admitted = if self.parked().contains(&wait.attachment) {
                    Err(Refusal::AttachmentInUse)
                } else {
                    let in_line = usize::try_from(self.waiters_of(&acquire.key)).unwrap();
                    self.room(LimitKind::WaitersPerName, in_line, 1)
                        .and_then(|()| self.room(LimitKind::Waiters, self.waits.len(), 1))
                        .and_then(|()| self.room(LimitKind::Bytes, self.bytes(), bytes))
                };
                if let Err(refusal) = admitted {
                    return Outcome::Refused(refusal);
                }
                self.waits.push(Waiting {
                    key: acquire.key.clone(),
                    owner: acquire.owner.clone(),
                    ttl: acquire.ttl,
                    metadata: acquire.metadata.clone(),
                    request: acquire.request.clone(),
                    attachment: wait.attachment,
                    attempt_at: self.now,
                    deadline: self.now.after_millis(wait.for_ms),
                    attached: true,
                });
                Outcome::Queued
            }
            (None, _) => match self.admit_lease(&acquire.key, bytes) {
                Err(refusal) => Outcome::Refused(refusal),
                Ok(token) => {
                    let deadline = self.now.after(acquire.ttl);
                    let lease = Lease {
                        owner: acquire.owner.clone(),
                        token,
                        since: self.now,
                        deadline,
                        ttl: Some(acquire.ttl),
                        metadata: acquire.metadata.clone(),
                        request: acquire.request.clone(),
                        shortened_by_others: false,
                    };
                    self.grant(&acquire.key, lease);
                    Outcome::Granted {
                        token,
                        remaining_ms: Some(deadline.millis_since(self.now)),
                        waited_ms: 0,
                    }
                }
            },
        }
    }

    pub(super) fn grant(&mut self, key: &LeaseKey, lease: Lease) {
        self.effects.push(Effect::Granted {
            key: key.clone(),
            owner: lease.owner.clone(),
            token: lease.token,
            at: self.now,
        });
        self.leases.insert(key.clone(), lease);
    }

    pub(super) fn renew(&mut self, renewal: &Renewal) -> Outcome {
        self.touch(&renewal.key);
        let now = self.now;
        match self.leases.get_mut(&renewal.key) {
            Some(lease) if lease.token == renewal.token => {
                lease.ttl = renewal.ttl.or(lease.ttl);
                lease.deadline = lease.ttl.map_or(Timestamp::NEVER, |ttl| now.after(ttl));
                lease.shortened_by_others = false;
                let remaining_ms = lease.ttl.map(|_| lease.deadline.millis_since(now));
                Outcome::Renewed { remaining_ms }
            }
            _ => self.lost(&renewal.key, renewal.token),
        }
    }

    pub(super) fn lost(&self, key: &LeaseKey, token: FenceToken) -> Outcome {
        let ending = self
            .endings
            .iter()
            .find(|ending| ending.0 == *key && ending.1 == token);
        Outcome::Lost {
            reason: ending.map_or(EndReason::Unknown, |ending| ending.2.clone()),
        }
    }

    pub(super) fn end(&mut self, key: &LeaseKey, reason: EndReason) -> Option<FenceToken> {
        self.leases.get(key)?;
        self.end_due_in_front(key);
        let lease = self.leases.remove(key)?;
        let (token, at) = (lease.token, self.now);
        if let Some(id) = lease.request {
            self.over.push(Over {
                key: key.clone(),
                owner: lease.owner.clone(),
                id,
                token: Some(token),
                reason: reason.clone(),
                at,
            });
        }
        self.endings.push_back((key.clone(), token, reason.clone(), at));
        self.bound_endings();
        let (key, owner) = (key.clone(), lease.owner);
        self.effects.push(Effect::Ended {
            key,
            owner,
            token,
            at,
            reason,
        });
        Some(token)
    }

    pub(super) fn end_and_serve(&mut self, key: &LeaseKey, reason: EndReason) -> Outcome {
        match self.end(key, reason) {
            Some(token) => {
                self.serve(key);
                Outcome::Released { token }
            }
            None => Outcome::NotFound,
        }
    }
}
