//! The reward ledger, on sled in a directory of its own, with as many of its protections as the rung has.

use lease_core::Fence;
use reward_ledger::testing::{Protection, Protections};
use reward_ledger::{
    Amount, AttemptId, Claim, ClaimOutcome, Item, Ledger, OrderId, PaymentOutcome, PaymentStart, Receipt,
    RewardEventId, SledConfig, SledStore,
};
use tempfile::TempDir;

use super::{GOLD, ORDER, PLAYER, Pay, Start, Told};
use crate::Failure;
use crate::rung::Rung;

/// What whoever asks again is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    /// Each try is one of its own, and of a reward that was granted it is told no more than that.
    Tries,
    /// All tries of a message are one, and all of a reward get its first receipt.
    Receipts,
}

/// A ledger that checks tokens.
#[derive(Debug)]
pub(crate) struct Checked {
    ledger: Ledger,
    answering: Answering,
    _directory: TempDir,
}

impl Checked {
    /// One with the protections of `rung`.
    pub(crate) fn open(rung: Rung) -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let protections = if rung < Rung::UniqueKey {
            Protections::all_without(Protection::UniqueEvent)
        } else {
            Protections::ALL
        };
        let config = SledConfig::builder(directory.path()).protections(protections);
        let store = SledStore::open_with(config.build()?)?;
        let answering = if rung < Rung::Receipts {
            Answering::Tries
        } else {
            Answering::Receipts
        };
        Ok(Self {
            ledger: Ledger::open(store),
            answering,
            _directory: directory,
        })
    }

    pub(crate) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) async fn look(&self, event: &RewardEventId) -> Result<u64, Failure> {
        let receipt = self.ledger.get(PLAYER, event).await?;
        Ok(u64::from(receipt.is_some()))
    }

    pub(super) async fn pay(&self, pay: &Pay) -> Result<Told, Failure> {
        let fence = fence(pay.fence.as_ref())?;
        let claim = Claim::builder(fence, PLAYER, pay.event.clone(), GOLD).item("gold");
        let claim = match self.answering {
            // Without a name, a try is one of its own.
            Answering::Tries => claim,
            Answering::Receipts => claim.attempt(&pay.message),
        };
        Ok(match self.ledger.claim(claim.build()?).await? {
            ClaimOutcome::Applied(receipt) => Told::Done(shown(&receipt)),
            ClaimOutcome::Replayed(receipt) => match self.answering {
                Answering::Tries => Told::Taken("the key is taken".to_owned()),
                Answering::Receipts => Told::Shown(shown(&receipt)),
            },
            ClaimOutcome::Stale { presented, seen, .. } => {
                Told::Refused(format!("stale, {presented} < {seen}"))
            }
            other @ (ClaimOutcome::Conflict { .. } | _) => {
                return Err(format!("not an answer of this ladder: {other:?}").into());
            }
        })
    }

    pub(super) async fn payments(&self) -> Result<u64, Failure> {
        // By the sum: without a unique key, claims of one event stand in one place of the index.
        let granted = self.ledger.audit().await?.granted;
        Ok(u64::try_from(granted / i128::from(GOLD))?)
    }

    pub(super) async fn look_order(&self) -> Result<u64, Failure> {
        let attempts = self.ledger.payments(&OrderId::new(ORDER)?).await?;
        Ok(attempts
            .iter()
            .filter(|attempt| attempt.is_active())
            .map(|_| 1)
            .sum())
    }

    pub(super) async fn start(&self, start: &Start) -> Result<Told, Failure> {
        let start = PaymentStart::new(
            OrderId::new(ORDER)?,
            AttemptId::new(&start.attempt)?,
            fence(start.fence.as_ref())?,
            Item::new("EUR-cent")?,
            Amount::new(GOLD)?,
        );
        Ok(match self.ledger.start_payment(start).await? {
            PaymentOutcome::Started(_) => Told::Done("started".to_owned()),
            PaymentOutcome::Existing(_) => Told::Shown("started before".to_owned()),
            PaymentOutcome::Stale { presented, seen, .. } => {
                Told::Refused(format!("stale, {presented} < {seen}"))
            }
            PaymentOutcome::Blocked(active) => Told::Refused(format!("{} is active", active.attempt)),
            other @ (PaymentOutcome::TooMany { .. } | PaymentOutcome::Conflict(_) | _) => {
                return Err(format!("not an answer of this ladder: {other:?}").into());
            }
        })
    }
}

fn shown(receipt: &Receipt) -> String {
    format!("receipt {}", receipt.claim_id())
}

fn fence(fence: Option<&Fence>) -> Result<Fence, Failure> {
    Ok(fence.ok_or("this ledger takes fenced claims only")?.clone())
}
