use super::AnswerError;
use super::fields::{Fields, write_reason, write_remaining, write_token};
use crate::types::{FenceToken, OwnerId};
use crate::wire::{LeaseVerb, LossReason, Reply};

/// The answer to `LEASE.ACQUIRE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireReply {
    /// The lease is the caller's.
    Granted {
        /// The token of this grant; the same at each retry.
        token: FenceToken,
        /// Milliseconds left, as of the answer's log entry; `None` without a deadline.
        remaining_ms: Option<u64>,
        /// Milliseconds from the entry that carried the attempt being answered to the grant.
        waited_ms: u64,
    },
    /// Somebody else holds the lease.
    Held {
        /// The token of the holder's grant.
        token: FenceToken,
        /// Milliseconds left; `None` without a deadline.
        remaining_ms: Option<u64>,
        /// Who holds it.
        owner: OwnerId,
        /// Milliseconds since the grant.
        held_for_ms: u64,
        /// How many stand in the queue.
        waiters: u64,
    },
    /// What this request was granted is over, or the request was given up; it is never granted again.
    Ended {
        /// The token it had; `None` if it never had one.
        token: Option<FenceToken>,
        /// Why it is over.
        reason: LossReason,
    },
}

impl AcquireReply {
    /// The answer as it is sent.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::Array(match self {
            Self::Granted {
                token,
                remaining_ms,
                waited_ms,
            } => vec![
                Reply::word("granted"),
                write_token(Some(*token)),
                write_remaining(*remaining_ms),
                Reply::count(*waited_ms),
            ],
            Self::Held {
                token,
                remaining_ms,
                owner,
                held_for_ms,
                waiters,
            } => vec![
                Reply::word("held"),
                write_token(Some(*token)),
                write_remaining(*remaining_ms),
                Reply::bulk(owner.as_bytes()),
                Reply::count(*held_for_ms),
                Reply::count(*waiters),
            ],
            Self::Ended { token, reason } => {
                vec![Reply::word("ended"), write_token(*token), write_reason(reason)]
            }
        })
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`AnswerError`] if it is an error, which says whether the request may have been applied, or of another form.
    pub fn from_reply(reply: Reply) -> Result<Self, AnswerError> {
        let mut fields = Fields::of(LeaseVerb::Acquire, reply)?;
        match &*fields.bytes()? {
            b"granted" => Ok(Self::Granted {
                token: fields.token()?,
                remaining_ms: fields.remaining_ms()?,
                waited_ms: fields.count()?,
            }),
            b"held" => Ok(Self::Held {
                token: fields.token()?,
                remaining_ms: fields.remaining_ms()?,
                owner: fields.owner()?,
                held_for_ms: fields.count()?,
                waiters: fields.count()?,
            }),
            b"ended" => Ok(Self::Ended {
                token: fields.token_or_nil()?,
                reason: fields.reason()?,
            }),
            _ => Err(fields.unexpected()),
        }
    }
}
