//! Grants and the queue: who gets a lease, who waits, and what a retry is told.

use super::command::Wait as WaitRequest;
use super::leases::{DeadlineSetBy, Hold};
use super::outcome::{Effect, EndReason, Holder, LimitKind, Outcome, Refusal};
use super::requests::{RequestKey, RequestState};
use super::slab::Slot;
use super::waits::{Presence, Wait};
use super::{Acquire, LeaseKey, LeaseMachine};
use crate::limits::DETACHED_WAIT_MS;
use crate::types::{Attachment, FenceToken, Metadata, OwnerId, RequestId, Timestamp, Ttl};

/// What a grant puts on a name.
pub(super) struct Grant {
    pub(super) owner: OwnerId,
    pub(super) token: FenceToken,
    pub(super) deadline: Timestamp,
    pub(super) ttl: Option<Ttl>,
    pub(super) metadata: Option<Metadata>,
}

impl LeaseMachine {
    pub(super) fn acquire(&mut self, acquire: &Acquire, effects: &mut Vec<Effect>) -> Outcome {
        let slot = self.touch(&acquire.key, effects);
        let request = acquire
            .request
            .as_ref()
            .map(|id| request_key(&acquire.key, &acquire.owner, id));
        if let Some(found) = request.as_ref().and_then(|request| self.requests.find(request)) {
            return self.retry(acquire, found, effects);
        }
        self.acquire_new(acquire, slot, request, effects)
    }

    fn acquire_new(
        &mut self,
        acquire: &Acquire,
        slot: Option<Slot>,
        request: Option<RequestKey>,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        if request.is_some()
            && let Err(refusal) = self.check_limit(LimitKind::Requests, self.requests.len(), 1)
        {
            return Outcome::Refused(refusal);
        }
        let held = slot.filter(|slot| self.leases.hold(*slot).is_some());
        match (held, acquire.wait.filter(|wait| wait.for_ms > 0)) {
            (None, _) => self.grant_new(acquire, request, effects),
            (Some(slot), None) => self.holder(slot).map_or(Outcome::WaitOver, Outcome::Held),
            (Some(slot), Some(wait)) => self.enqueue(acquire, slot, wait, request),
        }
    }

    fn grant_new(
        &mut self,
        acquire: &Acquire,
        request: Option<RequestKey>,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let bytes = acquire
            .key
            .name
            .as_bytes()
            .len()
            .saturating_add(acquire_bytes(acquire));
        let token = match self.admit_lease(bytes) {
            Ok(token) => token,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        let slot = self.leases.find_or_make(&acquire.key);
        let grant = Grant {
            owner: acquire.owner.clone(),
            token,
            deadline: self.now.after(acquire.ttl),
            ttl: Some(acquire.ttl),
            metadata: acquire.metadata.clone(),
        };
        self.put_grant(slot, grant, effects);
        if let Some(request) = request {
            let request = self.requests.insert(request, RequestState::Held(token));
            self.leases.link_request(slot, request);
        }
        Outcome::Granted {
            token,
            remaining_ms: Some(acquire.ttl.as_millis()),
            waited_ms: 0,
        }
    }

    /// The bounds that a new lease must fit, and its token.
    pub(super) fn admit_lease(&mut self, bytes: usize) -> Result<FenceToken, Refusal> {
        self.check_limit(LimitKind::Leases, self.leases.held(), 1)?;
        self.check_limit(LimitKind::Bytes, self.leases.bytes(), bytes)?;
        self.tokens.issue()
    }

    pub(super) fn check_limit(&self, kind: LimitKind, used: usize, more: usize) -> Result<(), Refusal> {
        let max = match kind {
            LimitKind::Leases => self.limits.leases_max,
            LimitKind::Bytes => self.limits.bytes_max,
            LimitKind::Waiters => self.limits.waiters_max,
            LimitKind::WaitersPerName => self.limits.waiters_per_name_max,
            LimitKind::Requests => self.limits.requests_max,
        };
        let wanted = u64::try_from(used.saturating_add(more)).unwrap_or(u64::MAX);
        if wanted > max {
            Err(Refusal::Limit { kind, max })
        } else {
            Ok(())
        }
    }

    pub(super) fn put_grant(&mut self, slot: Slot, grant: Grant, effects: &mut Vec<Effect>) {
        let Some(record) = self.leases.get(slot) else {
            return;
        };
        effects.push(Effect::Granted {
            key: record.key.clone(),
            owner: grant.owner.clone(),
            token: grant.token,
            at: self.now,
        });
        let hold = Hold {
            owner: grant.owner,
            token: grant.token,
            granted_at: self.now,
            deadline: grant.deadline,
            ttl: grant.ttl,
            metadata: grant.metadata,
            request: None,
            deadline_set_by: DeadlineSetBy::Holder,
        };
        self.leases.put_hold(slot, hold);
    }

    fn enqueue(
        &mut self,
        acquire: &Acquire,
        slot: Slot,
        wait: WaitRequest,
        request: Option<RequestKey>,
    ) -> Outcome {
        if let Err(refusal) = self.admit_wait(acquire, slot, wait.attachment) {
            return Outcome::Refused(refusal);
        }
        // The request learns its wait as soon as that has a slot.
        let request = request.map(|key| self.requests.insert(key, RequestState::Waiting(Slot::FIRST)));
        let queued = Wait {
            id: self.waits.issue_id(),
            record: slot,
            owner: acquire.owner.clone(),
            ttl: acquire.ttl,
            metadata: acquire.metadata.clone(),
            request,
            attachment: wait.attachment,
            attempt_at: self.now,
            deadline: self.now.after_millis(wait.for_ms),
            presence: Presence::Attached,
        };
        self.leases.charge(queued.bytes());
        self.leases.add_waiter(slot);
        let queued = self.waits.insert(queued);
        if let Some(request) = request {
            self.requests.set_waiting(request, queued);
        }
        Outcome::Queued
    }

    fn admit_wait(&self, acquire: &Acquire, slot: Slot, attachment: Attachment) -> Result<(), Refusal> {
        self.check_attachment(attachment)?;
        let in_line = self.leases.get(slot).map_or(0, |record| record.waiters as usize);
        self.check_limit(LimitKind::WaitersPerName, in_line, 1)?;
        self.check_limit(LimitKind::Waiters, self.waits.len(), 1)?;
        self.check_limit(LimitKind::Bytes, self.leases.bytes(), acquire_bytes(acquire))
    }

    fn check_attachment(&self, attachment: Attachment) -> Result<(), Refusal> {
        match self.incarnations.get(&attachment.node) {
            Some(known) if attachment.incarnation < *known => {
                Err(Refusal::StaleIncarnation { known: *known })
            }
            _ if self.waits.by_attachment(attachment).is_some() => Err(Refusal::AttachmentInUse),
            _ => Ok(()),
        }
    }

    /// The same request again: never a second grant.
    fn retry(&mut self, acquire: &Acquire, request: Slot, effects: &mut Vec<Effect>) -> Outcome {
        match self.requests.get(request).map(|request| request.state.clone()) {
            Some(RequestState::Held(token)) => {
                let hold = self
                    .leases
                    .find(&acquire.key)
                    .and_then(|slot| self.leases.hold(slot));
                let remaining_ms = hold.and_then(|hold| hold.remaining_ms(self.now));
                Outcome::Granted {
                    token,
                    remaining_ms,
                    waited_ms: 0,
                }
            }
            Some(RequestState::Over(over)) => Outcome::Ended {
                token: over.token,
                reason: over.reason,
            },
            Some(RequestState::Waiting(wait)) => self.retry_wait(acquire, wait, effects),
            None => Outcome::NotFound,
        }
    }

    fn retry_wait(&mut self, acquire: &Acquire, wait: Slot, effects: &mut Vec<Effect>) -> Outcome {
        let Some(standing) = self.waits.get(wait) else {
            return Outcome::NotFound;
        };
        let (old, record) = (standing.attachment, standing.record);
        let again = acquire.wait.filter(|wait| wait.for_ms > 0);
        if standing.deadline <= self.now || again.is_none() {
            self.end_wait(wait, effects);
            let slot = self.leases.find(&acquire.key);
            let request = acquire
                .request
                .as_ref()
                .map(|id| request_key(&acquire.key, &acquire.owner, id));
            return self.acquire_new(acquire, slot, request, effects);
        }
        let Some(again) = again else {
            return Outcome::NotFound;
        };
        if again.attachment != old {
            if let Err(refusal) = self.check_attachment(again.attachment) {
                return Outcome::Refused(refusal);
            }
            effects.push(Effect::Woken {
                attachment: old,
                outcome: Outcome::Moved,
            });
        }
        self.waits.attach(
            wait,
            again.attachment,
            self.now,
            self.now.after_millis(again.for_ms),
        );
        self.serve_queue(record, effects);
        Outcome::Queued
    }

    /// Grants a name that nobody holds to the first in line, then forgets the name if it is idle.
    pub(super) fn serve_queue(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        self.end_due_heads(slot, effects);
        if self.leases.hold(slot).is_none()
            && let Some(head) = self.waits.head(slot)
            && let Ok(token) = self.tokens.issue()
            && let Some(wait) = self.take_wait(head)
        {
            let grant = Grant {
                owner: wait.owner,
                token,
                deadline: self.now.after(wait.ttl),
                ttl: Some(wait.ttl),
                metadata: wait.metadata,
            };
            self.put_grant(slot, grant, effects);
            if let Some(request) = wait.request {
                self.requests.set_held(request, token);
                self.leases.link_request(slot, request);
            }
            let waited_ms = self.now.millis_since(wait.attempt_at);
            let outcome = Outcome::Granted {
                token,
                remaining_ms: Some(wait.ttl.as_millis()),
                waited_ms,
            };
            effects.push(Effect::Woken {
                attachment: wait.attachment,
                outcome,
            });
        }
        self.leases.forget_if_idle(slot);
    }

    /// A wait that is due ends before anything is granted to it.
    pub(super) fn end_due_heads(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        while let Some(head) = self.waits.head(slot)
            && self.waits.get(head).is_some_and(|wait| wait.deadline <= self.now)
        {
            self.end_wait(head, effects);
        }
    }

    /// A wait runs out without a grant. Its request may come again, as a new one.
    pub(super) fn end_wait(&mut self, wait: Slot, effects: &mut Vec<Effect>) {
        let Some(wait) = self.take_wait(wait) else { return };
        if let Some(request) = wait.request {
            self.requests.forget(request);
        }
        let outcome = self.holder(wait.record).map_or(Outcome::WaitOver, Outcome::Held);
        effects.push(Effect::Woken {
            attachment: wait.attachment,
            outcome,
        });
        self.leases.forget_if_idle(wait.record);
    }

    fn take_wait(&mut self, wait: Slot) -> Option<Wait> {
        let wait = self.waits.remove(wait)?;
        self.leases.discharge(wait.bytes());
        self.leases.drop_waiter(wait.record);
        Some(wait)
    }

    /// A caller gives its request up, for good: a copy of it that arrives later is not granted either.
    pub(super) fn cancel(
        &mut self,
        key: &LeaseKey,
        owner: &OwnerId,
        id: &RequestId,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let slot = self.touch(key, effects);
        let request_key = request_key(key, owner, id);
        let Some(request) = self.requests.find(&request_key) else {
            if let Err(refusal) = self.check_limit(LimitKind::Requests, self.requests.len(), 1) {
                return Outcome::Refused(refusal);
            }
            let request = self
                .requests
                .insert(request_key, RequestState::Waiting(Slot::FIRST));
            self.requests
                .set_over(request, None, EndReason::Cancelled, self.now);
            return Outcome::NotFound;
        };
        match (
            self.requests.get(request).map(|request| request.state.clone()),
            slot,
        ) {
            (Some(RequestState::Waiting(wait)), _) => {
                if let Some(wait) = self.take_wait(wait) {
                    effects.push(Effect::Woken {
                        attachment: wait.attachment,
                        outcome: Outcome::Cancelled,
                    });
                    self.leases.forget_if_idle(wait.record);
                }
                self.requests
                    .set_over(request, None, EndReason::Cancelled, self.now);
                Outcome::Cancelled
            }
            (Some(RequestState::Held(token)), Some(slot)) => {
                self.end_hold(slot, EndReason::Cancelled, effects);
                self.serve_queue(slot, effects);
                Outcome::Released { token }
            }
            _ => Outcome::NotFound,
        }
    }

    /// The caller behind a wait is gone.
    pub(super) fn detach(&mut self, attachment: Attachment, effects: &mut Vec<Effect>) -> Outcome {
        let Some(slot) = self.waits.by_attachment(attachment) else {
            return Outcome::NotFound;
        };
        let has_request = self.waits.get(slot).is_some_and(|wait| wait.request.is_some());
        if has_request {
            self.waits.detach(slot, self.now.after_millis(DETACHED_WAIT_MS));
        } else {
            self.end_wait(slot, effects);
        }
        Outcome::Done
    }

    pub(super) fn detach_below(&mut self, node: u64, incarnation: u64, effects: &mut Vec<Effect>) -> Outcome {
        for attachment in self.waits.parked_below(node, incarnation) {
            self.detach(attachment, effects);
        }
        Outcome::Done
    }

    pub(super) fn node_started(&mut self, node: u64, incarnation: u64, effects: &mut Vec<Effect>) -> Outcome {
        let known = self.incarnations.get(&node).copied().unwrap_or(0);
        if incarnation < known {
            return Outcome::Refused(Refusal::StaleIncarnation { known });
        }
        self.incarnations.insert(node, incarnation);
        self.detach_below(node, incarnation, effects)
    }

    pub(super) fn holder(&self, slot: Slot) -> Option<Holder> {
        let record = self.leases.get(slot)?;
        let hold = record.hold.as_ref()?;
        Some(Holder {
            token: hold.token,
            owner: hold.owner.clone(),
            remaining_ms: hold.remaining_ms(self.now),
            held_for_ms: self.now.millis_since(hold.granted_at),
            waiters: u64::from(record.waiters),
        })
    }
}

fn request_key(key: &LeaseKey, owner: &OwnerId, id: &RequestId) -> RequestKey {
    RequestKey {
        key: key.clone(),
        owner: owner.clone(),
        id: id.clone(),
    }
}

fn acquire_bytes(acquire: &Acquire) -> usize {
    let metadata = acquire
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.as_bytes().len());
    acquire.owner.as_bytes().len().saturating_add(metadata)
}
