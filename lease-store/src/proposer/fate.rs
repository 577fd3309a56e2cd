//! What became of a batch, and what its callers are told.

use std::sync::Arc;

use lease_core::machine::{Outcome, Refusal as MachineRefusal, Repeat};

use super::batch::{Ask, Doubt, Origin, Whose};
use super::route::State;
use super::{FORWARD_AGAIN_AFTER, PROPOSE_AGAIN_AFTER, Proposer};
use crate::error::StoreError;
use crate::orphans::{IfUndelivered, Undoing};
use crate::raft::error::{ProposeError, Refusal};
use crate::raft::types::LeadershipId;
use crate::runtime::Rt;

/// A batch that has its outcomes, or will not have them.
pub(super) struct Done<I> {
    pub(super) whose: Vec<Whose<I>>,
    pub(super) fate: Fate,
}

/// What became of a batch.
pub(super) enum Fate {
    /// Proposed here.
    Proposed {
        id: LeadershipId,
        result: Result<Vec<Outcome>, ProposeError>,
    },
    /// Forwarded.
    Forwarded(Vec<Result<Outcome, StoreError>>),
}

impl<R: Rt> Proposer<R> {
    /// Answers the callers of a batch.
    pub(super) fn on_done(&self, Done { whose, fate }: Done<R::Instant>, state: &mut State<R::Instant>) {
        match fate {
            Fate::Proposed {
                result: Ok(outcomes), ..
            } => {
                for (whose, outcome) in whose.into_iter().zip(outcomes) {
                    self.deliver(whose, Ok(outcome), state);
                }
            }
            Fate::Proposed {
                id,
                result: Err(error),
            } => {
                tracing::debug!(%error, commands = whose.len(), "an entry was not applied, or may not have been");
                if error.is_retryable() {
                    state.refused = Some((id, R::now() + PROPOSE_AGAIN_AFTER));
                }
                let told = self.store_error(&error);
                for whose in whose {
                    self.deliver_or_put_aside(whose, Err(told.clone()), state);
                }
            }
            Fate::Forwarded(outcomes) => {
                for (whose, outcome) in whose.into_iter().zip(outcomes) {
                    if outcome.as_ref().is_err_and(StoreError::is_retryable) {
                        state
                            .not_before
                            .get_or_insert_with(|| R::now() + FORWARD_AGAIN_AFTER);
                    }
                    self.deliver_or_put_aside(whose, outcome, state);
                }
            }
        }
    }

    /// What was surely not applied, and what may be applied again, is tried again while its caller still waits: a change
    /// of leaders need not be seen.
    fn deliver_or_put_aside(
        &self,
        whose: Whose<R::Instant>,
        outcome: Result<Outcome, StoreError>,
        state: &mut State<R::Instant>,
    ) {
        match (whose, outcome) {
            (Whose::Caller(ask), Err(StoreError::Unavailable { .. })) => self.put_aside(ask, state),
            (Whose::Caller(mut ask), Err(StoreError::Unknown)) if ask.may_be_sent_again() => {
                ask.doubt = Doubt::MayBeApplied;
                self.put_aside(ask, state);
            }
            (whose, outcome) => self.deliver(whose, outcome, state),
        }
    }

    /// Keeps a caller until there is a leader, or its time is over.
    pub(super) fn put_aside(&self, ask: Ask<R::Instant>, state: &mut State<R::Instant>) {
        let late = R::now() >= ask.waits_until();
        if late || ask.origin == Origin::Peer || self.node.failure().is_some() {
            self.refuse(ask, state);
        } else {
            let place = state
                .waiting
                .partition_point(|other| other.sequence < ask.sequence);
            state.waiting.insert(place, ask);
        }
    }

    pub(super) fn refuse_overdue(&self, state: &mut State<R::Instant>) {
        let now = R::now();
        let (overdue, waiting) = std::mem::take(&mut state.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|ask| now >= ask.waits_until());
        state.waiting = waiting.into();
        for ask in overdue {
            self.refuse(ask, state);
        }
    }

    fn refuse(&self, ask: Ask<R::Instant>, state: &mut State<R::Instant>) {
        let failed = |failure| StoreError::Failed(Arc::new(failure));
        let unavailable = StoreError::Unavailable {
            leader: self.role.borrow().leader(),
        };
        let error = self.node.failure().map_or(unavailable, failed);
        self.deliver(Whose::Caller(ask), Err(error), state);
    }

    pub(super) fn deliver(
        &self,
        whose: Whose<R::Instant>,
        outcome: Result<Outcome, StoreError>,
        state: &mut State<R::Instant>,
    ) {
        match whose {
            Whose::Caller(ask) => self.answer(ask, outcome, state),
            Whose::Orphans(undoing) => match outcome {
                Ok(_) => self.undone(&undoing, state),
                Err(_) => self.orphans.again(undoing),
            },
        }
    }

    fn answer(
        &self,
        ask: Ask<R::Instant>,
        outcome: Result<Outcome, StoreError>,
        state: &mut State<R::Instant>,
    ) {
        let outcome =
            match outcome {
                // The machine has forgotten what it answered to the first copy, or never saw one.
                Ok(Outcome::Refused(
                    MachineRefusal::NotRemembered | MachineRefusal::StaleIncarnation { .. },
                )) if ask.number.is_some() => Err(StoreError::Unknown),
                // One of its copies may have been applied.
                Err(error) if ask.doubt == Doubt::MayBeApplied && !error.may_have_applied() => {
                    Err(StoreError::Unknown)
                }
                outcome => outcome,
            };
        let Ask {
            request,
            number,
            reply,
            ..
        } = ask;
        if let Some(number) = number {
            let may_hold = outcome.as_ref().is_err_and(StoreError::may_have_applied);
            match &request.if_undelivered {
                // Whoever is told that nobody knows must not find later that it was granted after all.
                IfUndelivered::Release(key) if may_hold => {
                    self.orphans.withdraw(state.numbers.once(number), key.clone());
                }
                IfUndelivered::Release(_) | IfUndelivered::Keep => state.numbers.settle(number),
            }
        }
        if let Err(Ok(outcome)) = reply.send(outcome) {
            self.orphans.undelivered(&outcome, &request.if_undelivered);
        }
    }

    fn undone(&self, undoing: &Undoing, state: &mut State<R::Instant>) {
        self.orphans.undone();
        if let Some(attachment) = undoing.detaches {
            self.waiters.forget(attachment);
        }
        if let Some(number) = undoing.withdraws {
            state.numbers.settle(number);
        }
    }

    /// A caller that left before its command was sent off, or sent again.
    pub(super) fn give_up(&self, ask: Ask<R::Instant>, state: &mut State<R::Instant>) {
        self.answer(ask, Err(StoreError::Unavailable { leader: None }), state);
    }

    fn store_error(&self, error: &ProposeError) -> StoreError {
        let failure = self.node.failure();
        match (error, failure) {
            (
                ProposeError::NotApplied {
                    reason: Refusal::TooLong { .. },
                },
                _,
            ) => StoreError::TooLarge,
            (_, Some(failure)) => StoreError::Failed(Arc::new(failure)),
            (ProposeError::NotApplied { .. }, None) => StoreError::Unavailable {
                leader: self.role.borrow().leader(),
            },
            (ProposeError::Unknown { .. }, None) => StoreError::Unknown,
        }
    }
}

impl<I> Ask<I> {
    /// Whether a second copy does no harm: it is harmless by its nature, or the machine knows it by its number.
    const fn may_be_sent_again(&self) -> bool {
        let harmless = matches!(self.request.repeat, Repeat::Harmless);
        matches!(self.origin, Origin::Here) && (harmless || self.number.is_some())
    }
}
