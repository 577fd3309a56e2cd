//! The stored rows of the outbox and of reversals, as plain data.

use serde::{Deserialize, Serialize};

use super::codec::Record;
use super::records::InvalidRow;
use crate::core::delivery;
use crate::event_id::RewardEventId;
use crate::types::{
    ClaimId, DeliveryProgress, DeliveryState, Doubt, Note, PlayerId, PublisherId, Reason, Receipt, Reversal,
    UnixMillis,
};

/// The intent to tell the outside world of a claim or of its reversal, and how far that has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutboxRow {
    pub(crate) player: i64,
    pub(crate) event: String,
    pub(crate) subject: SubjectRow,
    pub(crate) state: StateRow,
    pub(crate) epoch: u64,
    pub(crate) tries: u32,
    pub(crate) first_sent_ms: Option<u64>,
    pub(crate) doubt: DoubtRow,
    pub(crate) note: String,
}

/// What the outside is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SubjectRow {
    /// The claim of the row's own number.
    Grant,
    /// The row's own number is that of a reversal of this claim.
    Reversal { claim_id: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StateRow {
    Pending {
        due_ms: u64,
    },
    Leased {
        owner: String,
        since_ms: u64,
        until_ms: u64,
    },
    Delivered {
        at_ms: u64,
    },
    Dead {
        at_ms: u64,
    },
    Discarded {
        at_ms: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DoubtRow {
    NotDone,
    Unknown,
}

impl Record for OutboxRow {
    const NAME: &'static str = "outbox";
    const VERSION: u8 = 2;
}

/// A grant that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReversalRow {
    pub(crate) id: u64,
    pub(crate) player: i64,
    pub(crate) event: String,
    pub(crate) at_ms: u64,
    pub(crate) reason: String,
}

impl Record for ReversalRow {
    const NAME: &'static str = "reversal";
    const VERSION: u8 = 1;
}

impl OutboxRow {
    /// The row of a new claim.
    pub(crate) fn of_grant(receipt: &Receipt, progress: &DeliveryProgress) -> Self {
        Self::new(receipt, SubjectRow::Grant, progress)
    }

    /// The row of a new reversal.
    pub(crate) fn of_reversal(receipt: &Receipt, progress: &DeliveryProgress) -> Self {
        let claim_id = receipt.claim_id().get();
        Self::new(receipt, SubjectRow::Reversal { claim_id }, progress)
    }

    fn new(receipt: &Receipt, subject: SubjectRow, progress: &DeliveryProgress) -> Self {
        Self {
            player: receipt.player().get(),
            event: receipt.event().as_str().to_owned(),
            subject,
            state: StateRow::of(progress.state()),
            epoch: progress.epoch,
            tries: progress.tries,
            first_sent_ms: progress.first_sent.map(UnixMillis::get),
            doubt: match progress.doubt {
                Doubt::NotDone => DoubtRow::NotDone,
                Doubt::Unknown => DoubtRow::Unknown,
            },
            note: progress.note.as_str().to_owned(),
        }
    }

    /// The row with other progress.
    pub(crate) fn with(&self, progress: &DeliveryProgress) -> Self {
        Self {
            state: StateRow::of(progress.state()),
            epoch: progress.epoch,
            tries: progress.tries,
            first_sent_ms: progress.first_sent.map(UnixMillis::get),
            doubt: match progress.doubt {
                Doubt::NotDone => DoubtRow::NotDone,
                Doubt::Unknown => DoubtRow::Unknown,
            },
            note: progress.note.as_str().to_owned(),
            ..self.clone()
        }
    }

    pub(crate) const fn player(&self) -> PlayerId {
        PlayerId::new(self.player)
    }

    pub(crate) fn event(&self) -> Result<RewardEventId, InvalidRow> {
        Ok(RewardEventId::stored(&self.event)?)
    }

    /// The claim that the row is about; `id` is the row's own number.
    pub(crate) const fn claim_id(&self, id: ClaimId) -> ClaimId {
        match self.subject {
            SubjectRow::Grant => id,
            SubjectRow::Reversal { claim_id } => ClaimId::new(claim_id),
        }
    }

    pub(crate) fn progress(&self) -> DeliveryProgress {
        let at = UnixMillis::new;
        DeliveryProgress {
            state: match &self.state {
                StateRow::Pending { due_ms } => DeliveryState::Pending { due: at(*due_ms) },
                StateRow::Leased {
                    owner,
                    since_ms,
                    until_ms,
                } => DeliveryState::Leased {
                    owner: PublisherId::new(owner),
                    since: at(*since_ms),
                    until: at(*until_ms),
                },
                StateRow::Delivered { at_ms } => DeliveryState::Delivered { at: at(*at_ms) },
                StateRow::Dead { at_ms } => DeliveryState::Dead { at: at(*at_ms) },
                StateRow::Discarded { at_ms } => DeliveryState::Discarded { at: at(*at_ms) },
            },
            epoch: self.epoch,
            tries: self.tries,
            first_sent: self.first_sent_ms.map(at),
            doubt: match self.doubt {
                DoubtRow::NotDone => Doubt::NotDone,
                DoubtRow::Unknown => Doubt::Unknown,
            },
            note: Note::new(&self.note),
        }
    }

    /// When a publisher may take the row; `None` for one that is not open.
    pub(crate) fn due(&self) -> Option<UnixMillis> {
        delivery::due(&self.progress())
    }
}

impl StateRow {
    fn of(state: &DeliveryState) -> Self {
        match state {
            DeliveryState::Pending { due } => Self::Pending { due_ms: due.get() },
            DeliveryState::Leased { owner, since, until } => Self::Leased {
                owner: owner.as_str().to_owned(),
                since_ms: since.get(),
                until_ms: until.get(),
            },
            DeliveryState::Delivered { at } => Self::Delivered { at_ms: at.get() },
            DeliveryState::Dead { at } => Self::Dead { at_ms: at.get() },
            DeliveryState::Discarded { at } => Self::Discarded { at_ms: at.get() },
        }
    }
}

impl ReversalRow {
    pub(crate) fn of(reversal: &Reversal) -> Self {
        Self {
            id: reversal.id.get(),
            player: reversal.player.get(),
            event: reversal.event.as_str().to_owned(),
            at_ms: reversal.recorded_at.get(),
            reason: reversal.reason.as_str().to_owned(),
        }
    }

    pub(crate) fn reversal(&self, claim_id: ClaimId) -> Result<Reversal, InvalidRow> {
        Ok(Reversal {
            id: ClaimId::new(self.id),
            claim_id,
            player: PlayerId::new(self.player),
            event: RewardEventId::stored(&self.event)?,
            recorded_at: UnixMillis::new(self.at_ms),
            reason: Reason::new(&self.reason)?,
        })
    }
}
