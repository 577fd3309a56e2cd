use lease_core::{Fence, FenceToken};

use super::{Amount, AttemptId, Item, Note, OrderId, Reason, UnixMillis};

/// One try to be paid for an order. At most one of an order is active.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaymentAttempt {
    /// What is paid for.
    pub order: OrderId,
    /// Which try: the idempotency key to show to the gateway.
    pub attempt: AttemptId,
    /// Resource, and the highest token that has worked on this try.
    pub fence: Fence,
    /// In what, such as `EUR-cent`.
    pub currency: Item,
    /// How much.
    pub amount: Amount,
    /// When it was started, by the ledger's wall clock.
    pub started_at: UnixMillis,
    /// Where it stands.
    pub status: PaymentStatus,
}

impl PaymentAttempt {
    /// Whether it keeps the order: only a failed one makes room for another try.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        !matches!(self.status, PaymentStatus::Failed(_))
    }
}

/// Where a payment attempt stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PaymentStatus {
    /// Started; the gateway may or may not have heard of it.
    Ready,
    /// The gateway was asked, and its answer is not known. Only a status query or a person can tell.
    Unknown(Finding),
    /// Paid.
    Approved(Finding),
    /// Not paid, and never will be under this attempt.
    Failed(Finding),
}

impl PaymentStatus {
    /// Its name in JSON and SQL.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unknown(_) => "unknown",
            Self::Approved(_) => "approved",
            Self::Failed(_) => "failed",
        }
    }

    /// Who found it out and when, past [`PaymentStatus::Ready`].
    #[must_use]
    pub const fn finding(&self) -> Option<&Finding> {
        match self {
            Self::Ready => None,
            Self::Unknown(finding) | Self::Approved(finding) | Self::Failed(finding) => Some(finding),
        }
    }
}

/// How a payment's status was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// When, by the ledger's wall clock.
    pub at: UnixMillis,
    /// By whom.
    pub by: FoundBy,
    /// The gateway's reference, or what it said.
    pub note: Note,
}

impl Finding {
    pub(crate) const fn new(at: UnixMillis, by: FoundBy, note: Note) -> Self {
        Self { at, by, note }
    }
}

/// Who found out what became of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// The worker that asked the gateway, or asked it for the status.
    Worker(FenceToken),
    /// A person, for this reason.
    Person(Reason),
}

/// What became of a payment, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentResult {
    /// Paid.
    Approved,
    /// Not paid, and never will be under this attempt.
    Failed,
    /// The gateway was asked, and its answer is not known.
    Unknown,
}

/// A try to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentStart {
    pub(crate) order: OrderId,
    pub(crate) attempt: AttemptId,
    pub(crate) fence: Fence,
    pub(crate) currency: Item,
    pub(crate) amount: Amount,
}

impl PaymentStart {
    /// A try to be paid `amount` of `currency` for `order`, under the lease of `fence`.
    #[must_use]
    pub const fn new(
        order: OrderId,
        attempt: AttemptId,
        fence: Fence,
        currency: Item,
        amount: Amount,
    ) -> Self {
        Self {
            order,
            attempt,
            fence,
            currency,
            amount,
        }
    }
}
