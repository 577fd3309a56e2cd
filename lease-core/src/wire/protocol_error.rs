use std::fmt;

use thiserror::Error;

use super::{ErrorReply, ErrorWord, Reply};

/// A request stream that cannot be read on. The connection is told why and closed; nothing of the broken request was
/// applied.
///
/// Source: the texts of redis-server's `networking.c`, which clients and Redis's own protocol tests match on. Redis
/// has none for the last four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The count of arguments is no number, or above the limit.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// More arguments than a caller without password may send.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The line with the count of arguments does not end.
    #[error("Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// An argument does not begin with its length.
    #[error("Protocol error: expected '$', got '{}'", Printed(*got))]
    ExpectedBulk {
        /// The byte found instead.
        got: u8,
    },
    /// The length of an argument is no number, negative, or above the limit.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// A longer argument than a caller without password may send.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// The line with the length of an argument does not end.
    #[error("Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline request does not end.
    #[error("Protocol error: too big inline request")]
    TooBigInline,
    /// A quote of an inline request is not closed, or something follows it without a space.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// An inline request holds a zero byte. Redis never finds the end of such a line.
    #[error("Protocol error: zero byte in inline request")]
    ZeroByteInline,
    /// An inline request has more arguments than the limit.
    #[error("Protocol error: too many arguments in inline request")]
    TooManyInlineArguments,
    /// An argument is longer than its length says: client and server no longer agree where it ends.
    #[error("Protocol error: bulk is not followed by CRLF")]
    BulkNotTerminated,
    /// The arguments together are above the limit.
    #[error("Protocol error: too big request")]
    TooBigRequest,
}

impl ProtocolError {
    /// The reply that the connection sends before it closes.
    #[must_use]
    pub fn to_reply(self) -> Reply {
        Reply::Error(ErrorReply::new(ErrorWord::Err, self))
    }

    /// Whether sending the same bytes again can help: never.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        false
    }

    /// Whether the broken request may have been applied: never. Whole requests before it are answered before.
    #[must_use]
    pub const fn may_have_applied(self) -> bool {
        false
    }
}

/// A byte as it may stand within a line: line breaks as spaces, as in Redis.
struct Printed(u8);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\r' | b'\n' => f.write_str(" "),
            b' '..=b'~' => write!(f, "{}", char::from(self.0)),
            other => write!(f, "\\x{other:02x}"),
        }
    }
}
