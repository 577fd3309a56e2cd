//! Takes the elements of an answer in order, and writes the values that several answers share.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "any other kind of reply is unexpected, kinds to come included"
)]

use bytes::Bytes;

use super::AnswerError;
use crate::types::{FenceToken, LeaseName, OwnerId};
use crate::wire::{LeaseVerb, LossReason, Reply};

/// Remaining time of a lease without a deadline, as `PTTL` says it.
const NO_DEADLINE: i64 = -1;

/// The elements that were not taken yet.
pub(super) struct Fields {
    verb: LeaseVerb,
    items: std::vec::IntoIter<Reply>,
}

impl Fields {
    /// The elements of an array.
    pub(super) fn of(verb: LeaseVerb, reply: Reply) -> Result<Self, AnswerError> {
        match not_refused(verb, reply)? {
            Reply::Array(items) => Ok(Self {
                verb,
                items: items.into_iter(),
            }),
            _ => Err(AnswerError::Unexpected { verb }),
        }
    }

    /// The elements of an array; `None` for nil.
    pub(super) fn of_nullable(verb: LeaseVerb, reply: Reply) -> Result<Option<Self>, AnswerError> {
        match reply {
            Reply::Nil | Reply::NilArray => Ok(None),
            other => Self::of(verb, other).map(Some),
        }
    }

    pub(super) const fn unexpected(&self) -> AnswerError {
        AnswerError::Unexpected { verb: self.verb }
    }

    /// All elements that are left.
    pub(super) fn rest(self) -> impl Iterator<Item = Reply> {
        self.items
    }

    pub(super) fn next(&mut self) -> Result<Reply, AnswerError> {
        self.items.next().ok_or_else(|| self.unexpected())
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, AnswerError> {
        self.bytes_or_nil()?.ok_or_else(|| self.unexpected())
    }

    pub(super) fn bytes_or_nil(&mut self) -> Result<Option<Bytes>, AnswerError> {
        match self.next()? {
            Reply::Bulk(bytes) => Ok(Some(bytes)),
            Reply::Simple(line) => Ok(Some(Bytes::copy_from_slice(line.as_bytes()))),
            Reply::Nil => Ok(None),
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn token(&mut self) -> Result<FenceToken, AnswerError> {
        self.token_or_nil()?.ok_or_else(|| self.unexpected())
    }

    pub(super) fn token_or_nil(&mut self) -> Result<Option<FenceToken>, AnswerError> {
        token_or_nil(self.verb, self.next()?)
    }

    pub(super) fn count(&mut self) -> Result<u64, AnswerError> {
        self.count_or_nil()?.ok_or_else(|| self.unexpected())
    }

    pub(super) fn count_or_nil(&mut self) -> Result<Option<u64>, AnswerError> {
        match self.next()? {
            Reply::Integer(value) => u64::try_from(value).map(Some).map_err(|_| self.unexpected()),
            Reply::Nil => Ok(None),
            _ => Err(self.unexpected()),
        }
    }

    /// Milliseconds left; `None` without a deadline.
    pub(super) fn remaining_ms(&mut self) -> Result<Option<u64>, AnswerError> {
        match self.next()? {
            Reply::Integer(NO_DEADLINE) => Ok(None),
            Reply::Integer(value) => match u64::try_from(value) {
                Ok(millis) => Ok(Some(millis)),
                Err(_) => Err(self.unexpected()),
            },
            _ => Err(self.unexpected()),
        }
    }

    /// A name, which may be a Redis key.
    pub(super) fn name(&mut self) -> Result<LeaseName, AnswerError> {
        LeaseName::redis_key(self.bytes()?).map_err(|_| self.unexpected())
    }

    /// An owner, which may be a Redis value.
    pub(super) fn owner(&mut self) -> Result<OwnerId, AnswerError> {
        OwnerId::redis_value(self.bytes()?).map_err(|_| self.unexpected())
    }

    pub(super) fn reason(&mut self) -> Result<LossReason, AnswerError> {
        Ok(LossReason::parse(&self.bytes()?))
    }
}

/// The reply, unless it is an error.
pub(super) fn not_refused(verb: LeaseVerb, reply: Reply) -> Result<Reply, AnswerError> {
    match reply {
        Reply::Error(reply) => Err(AnswerError::Refused { verb, reply }),
        other => Ok(other),
    }
}

/// A token; `None` for nil.
pub(super) fn token_or_nil(verb: LeaseVerb, reply: Reply) -> Result<Option<FenceToken>, AnswerError> {
    match not_refused(verb, reply)? {
        Reply::Nil => Ok(None),
        Reply::Integer(value) => u64::try_from(value)
            .ok()
            .and_then(|value| FenceToken::new(value).ok())
            .map(Some)
            .ok_or(AnswerError::Unexpected { verb }),
        _ => Err(AnswerError::Unexpected { verb }),
    }
}

/// A token as it is sent.
pub(super) fn write_token(token: Option<FenceToken>) -> Reply {
    token.map_or(Reply::Nil, |token| Reply::count(token.get()))
}

/// Milliseconds left as they are sent.
pub(super) fn write_remaining(remaining_ms: Option<u64>) -> Reply {
    remaining_ms.map_or(Reply::Integer(NO_DEADLINE), Reply::count)
}

/// A reason as it is sent.
pub(super) fn write_reason(reason: &LossReason) -> Reply {
    Reply::Bulk(reason.to_bytes())
}
