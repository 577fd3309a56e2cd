use std::fmt;

use thiserror::Error;

use super::{ErrorReply, ErrorWord, LeaseVerb, Reply};
use crate::limits::{RENEW_MANY_MAX, TTL_MS_MAX};
use crate::types::{InvalidValue, SharedBytes};

/// Bytes of a caller's own text that a message repeats at the most.
const QUOTED_BYTES_MAX: usize = 64;

/// A `LEASE.*` request that says nothing that could be done. Nothing was applied; the connection goes on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// Too few arguments, or too many.
    #[error("wrong number of arguments for '{}' command; use {verb}", Lower(verb.name()))]
    WrongArity {
        /// The command.
        verb: LeaseVerb,
    },
    /// A word stands where an option should.
    #[error("syntax error: '{option}' is no option here; use {verb}")]
    UnknownOption {
        /// The command.
        verb: LeaseVerb,
        /// The word, cut off if it is long.
        option: SharedBytes,
    },
    /// An option is given twice.
    #[error("syntax error: {option} is given twice; use {verb}")]
    DuplicateOption {
        /// The command.
        verb: LeaseVerb,
        /// The option.
        option: &'static str,
    },
    /// An option's value is missing.
    #[error("syntax error: {option} needs a value; use {verb}")]
    MissingValue {
        /// The command.
        verb: LeaseVerb,
        /// The option.
        option: &'static str,
    },
    /// A name or an owner breaks its rule.
    #[error("{invalid}")]
    Name {
        /// Which rule.
        invalid: InvalidValue,
    },
    /// A time to live is no number in its range.
    #[error("ttl must be a decimal number of milliseconds, 1 to {TTL_MS_MAX}")]
    Ttl,
    /// A number is none, or outside its range.
    #[error("{what} must be a decimal number, {min} to {max}")]
    Number {
        /// What the number means.
        what: &'static str,
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// Another value breaks its rule.
    #[error("{invalid}")]
    Value {
        /// Which rule.
        invalid: InvalidValue,
    },
    /// A cursor was not given out by this store.
    #[error("CURSOR must be 0, or what the last LEASE.LIST answered")]
    Cursor,
    /// Too many leases in one renewal.
    #[error("one LEASE.MRENEW takes at most {RENEW_MANY_MAX} names; send several")]
    TooManyRenewals,
}

impl CommandError {
    pub(super) fn unknown_option(verb: LeaseVerb, option: &[u8]) -> Self {
        let shown = option.get(..QUOTED_BYTES_MAX).unwrap_or(option);
        Self::UnknownOption {
            verb,
            option: SharedBytes::from(shown),
        }
    }

    /// The word that stands before the message.
    #[must_use]
    pub const fn word(&self) -> ErrorWord {
        match self {
            Self::Name { .. } => ErrorWord::BadName,
            Self::Ttl => ErrorWord::BadTtl,
            Self::WrongArity { .. }
            | Self::UnknownOption { .. }
            | Self::DuplicateOption { .. }
            | Self::MissingValue { .. }
            | Self::Number { .. }
            | Self::Value { .. }
            | Self::Cursor
            | Self::TooManyRenewals => ErrorWord::Err,
        }
    }

    /// The reply that the caller gets.
    #[must_use]
    pub fn to_reply(&self) -> Reply {
        Reply::Error(ErrorReply::new(self.word(), self))
    }

    /// Whether sending the same request again can help: never.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        false
    }

    /// Whether the request may have been applied: never.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}

/// A name in small letters, as Redis writes it in this error.
struct Lower(&'static str);

impl fmt::Display for Lower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_ascii_lowercase())
    }
}
