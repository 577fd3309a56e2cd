//! The states of a payment attempt: `READY -> approved | failed | unknown`, one active attempt an order.

use lease_core::FenceToken;

use crate::limits::PAYMENT_ATTEMPTS_MAX;
use crate::types::{
    AttemptId, Finding, FoundBy, Note, PaymentAttempt, PaymentResult, PaymentStart, PaymentStatus, Reason,
    UnixMillis,
};

/// What the start of an attempt rests on, as one transaction read it.
#[derive(Debug, Clone)]
pub(crate) struct PaymentView {
    /// The attempt of this id, of whatever order.
    pub(crate) same: Option<PaymentAttempt>,
    /// The order's active attempt.
    pub(crate) active: Option<PaymentAttempt>,
    /// Attempts of the order, active or not.
    pub(crate) attempts: usize,
    /// Highest token seen for the start's resource.
    pub(crate) seen: Option<FenceToken>,
}

/// The answer to the start of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refusal is an answer, not an error"]
#[non_exhaustive]
pub enum PaymentOutcome {
    /// It is the order's active attempt now: call the gateway, with the attempt's id as its idempotency key.
    Started(PaymentAttempt),
    /// The same attempt was started before. Where it is ready or unknown, ask the gateway for the status first.
    Existing(PaymentAttempt),
    /// Another attempt of this order is active: paid, in work, or of unknown outcome.
    Blocked(PaymentAttempt),
    /// A higher token has been seen for the resource.
    Stale {
        /// The token that was shown.
        presented: FenceToken,
        /// The highest token that had been seen.
        seen: FenceToken,
        /// The order's active attempt, if there is one.
        active: Option<PaymentAttempt>,
    },
    /// So many attempts of this order have failed that no further one is taken; a person should look.
    TooMany {
        /// Attempts of the order.
        attempts: usize,
    },
    /// The attempt's id was used for something else; the fields that differ, never empty.
    Conflict(Vec<PaymentField>),
}

/// A field in which two payments disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaymentField {
    /// What is paid for.
    Order,
    /// The resource whose fence it passes.
    Resource,
    /// In what.
    Currency,
    /// How much.
    Amount,
}

impl PaymentField {
    /// The field's name in JSON and SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Order => "order_id",
            Self::Resource => "resource",
            Self::Currency => "currency",
            Self::Amount => "amount",
        }
    }
}

/// What to answer, and what to write before the answer leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaymentDecision<O> {
    pub(crate) outcome: O,
    /// The attempt as it is from now on.
    pub(crate) write: Option<PaymentAttempt>,
    /// The resource's highest token becomes this one.
    pub(crate) raise: Option<FenceToken>,
}

impl<O> PaymentDecision<O> {
    const fn answer(outcome: O) -> Self {
        Self {
            outcome,
            write: None,
            raise: None,
        }
    }
}

/// Decides the start of a payment: the attempt's id, then the fence, then the order.
pub(crate) fn start(
    view: &PaymentView,
    start: &PaymentStart,
    at: UnixMillis,
) -> PaymentDecision<PaymentOutcome> {
    if let Some(same) = &view.same {
        let fields = differences(same, start);
        if !fields.is_empty() {
            return PaymentDecision::answer(PaymentOutcome::Conflict(fields));
        }
    }
    let presented = start.fence.token;
    if let Some(seen) = view.seen.filter(|&seen| presented < seen) {
        return PaymentDecision::answer(PaymentOutcome::Stale {
            presented,
            seen,
            active: view.active.clone(),
        });
    }
    let raise = view.seen.is_none_or(|seen| seen < presented).then_some(presented);
    if let Some(same) = &view.same {
        let mut taken_over = same.clone();
        taken_over.fence.token = presented.max(same.fence.token);
        return PaymentDecision {
            write: (taken_over != *same).then(|| taken_over.clone()),
            outcome: PaymentOutcome::Existing(taken_over),
            raise,
        };
    }
    if let Some(active) = &view.active {
        return PaymentDecision {
            outcome: PaymentOutcome::Blocked(active.clone()),
            write: None,
            raise,
        };
    }
    if view.attempts >= PAYMENT_ATTEMPTS_MAX {
        let attempts = view.attempts;
        return PaymentDecision {
            outcome: PaymentOutcome::TooMany { attempts },
            write: None,
            raise,
        };
    }
    let started = PaymentAttempt {
        order: start.order.clone(),
        attempt: start.attempt.clone(),
        fence: start.fence.clone(),
        currency: start.currency.clone(),
        amount: start.amount,
        started_at: at,
        status: PaymentStatus::Ready,
    };
    PaymentDecision {
        outcome: PaymentOutcome::Started(started.clone()),
        write: Some(started),
        raise,
    }
}

fn differences(same: &PaymentAttempt, start: &PaymentStart) -> Vec<PaymentField> {
    [
        (same.order != start.order, PaymentField::Order),
        (
            same.fence.resource != start.fence.resource,
            PaymentField::Resource,
        ),
        (same.currency != start.currency, PaymentField::Currency),
        (same.amount != start.amount, PaymentField::Amount),
    ]
    .into_iter()
    .filter_map(|(differs, field)| differs.then_some(field))
    .collect()
}

/// Who says what became of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentWitness {
    /// The worker that holds the lease, with its token.
    Worker(FenceToken),
    /// A person, for this reason.
    Person(Reason),
}

/// What became of a payment, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentReport {
    pub(crate) attempt: AttemptId,
    pub(crate) result: PaymentResult,
    pub(crate) witness: PaymentWitness,
    pub(crate) note: Note,
}

impl PaymentReport {
    /// What the worker that holds the lease learned of an attempt; `note` is the gateway's reference, or what it said.
    #[must_use]
    pub const fn of_worker(attempt: AttemptId, result: PaymentResult, token: FenceToken, note: Note) -> Self {
        Self {
            attempt,
            result,
            witness: PaymentWitness::Worker(token),
            note,
        }
    }

    /// What a person found out about an attempt whose outcome nothing else can tell.
    #[must_use]
    pub fn of_person(attempt: AttemptId, judgement: Judgement, reason: Reason) -> Self {
        Self {
            attempt,
            result: match judgement {
                Judgement::Approved => PaymentResult::Approved,
                Judgement::Failed => PaymentResult::Failed,
            },
            witness: PaymentWitness::Person(reason),
            note: Note::default(),
        }
    }
}

/// What a person says of a payment: never that it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Paid.
    Approved,
    /// Not paid, and never will be under this attempt.
    Failed,
}

/// The answer to a report on a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refusal is an answer, not an error"]
#[non_exhaustive]
pub enum ReportOutcome {
    /// The attempt stands so now, or stood so already.
    Recorded(PaymentAttempt),
    /// A higher token has been seen for the resource: the report touched nothing.
    Stale {
        /// The token that was shown.
        presented: FenceToken,
        /// The highest token that had been seen.
        seen: FenceToken,
        /// The attempt as it stands.
        attempt: PaymentAttempt,
    },
    /// The attempt is approved or failed already, and the report says otherwise.
    Final(PaymentAttempt),
    /// There is no such attempt.
    NotFound,
}

/// Decides a report. A worker shows its token; a person needs none. What is approved or failed stays so.
pub(crate) fn report(
    same: Option<&PaymentAttempt>,
    seen: Option<FenceToken>,
    report: &PaymentReport,
    at: UnixMillis,
) -> PaymentDecision<ReportOutcome> {
    let Some(same) = same else {
        return PaymentDecision::answer(ReportOutcome::NotFound);
    };
    let mut raise = None;
    let by = match &report.witness {
        PaymentWitness::Worker(presented) => {
            let presented = *presented;
            if let Some(seen) = seen.filter(|&seen| presented < seen) {
                return PaymentDecision::answer(ReportOutcome::Stale {
                    presented,
                    seen,
                    attempt: same.clone(),
                });
            }
            raise = seen.is_none_or(|seen| seen < presented).then_some(presented);
            FoundBy::Worker(presented)
        }
        PaymentWitness::Person(reason) => FoundBy::Person(reason.clone()),
    };
    let finding = Finding::new(at, by, report.note.clone());
    let next = match (&same.status, report.result) {
        (PaymentStatus::Approved(_), PaymentResult::Approved)
        | (PaymentStatus::Failed(_), PaymentResult::Failed) => None,
        (PaymentStatus::Approved(_) | PaymentStatus::Failed(_), _) => {
            return PaymentDecision {
                raise,
                ..PaymentDecision::answer(ReportOutcome::Final(same.clone()))
            };
        }
        (PaymentStatus::Ready | PaymentStatus::Unknown(_), PaymentResult::Approved) => {
            Some(PaymentStatus::Approved(finding))
        }
        (PaymentStatus::Ready | PaymentStatus::Unknown(_), PaymentResult::Failed) => {
            Some(PaymentStatus::Failed(finding))
        }
        (PaymentStatus::Ready | PaymentStatus::Unknown(_), PaymentResult::Unknown) => {
            Some(PaymentStatus::Unknown(finding))
        }
    };
    let mut standing = same.clone();
    if let Some(token) = raise {
        standing.fence.token = standing.fence.token.max(token);
    }
    if let Some(status) = next {
        standing.status = status;
    }
    PaymentDecision {
        write: (standing != *same).then(|| standing.clone()),
        outcome: ReportOutcome::Recorded(standing),
        raise,
    }
}
