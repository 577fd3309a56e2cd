use super::AnswerError;
use super::fields::{Fields, token_or_nil, write_reason, write_token};
use crate::types::FenceToken;
use crate::wire::{LeaseVerb, LossReason, Reply};

/// The answer to `LEASE.RELEASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The lease is over by this request.
    Released,
    /// The grant that was named was over before.
    Lost {
        /// Why.
        reason: LossReason,
    },
}

impl ReleaseReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::Array(match self {
            Self::Released => vec![Reply::word("released")],
            Self::Lost { reason } => vec![Reply::word("lost"), write_reason(reason)],
        })
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, which says whether the request may have been applied, or of another form.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let mut fields = Fields::of(LeaseVerb::Release, reply)?;
        match &*fields.bytes()? {
            b"released" => Ok(Self::Released),
            b"lost" => Ok(Self::Lost {
                reason: fields.reason()?,
            }),
            _ => Err(fields.unexpected()),
        }
    }
}

/// The answer to `LEASE.CANCEL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReply {
    /// The wait is over.
    Cancelled,
    /// The request had been granted; its lease is over.
    Released {
        /// The token of that grant.
        token: FenceToken,
    },
    /// No such request waits or holds.
    NotFound,
}

impl CancelReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        match self {
            Self::Cancelled => Reply::Array(vec![Reply::word("cancelled")]),
            Self::Released { token } => released(*token),
            Self::NotFound => Reply::Nil,
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, which says whether the request may have been applied, or of another form.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let Some(mut fields) = Fields::of_nullable(LeaseVerb::Cancel, reply)? else {
            return Ok(Self::NotFound);
        };
        match &*fields.bytes()? {
            b"cancelled" => Ok(Self::Cancelled),
            b"released" => Ok(Self::Released {
                token: fields.token()?,
            }),
            _ => Err(fields.unexpected()),
        }
    }
}

/// The answer to `LEASE.FORCE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForceReply {
    /// The lease is over by this request.
    Released {
        /// The token of its grant.
        token: FenceToken,
    },
    /// Nobody held the name.
    NotHeld,
}

impl ForceReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        match self {
            Self::Released { token } => released(*token),
            Self::NotHeld => Reply::Nil,
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, which says whether the request may have been applied, or of another form.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let Some(mut fields) = Fields::of_nullable(LeaseVerb::Force, reply)? else {
            return Ok(Self::NotHeld);
        };
        match &*fields.bytes()? {
            b"released" => Ok(Self::Released {
                token: fields.token()?,
            }),
            _ => Err(fields.unexpected()),
        }
    }
}

/// The answer to `LEASE.TOKEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenReply {
    /// The token of the lease that the owner holds; `None` if it does not hold it.
    pub token: Option<FenceToken>,
}

impl TokenReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        write_token(self.token)
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, or of another form. Nothing was applied: this only reads.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let token = token_or_nil(LeaseVerb::Token, reply)?;
        Ok(Self { token })
    }
}

fn released(token: FenceToken) -> Reply {
    Reply::Array(vec![Reply::word("released"), write_token(Some(token))])
}
