//! A lease that stands: renewed, released, ended.

use super::leases::{DeadlineSetBy, Hold};
use super::outcome::{Effect, EndReason, Outcome};
use super::slab::Slot;
use super::{LeaseKey, LeaseMachine, ReleaseCause, Renewal};
use crate::types::{FenceToken, OwnerId, Timestamp};

impl Hold {
    /// What the passing of this deadline is called.
    pub(super) const fn expiry_reason(&self) -> EndReason {
        match self.deadline_set_by {
            DeadlineSetBy::Holder => EndReason::Expired,
            DeadlineSetBy::Override => EndReason::Overridden,
        }
    }
}

impl LeaseMachine {
    pub(super) fn renew(&mut self, renewal: &Renewal, effects: &mut Vec<Effect>) -> Outcome {
        let Some((slot, hold)) = self.standing(&renewal.key, renewal.token, effects) else {
            return self.lost(&renewal.key, renewal.token);
        };
        let ttl = renewal.ttl.or(hold.ttl);
        let deadline = ttl.map_or(Timestamp::NEVER, |ttl| self.now.after(ttl));
        self.leases
            .set_deadline(slot, deadline, ttl, DeadlineSetBy::Holder);
        Outcome::Renewed {
            remaining_ms: ttl.map(|_| deadline.millis_since(self.now)),
        }
    }

    pub(super) fn release(
        &mut self,
        key: &LeaseKey,
        token: FenceToken,
        cause: ReleaseCause,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let Some((slot, _)) = self.standing(key, token, effects) else {
            return self.lost(key, token);
        };
        let reason = match cause {
            ReleaseCause::Holder => EndReason::Released,
            ReleaseCause::Orphaned => EndReason::Orphaned,
        };
        self.end_hold(slot, reason, effects);
        self.serve_queue(slot, effects);
        Outcome::Released { token }
    }

    pub(super) fn release_by_owner(
        &mut self,
        key: &LeaseKey,
        owner: &OwnerId,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let slot = self.touch(key, effects);
        match slot.and_then(|slot| self.leases.hold(slot)) {
            Some(hold) if hold.owner == *owner => self.end_now(key, EndReason::Released, effects),
            _ => Outcome::NotFound,
        }
    }

    /// Ends a lease whoever holds it.
    pub(super) fn end_now(
        &mut self,
        key: &LeaseKey,
        reason: EndReason,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let Some(slot) = self.touch(key, effects) else {
            return Outcome::NotFound;
        };
        let Some(token) = self.end_hold(slot, reason, effects) else {
            return Outcome::NotFound;
        };
        self.serve_queue(slot, effects);
        Outcome::Released { token }
    }

    /// Takes the grant off a name and says so. The caller grants the name anew or serves its queue.
    pub(super) fn end_hold(
        &mut self,
        slot: Slot,
        reason: EndReason,
        effects: &mut Vec<Effect>,
    ) -> Option<FenceToken> {
        // Whoever's wait is over now is still told who held the lease.
        self.end_due_heads(slot, effects);
        let hold = self.leases.take_hold(slot)?;
        let key = self.leases.get(slot)?.key.clone();
        if let Some(request) = hold.request {
            self.requests
                .set_over(request, Some(hold.token), reason.clone(), self.now);
        }
        self.endings
            .record(key.clone(), hold.token, reason.clone(), self.now);
        self.bound_endings();
        effects.push(Effect::Ended {
            key,
            owner: hold.owner,
            token: hold.token,
            at: self.now,
            reason,
        });
        Some(hold.token)
    }

    /// The grant of `token`, if it still stands.
    fn standing(
        &mut self,
        key: &LeaseKey,
        token: FenceToken,
        effects: &mut Vec<Effect>,
    ) -> Option<(Slot, &Hold)> {
        let slot = self.touch(key, effects)?;
        let hold = self.leases.hold(slot)?;
        (hold.token == token).then_some((slot, hold))
    }

    fn lost(&self, key: &LeaseKey, token: FenceToken) -> Outcome {
        let reason = self
            .endings
            .find(key, token)
            .map_or(EndReason::Unknown, |ending| ending.reason.clone());
        Outcome::Lost { reason }
    }
}
