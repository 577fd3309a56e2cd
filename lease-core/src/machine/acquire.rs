//! Grants: who gets a lease at once, within which bounds, and what a retry is told.

use super::leases::{DeadlineSetBy, Hold};
use super::outcome::{Effect, LimitKind, Outcome, Refusal};
use super::requests::{RequestKey, RequestState};
use super::slab::Slot;
use super::{Acquire, LeaseKey, LeaseMachine};
use crate::types::{FenceToken, Metadata, OwnerId, RequestId, Timestamp, Ttl};

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
        if let Some(wait) = acquire.wait
            && let Err(refusal) = self.check_incarnation(wait.attachment)
        {
            return Outcome::Refused(refusal);
        }
        let request = acquire.request_key();
        match request.as_ref().and_then(|request| self.requests.find(request)) {
            Some(found) => self.retry(acquire, found, effects),
            None => self.acquire_new(acquire, slot, request, effects),
        }
    }

    /// A call without a request id, or with one that is not remembered.
    pub(super) fn acquire_new(
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
            (None, _) => self.grant_new(acquire, slot, request, effects),
            (Some(slot), None) => self.holder(slot).map_or(Outcome::WaitOver, Outcome::Held),
            (Some(slot), Some(wait)) => self.enqueue(acquire, slot, wait, request),
        }
    }

    fn grant_new(
        &mut self,
        acquire: &Acquire,
        slot: Option<Slot>,
        request: Option<RequestKey>,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let bytes = acquire
            .payload_bytes()
            .saturating_add(request.as_ref().map_or(0, RequestKey::bytes));
        let token = match self.admit_lease(slot, &acquire.key, bytes) {
            Ok(token) => token,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        let slot = slot.unwrap_or_else(|| self.leases.find_or_make(&acquire.key));
        let deadline = self.now.after(acquire.ttl);
        let grant = Grant {
            owner: acquire.owner.clone(),
            token,
            deadline,
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
            remaining_ms: Some(deadline.millis_since(self.now)),
            waited_ms: 0,
        }
    }

    /// The bounds that a lease of a name that nobody holds must fit, and its token. `bytes` are those beside the name,
    /// `slot` its record if it has one already.
    pub(super) fn admit_lease(
        &mut self,
        slot: Option<Slot>,
        key: &LeaseKey,
        bytes: usize,
    ) -> Result<FenceToken, Refusal> {
        let name = slot.map_or(key.name.as_bytes().len(), |_| 0);
        self.check_limit(LimitKind::Leases, self.leases.held(), 1)?;
        self.check_limit(LimitKind::Bytes, self.bytes(), bytes.saturating_add(name))?;
        self.tokens.issue()
    }

    /// The bounds that one more remembered request must fit.
    pub(super) fn admit_request(&self, bytes: usize) -> Result<(), Refusal> {
        self.check_limit(LimitKind::Requests, self.requests.len(), 1)?;
        self.check_limit(LimitKind::Bytes, self.bytes(), bytes)
    }

    /// Bytes that count towards [`super::Limits::bytes_max`].
    pub(super) const fn bytes(&self) -> usize {
        self.leases.bytes().saturating_add(self.requests.bytes())
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
}

impl Acquire {
    pub(super) fn request_key(&self) -> Option<RequestKey> {
        let id = self.request.as_ref()?;
        Some(request_key(&self.key, &self.owner, id))
    }

    /// Bytes of the owner and the metadata.
    pub(super) fn payload_bytes(&self) -> usize {
        let metadata = self
            .metadata
            .as_ref()
            .map_or(0, |metadata| metadata.as_bytes().len());
        self.owner.as_bytes().len().saturating_add(metadata)
    }
}

pub(super) fn request_key(key: &LeaseKey, owner: &OwnerId, id: &RequestId) -> RequestKey {
    RequestKey {
        key: key.clone(),
        owner: owner.clone(),
        id: id.clone(),
    }
}
