use thiserror::Error;

/// A reply stream that cannot be read on. The connection must be closed; what its unanswered requests did is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyDecodeError {
    /// No kind of reply begins with this byte.
    #[error("no reply begins with byte 0x{got:02x}")]
    UnknownKind {
        /// The byte.
        got: u8,
    },
    /// A line is longer than a text or count may be.
    #[error("a line of a reply is longer than {max} bytes")]
    LineTooLong {
        /// Most bytes.
        max: usize,
    },
    /// A line or bulk does not end in CRLF where it should.
    #[error("a reply is not followed by CRLF")]
    NotTerminated,
    /// A count, length, number or truth value does not read as one.
    #[error("a reply of kind '{}' holds no valid value", char::from(*kind))]
    InvalidValue {
        /// Its first byte.
        kind: u8,
    },
    /// A reply is larger than this client takes.
    #[error("a reply is longer than {max} bytes")]
    TooLong {
        /// Most bytes.
        max: usize,
    },
    /// A reply has more elements than this client takes.
    #[error("a reply has more than {max} elements")]
    TooManyElements {
        /// Most elements, at all levels.
        max: usize,
    },
    /// Arrays within arrays, deeper than this client takes.
    #[error("a reply is nested deeper than {max} levels")]
    TooDeep {
        /// Most levels.
        max: usize,
    },
}

impl ReplyDecodeError {
    /// Whether asking again can help: no, the peer does not speak this protocol.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        false
    }

    /// Whether the unanswered requests may have been applied: yes.
    #[must_use]
    pub const fn may_have_applied(self) -> bool {
        true
    }
}
