use super::AnswerError;
use super::fields::{Fields, write_reason, write_token};
use crate::types::{FenceToken, OwnerId, Timestamp};
use crate::wire::{LeaseVerb, LossReason, Reply};

/// What happened to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HistoryEvent {
    /// A lease was granted.
    Granted,
    /// A lease ended; the entry has its reason.
    Ended,
    /// What a newer server says with a word that is not known here.
    Unknown,
}

impl HistoryEvent {
    /// The word as it is sent.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }

    /// The event that a server gives with this word.
    #[must_use]
    pub fn parse(word: &[u8]) -> Self {
        match word {
            b"granted" => Self::Granted,
            b"ended" => Self::Ended,
            _ => Self::Unknown,
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// What happened.
    pub event: HistoryEvent,
    /// To the grant with this token.
    pub token: FenceToken,
    /// Whose it was.
    pub owner: OwnerId,
    /// When, on the cluster's clock.
    pub at: Timestamp,
    /// Why; `None` where nothing ended.
    pub reason: Option<LossReason>,
}

/// The answer to `LEASE.HISTORY`: the newest event first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryReply {
    /// The events that the answering node remembers.
    pub events: Vec<HistoryEntry>,
}

impl HistoryReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::Array(
            self.events
                .iter()
                .map(|entry| {
                    Reply::Array(vec![
                        Reply::word(entry.event.word()),
                        write_token(Some(entry.token)),
                        Reply::bulk(entry.owner.as_bytes()),
                        Reply::count(entry.at.as_millis()),
                        entry.reason.as_ref().map_or(Reply::Nil, write_reason),
                    ])
                })
                .collect(),
        )
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, or of another form. Nothing was applied: this only reads.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let fields = Fields::of(LeaseVerb::History, reply)?;
        let events = fields.rest().map(read_entry).collect::<Result<_, _>>()?;
        Ok(Self { events })
    }
}

fn read_entry(reply: Reply) -> Result<HistoryEntry, AnswerError> {
    let mut fields = Fields::of(LeaseVerb::History, reply)?;
    Ok(HistoryEntry {
        event: HistoryEvent::parse(&fields.bytes()?),
        token: fields.token()?,
        owner: fields.owner()?,
        at: Timestamp::from_millis(fields.count()?),
        reason: fields.bytes_or_nil()?.map(|text| LossReason::parse(&text)),
    })
}
