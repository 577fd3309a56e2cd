//! The queue of a name: who stands in it, who is granted next, and who leaves it.

use super::acquire::{Grant, request_key};
use super::command::Wait as WaitRequest;
use super::outcome::{Effect, EndReason, Holder, LimitKind, Outcome, Refusal};
use super::requests::{RequestKey, RequestState};
use super::slab::Slot;
use super::transaction::Serving;
use super::waits::{Presence, Wait};
use super::{Acquire, LeaseKey, LeaseMachine};
use crate::limits::DETACHED_WAIT_MS;
use crate::types::{Attachment, FenceToken, OwnerId, RequestId};

impl LeaseMachine {
    pub(super) fn enqueue(
        &mut self,
        acquire: &Acquire,
        slot: Slot,
        wait: WaitRequest,
        request: Option<RequestKey>,
    ) -> Outcome {
        let bytes = acquire
            .payload_bytes()
            .saturating_add(request.as_ref().map_or(0, RequestKey::bytes));
        if let Err(refusal) = self.admit_wait(slot, wait.attachment, bytes) {
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

    fn admit_wait(&self, slot: Slot, attachment: Attachment, bytes: usize) -> Result<(), Refusal> {
        self.check_unused(attachment)?;
        let in_line = self.leases.get(slot).map_or(0, |record| record.waiters as usize);
        self.check_limit(LimitKind::WaitersPerName, in_line, 1)?;
        self.check_limit(LimitKind::Waiters, self.waits.len(), 1)?;
        self.check_limit(LimitKind::Bytes, self.bytes(), bytes)
    }

    /// A process that is over parks nobody: what it sent may still arrive.
    pub(super) fn check_incarnation(&self, attachment: Attachment) -> Result<(), Refusal> {
        self.check_life(attachment.node, attachment.incarnation)
    }

    /// Whether no later life of this node is known.
    pub(super) fn check_life(&self, node: u64, incarnation: u64) -> Result<(), Refusal> {
        match self.incarnations.get(&node) {
            Some(known) if incarnation < *known => Err(Refusal::StaleIncarnation { known: *known }),
            _ => Ok(()),
        }
    }

    fn check_unused(&self, attachment: Attachment) -> Result<(), Refusal> {
        if self.waits.by_attachment(attachment).is_some() {
            Err(Refusal::AttachmentInUse)
        } else {
            Ok(())
        }
    }

    /// The request of a wait comes again. Attachments of one node rise, so what names a lower one is a late copy of
    /// an attempt that has been moved: it must not take the wait away from its successor, or attach it to nobody.
    pub(super) fn retry_wait(&mut self, acquire: &Acquire, wait: Slot, effects: &mut Vec<Effect>) -> Outcome {
        let Some(standing) = self.waits.get(wait) else {
            return Outcome::NotFound;
        };
        let (old, record) = (standing.attachment, standing.record);
        let due = standing.deadline <= self.now;
        match acquire.wait.filter(|wait| wait.for_ms > 0) {
            Some(again) if again.attachment == old && due => self.end_wait(wait, effects),
            Some(again) if again.attachment == old => Outcome::Queued,
            Some(again) if again.attachment.node == old.node && again.attachment < old => Outcome::Moved,
            Some(again) if !due => {
                if let Err(refusal) = self.check_unused(again.attachment) {
                    return Outcome::Refused(refusal);
                }
                effects.push(Effect::Woken {
                    attachment: old,
                    outcome: Outcome::Moved,
                });
                let deadline = self.now.after_millis(again.for_ms);
                self.waits.attach(wait, again.attachment, self.now, deadline);
                self.serve_queue(record, effects);
                Outcome::Queued
            }
            Some(_) | None => {
                self.end_wait(wait, effects);
                let slot = self.leases.find(&acquire.key);
                self.acquire_new(acquire, slot, acquire.request_key(), effects)
            }
        }
    }

    /// Grants a name that nobody holds to the first in line, then forgets the name if it is idle.
    ///
    /// Within a transaction that comes at its end: nobody is granted a key between two of its commands.
    pub(super) fn serve_queue(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        if let Serving::Later(slots) = &mut self.serving {
            slots.push(slot);
            return;
        }
        self.end_due_heads(slot, effects);
        while self.leases.hold(slot).is_none()
            && let Some(head) = self.waits.head(slot)
        {
            let token = self.tokens.issue();
            let Some(wait) = self.take_wait(head) else { break };
            let attachment = wait.attachment;
            let outcome = match token {
                Ok(token) => self.grant_wait(slot, wait, token, effects),
                Err(refusal) => {
                    if let Some(request) = wait.request {
                        self.requests.forget(request);
                    }
                    Outcome::Refused(refusal)
                }
            };
            effects.push(Effect::Woken { attachment, outcome });
        }
        self.leases.forget_if_idle(slot);
    }

    fn grant_wait(
        &mut self,
        slot: Slot,
        wait: Wait,
        token: FenceToken,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let deadline = self.now.after(wait.ttl);
        let grant = Grant {
            owner: wait.owner,
            token,
            deadline,
            ttl: Some(wait.ttl),
            metadata: wait.metadata,
        };
        self.put_grant(slot, grant, effects);
        if let Some(request) = wait.request {
            self.requests.set_held(request, token);
            self.leases.link_request(slot, request);
        }
        Outcome::Granted {
            token,
            remaining_ms: Some(deadline.millis_since(self.now)),
            waited_ms: self.now.millis_since(wait.attempt_at),
        }
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
    pub(super) fn end_wait(&mut self, wait: Slot, effects: &mut Vec<Effect>) -> Outcome {
        let Some(wait) = self.take_wait(wait) else {
            return Outcome::WaitOver;
        };
        if let Some(request) = wait.request {
            self.requests.forget(request);
        }
        let outcome = self.holder(wait.record).map_or(Outcome::WaitOver, Outcome::Held);
        effects.push(Effect::Woken {
            attachment: wait.attachment,
            outcome: outcome.clone(),
        });
        self.leases.forget_if_idle(wait.record);
        outcome
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
            return self.remember_cancelled(request_key);
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

    /// The cancel came before its request did.
    fn remember_cancelled(&mut self, request: RequestKey) -> Outcome {
        if let Err(refusal) = self.admit_request(request.bytes()) {
            return Outcome::Refused(refusal);
        }
        let request = self.requests.insert(request, RequestState::Waiting(Slot::FIRST));
        self.requests
            .set_over(request, None, EndReason::Cancelled, self.now);
        Outcome::NotFound
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
