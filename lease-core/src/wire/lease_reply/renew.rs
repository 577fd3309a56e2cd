use super::AnswerError;
use super::fields::{Fields, write_reason, write_remaining};
use crate::wire::{LeaseVerb, LossReason, Reply};

/// The answer to `LEASE.RENEW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewReply {
    /// The lease stands.
    Renewed {
        /// Milliseconds left, as of the answer's log entry; `None` without a deadline.
        remaining_ms: Option<u64>,
    },
    /// The grant that was named is over.
    Lost {
        /// Why.
        reason: LossReason,
    },
}

impl RenewReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::Array(match self {
            Self::Renewed { remaining_ms } => vec![Reply::word("renewed"), write_remaining(*remaining_ms)],
            Self::Lost { reason } => vec![Reply::word("lost"), write_reason(reason)],
        })
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, which says whether the request may have been applied, or of another form.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        Self::read(Fields::of(LeaseVerb::Renew, reply)?)
    }

    fn read(mut fields: Fields) -> Result<Self, AnswerError> {
        match &*fields.bytes()? {
            b"renewed" => Ok(Self::Renewed {
                remaining_ms: fields.remaining_ms()?,
            }),
            b"lost" => Ok(Self::Lost {
                reason: fields.reason()?,
            }),
            _ => Err(fields.unexpected()),
        }
    }
}

/// The answer to `LEASE.MRENEW`: one for each lease that was named, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewManyReply {
    /// The answers.
    pub answers: Vec<RenewReply>,
}

impl RenewManyReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::Array(self.answers.iter().map(RenewReply::to_reply).collect())
    }

    /// Reads the answer to a renewal of `asked` leases.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, which says whether the request may have been applied, or of another form;
    /// another number of answers is of another form, since nobody could tell whose they are.
    pub fn from_reply(asked: usize, reply: Reply) -> Result<Self, AnswerError> {
        let verb = LeaseVerb::RenewMany;
        let answers: Vec<_> = Fields::of(verb, reply)?
            .rest()
            .map(|reply| RenewReply::read(Fields::of(verb, reply)?))
            .collect::<Result<_, _>>()?;
        if answers.len() != asked {
            return Err(AnswerError::Unexpected { verb });
        }
        Ok(Self { answers })
    }
}
