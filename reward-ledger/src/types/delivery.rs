use std::fmt;
use std::sync::Arc;

use super::{ClaimId, Note, Receipt, Reversal, UnixMillis};

/// One row of the outbox: what the outside is to be told, and how far that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// Its number: that of the claim, or of the reversal. A player's rows are delivered in this order.
    pub id: ClaimId,
    /// The claim it is about.
    pub receipt: Receipt,
    /// The reversal, where the outside is to take the grant back.
    pub reversal: Option<Reversal>,
    /// How far it has come.
    pub progress: DeliveryProgress,
}

impl Delivery {
    pub(crate) const fn new(
        id: ClaimId,
        receipt: Receipt,
        reversal: Option<Reversal>,
        progress: DeliveryProgress,
    ) -> Self {
        Self {
            id,
            receipt,
            reversal,
            progress,
        }
    }

    /// The key under which the outside must do this once: event and player, and for a reversal that it is one. Equal for
    /// every try of this row, different for every other row.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let kind = if self.reversal.is_some() {
            "reverse"
        } else {
            "grant"
        };
        format!("{kind}/{}/{}", self.receipt.player(), self.receipt.event())
    }
}

/// How far the delivery of an outbox row has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryProgress {
    pub(crate) state: DeliveryState,
    pub(crate) epoch: u64,
    pub(crate) tries: u32,
    pub(crate) first_sent: Option<UnixMillis>,
    pub(crate) doubt: Doubt,
    pub(crate) note: Note,
}

impl DeliveryProgress {
    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> &DeliveryState {
        &self.state
    }

    /// Raised each time the row is leased; whoever shows a lower one is a publisher of the past.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Tries that were made, or may have been.
    #[must_use]
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// When the outside may have heard of it first; `None` if it surely has not.
    #[must_use]
    pub const fn first_sent(&self) -> Option<UnixMillis> {
        self.first_sent
    }

    /// Whether the outside may have done it already.
    #[must_use]
    pub const fn doubt(&self) -> Doubt {
        self.doubt
    }

    /// What the last try came to, in words.
    #[must_use]
    pub const fn note(&self) -> &Note {
        &self.note
    }
}

/// Where an outbox row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeliveryState {
    /// It waits for a publisher.
    Pending {
        /// Not before this.
        due: UnixMillis,
    },
    /// A publisher works on it.
    Leased {
        /// Which.
        owner: PublisherId,
        /// Since when.
        since: UnixMillis,
        /// Others may take it from then on.
        until: UnixMillis,
    },
    /// The outside did it.
    Delivered {
        /// When the publisher learned of it.
        at: UnixMillis,
    },
    /// The publisher has given up: a person retries or discards it.
    Dead {
        /// Since when.
        at: UnixMillis,
    },
    /// A person decided that it is not to be delivered; the note says why.
    Discarded {
        /// When.
        at: UnixMillis,
    },
}

impl DeliveryState {
    /// Its name in JSON and SQL.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Leased { .. } => "leased",
            Self::Delivered { .. } => "delivered",
            Self::Dead { .. } => "dead",
            Self::Discarded { .. } => "discarded",
        }
    }

    /// Whether a publisher still has work with it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Pending { .. } | Self::Leased { .. })
    }
}

/// What is known of the tries so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// Nothing was done outside: never sent, or surely refused.
    NotDone,
    /// A try was sent and its outcome is unknown.
    Unknown,
}

impl Doubt {
    /// Its name in JSON and SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotDone => "not-done",
            Self::Unknown => "unknown",
        }
    }
}

/// Which publisher, of all that work on a ledger: unique for each start of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublisherId(Arc<str>);

impl PublisherId {
    /// A publisher's name, cut to fit.
    #[must_use]
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(Arc::from(Note::new(name).as_str()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a publisher's work on a row came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The outside did it, now or before.
    Delivered,
    /// It is tried again.
    Again {
        /// Not before this.
        due: UnixMillis,
        /// What is known of the try.
        doubt: Doubt,
        /// What the try came to.
        note: Note,
    },
    /// The publisher gives up.
    Dead {
        /// What is known of the tries.
        doubt: Doubt,
        /// Why.
        note: Note,
    },
    /// It was not sent at all: as it was before it was leased.
    Released,
}

/// A verdict on one leased row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub(crate) id: ClaimId,
    /// The row's epoch when it was leased.
    pub(crate) epoch: u64,
    pub(crate) verdict: Verdict,
}

impl Settlement {
    /// The verdict on a row that was leased.
    #[must_use]
    pub fn new(delivery: &Delivery, verdict: Verdict) -> Self {
        Self {
            id: delivery.id,
            epoch: delivery.progress.epoch,
            verdict,
        }
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It was written.
    Done,
    /// The row was leased again since, or is no longer leased: nothing was written.
    Superseded,
    /// There is no such row.
    Missing,
}
