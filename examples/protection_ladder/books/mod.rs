//! Where rewards and payments are written, from the table that trusts its lock to the ledger that checks its token.

mod checked;
mod published;
mod table;

use lease_core::Fence;
use reward_ledger::RewardEventId;

pub(crate) use self::checked::Checked;
pub(crate) use self::published::Published;
pub(crate) use self::table::Table;
use crate::Failure;

pub(crate) const PLAYER: i64 = 42;
pub(crate) const GOLD: i64 = 500;
pub(crate) const ORDER: &str = "order-7";

/// What a write was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was done now.
    Done(String),
    /// It was done before, and this is the first receipt.
    Shown(String),
    /// The writer has no authority any more, or so it seems: nothing was done.
    Refused(String),
    /// It was done before, and that is all that is told.
    Taken(String),
}

/// A request to pay a reward.
#[derive(Debug, Clone)]
pub(crate) struct Pay {
    pub(crate) event: RewardEventId,
    /// The message that asks for it: the same in every copy and retry.
    pub(crate) message: String,
    /// The token of the lock that it is made under, where the lock has one.
    pub(crate) fence: Option<Fence>,
}

/// A request to start a payment attempt of [`ORDER`].
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) attempt: String,
    pub(crate) fence: Option<Fence>,
}

/// The books of one course of events.
#[derive(Debug)]
pub(crate) enum Books {
    Table(Table),
    Published(Published),
    Checked(Checked),
}

impl Books {
    /// What whoever puts a message into the queue prepares.
    pub(crate) async fn announce(&self, events: &[RewardEventId]) -> Result<(), Failure> {
        match self {
            Self::Table(_) | Self::Checked(_) => Ok(()),
            Self::Published(books) => books.announce(events).await,
        }
    }

    /// How often a reward was paid so far.
    pub(crate) async fn look(&self, event: &RewardEventId) -> Result<u64, Failure> {
        match self {
            Self::Table(books) => Ok(books.look(event)),
            Self::Published(books) => books.look(event).await,
            Self::Checked(books) => books.look(event).await,
        }
    }

    /// Pays a reward.
    pub(crate) async fn pay(&self, pay: &Pay) -> Result<Told, Failure> {
        match self {
            Self::Table(books) => Ok(books.pay(pay)),
            Self::Published(books) => books.pay(pay).await,
            Self::Checked(books) => books.pay(pay).await,
        }
    }

    /// All payments of rewards, whatever they are for.
    pub(crate) async fn payments(&self) -> Result<u64, Failure> {
        match self {
            Self::Table(books) => Ok(books.payments()),
            Self::Published(books) => books.payments().await,
            Self::Checked(books) => books.payments().await,
        }
    }

    /// Active payment attempts of the order.
    pub(crate) async fn look_order(&self) -> Result<u64, Failure> {
        match self {
            Self::Table(books) => Ok(books.look_order()),
            Self::Published(books) => books.look_order().await,
            Self::Checked(books) => books.look_order().await,
        }
    }

    /// Starts a payment attempt: the gateway may be called if it is [`Told::Done`].
    pub(crate) async fn start(&self, start: &Start) -> Result<Told, Failure> {
        match self {
            Self::Table(books) => Ok(books.start(start)),
            Self::Published(books) => books.start(start).await,
            Self::Checked(books) => books.start(start).await,
        }
    }
}
