//! The callers that are parked here until the machine has an answer for them.
//!
//! The machine tells every attachment that was queued its end exactly once, also one whose caller is gone; and a
//! caller that leaves is struck once its detaching is applied. So an entry of this registry always goes away. It asks
//! nobody: whoever applies entries completes a parked caller directly, and effects
//! never wait for a proposal that waits for effects.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lease_core::Attachment;
use lease_core::machine::{Effect, Outcome};
use tokio::sync::oneshot;

use crate::orphans::{IfUndelivered, Orphans};

/// The registry of one life of one node.
#[derive(Debug)]
pub(crate) struct Waiters {
    node: u64,
    incarnation: u64,
    next_number: AtomicU64,
    parked: Mutex<Parking>,
    orphans: Arc<Orphans>,
}

#[derive(Debug)]
enum Parking {
    Open(BTreeMap<u64, Parked>),
    /// The node has stopped: nobody will have an answer any more.
    Closed,
}

#[derive(Debug)]
struct Parked {
    reply: oneshot::Sender<Outcome>,
    if_undelivered: IfUndelivered,
}

/// A caller's place. Dropping it before its answer came tells the machine that the caller is gone.
#[derive(Debug)]
pub(crate) struct Place {
    attachment: Attachment,
    answer: oneshot::Receiver<Outcome>,
    stage: Stage,
    if_undelivered: IfUndelivered,
    waiters: Arc<Waiters>,
}

/// How far a caller's wait has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its command may or may not be in the log.
    Proposed,
    /// It has its answer, or needs none.
    Settled,
}

impl Waiters {
    pub(crate) fn new(node: u64, incarnation: u64, orphans: Arc<Orphans>) -> Self {
        Self {
            node,
            incarnation,
            next_number: AtomicU64::new(1),
            parked: Mutex::new(Parking::Open(BTreeMap::new())),
            orphans,
        }
    }

    /// Makes a place for a caller, before its command is proposed.
    pub(crate) fn park(self: &Arc<Self>, if_undelivered: IfUndelivered) -> Place {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        if let Parking::Open(parked) = &mut *self.lock() {
            parked.insert(
                number,
                Parked {
                    reply,
                    if_undelivered: if_undelivered.clone(),
                },
            );
        }
        let attachment = Attachment {
            node: self.node,
            incarnation: self.incarnation,
            number,
        };
        Place {
            attachment,
            answer,
            stage: Stage::Proposed,
            if_undelivered,
            waiters: Arc::clone(self),
        }
    }

    /// Completes the parked callers that an entry has an answer for.
    pub(crate) fn wake(&self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Woken { attachment, outcome } = effect else {
                continue;
            };
            if attachment.node != self.node || attachment.incarnation != self.incarnation {
                continue;
            }
            let Some(parked) = self.take(attachment.number) else {
                continue;
            };
            if let Err(outcome) = parked.reply.send(outcome.clone()) {
                self.orphans.undelivered(&outcome, &parked.if_undelivered);
            }
        }
    }

    /// After a snapshot took the place of entries: whoever does not wait any more was told its end in one of them, and
    /// gets none here. It has to ask again, under its request id if it has one. So has a caller whose command comes only
    /// after the snapshot: nobody tells the two apart, so its wait is given up as it leaves.
    pub(crate) fn reconcile(&self, waits: impl Fn(Attachment) -> bool) {
        let mut ended = Vec::new();
        if let Parking::Open(parked) = &mut *self.lock() {
            let Self {
                node, incarnation, ..
            } = *self;
            let gone = parked.extract_if(.., |number, _| {
                !waits(Attachment {
                    node,
                    incarnation,
                    number: *number,
                })
            });
            ended.extend(gone);
        }
        // Callers wake here, outside the lock.
        drop(ended);
    }

    /// Strikes a caller whose wait was taken out of the queue: its end was told, or it never stood there.
    pub(crate) fn forget(&self, attachment: Attachment) {
        self.take(attachment.number);
    }

    /// How many are parked.
    pub(crate) fn len(&self) -> usize {
        match &*self.lock() {
            Parking::Open(parked) => parked.len(),
            Parking::Closed => 0,
        }
    }

    /// Whether callers are parked here; not after [`Waiters::close`].
    pub(crate) fn is_open(&self) -> bool {
        matches!(&*self.lock(), Parking::Open(_))
    }

    /// Sends everybody away without an answer, for good: the node has stopped.
    pub(crate) fn close(&self) {
        let parking = std::mem::replace(&mut *self.lock(), Parking::Closed);
        // Callers wake here, outside the lock.
        drop(parking);
    }

    fn take(&self, number: u64) -> Option<Parked> {
        match &mut *self.lock() {
            Parking::Open(parked) => parked.remove(&number),
            Parking::Closed => None,
        }
    }

    /// Nothing under this lock can panic half-way, so a poisoned one is as good as a sound one.
    fn lock(&self) -> MutexGuard<'_, Parking> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// What the machine knows this caller by.
    pub(crate) const fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// The command was answered at once, or was surely not applied: nobody waits.
    pub(crate) fn leave(mut self) {
        self.stage = Stage::Settled;
        self.waiters.forget(self.attachment);
    }

    /// The machine's answer; `None` if nobody gives it here any more: the machine is told that the caller is gone, since
    /// its wait may stand in a queue yet.
    ///
    /// # Cancel safety
    /// Dropping the future gives the wait up: the machine is told that the caller is gone.
    pub(crate) async fn answer(mut self) -> Option<Outcome> {
        let answer = (&mut self.answer).await.ok()?;
        self.stage = Stage::Settled;
        Some(answer)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.stage == Stage::Settled {
            return;
        }
        self.answer.close();
        match self.answer.try_recv() {
            Ok(outcome) => self.waiters.orphans.undelivered(&outcome, &self.if_undelivered),
            Err(_) => self.waiters.orphans.detach(self.attachment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lease_core::machine::LeaseKey;
    use lease_core::{Database, FenceToken, LeaseName};

    fn waiters() -> (Arc<Waiters>, Arc<Orphans>) {
        let orphans = Arc::new(Orphans::default());
        (Arc::new(Waiters::new(1, 7, Arc::clone(&orphans))), orphans)
    }

    fn release() -> IfUndelivered {
        IfUndelivered::Release(LeaseKey::new(Database::ZERO, LeaseName::new("a").unwrap()))
    }

    fn grant(attachment: Attachment) -> Effect {
        let outcome = Outcome::Granted {
            token: FenceToken::new(3).unwrap(),
            remaining_ms: Some(9),
            waited_ms: 1,
        };
        Effect::Woken { attachment, outcome }
    }

    #[tokio::test]
    async fn a_parked_caller_gets_the_machines_answer() {
        let (waiters, orphans) = waiters();
        let place = waiters.park(release());
        waiters.wake(&[grant(place.attachment())]);
        assert!(matches!(place.answer().await, Some(Outcome::Granted { .. })));
        assert_eq!(waiters.len(), 0);
        assert!(orphans.pop().is_none());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_is_detached_and_a_grant_that_finds_it_gone_is_released() {
        let (waiters, orphans) = waiters();
        let place = waiters.park(release());
        let attachment = place.attachment();
        drop(place);
        assert!(orphans.pop().is_some(), "the wait is detached");
        assert_eq!(waiters.len(), 1, "until the machine has told its end");
        waiters.wake(&[grant(attachment)]);
        assert!(orphans.pop().is_some(), "the grant is released");
        assert_eq!(waiters.len(), 0);
    }

    #[tokio::test]
    async fn a_grant_that_was_never_looked_at_is_released_and_one_with_a_request_id_stays() {
        let (waiters, orphans) = waiters();
        let (plain, named) = (waiters.park(release()), waiters.park(IfUndelivered::Keep));
        waiters.wake(&[grant(plain.attachment()), grant(named.attachment())]);
        drop((plain, named));
        assert!(orphans.pop().is_some());
        assert!(orphans.pop().is_none());
    }

    #[tokio::test]
    async fn after_a_snapshot_whoever_waits_no_more_has_to_ask_again() {
        let (waiters, orphans) = waiters();
        let (over, waits) = (waiters.park(release()), waiters.park(release()));
        let (left, standing) = (over.attachment(), waits.attachment());
        waiters.reconcile(|attachment| attachment == standing);
        assert_eq!(over.answer().await, None);
        let detached = orphans.pop().and_then(|undoing| undoing.detaches);
        assert_eq!(
            detached,
            Some(left),
            "its command may come only after the snapshot"
        );
        waiters.wake(&[grant(standing)]);
        assert!(waits.answer().await.is_some());
        assert!(orphans.pop().is_none());
    }

    #[tokio::test]
    async fn a_node_that_stops_sends_everybody_away() {
        let (waiters, _orphans) = waiters();
        let place = waiters.park(release());
        waiters.close();
        assert_eq!(place.answer().await, None);
        assert_eq!(
            waiters.park(release()).answer().await,
            None,
            "also whoever comes later"
        );
    }

    #[tokio::test]
    async fn an_answer_for_another_life_of_this_node_wakes_nobody() {
        let (waiters, _orphans) = waiters();
        let place = waiters.park(release());
        waiters.wake(&[grant(Attachment {
            incarnation: 6,
            ..place.attachment()
        })]);
        assert_eq!(waiters.len(), 1);
        place.leave();
        assert_eq!(waiters.len(), 0);
    }
}
