use std::fmt;

use bytes::Bytes;

use super::{ErrorWord, Line};
use crate::limits::ERROR_TEXT_BYTES_MAX;

/// One answer of the server, the same for both protocols; [`Reply::encode`] knows their differences.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// A short status, such as `OK`.
    Simple(Line),
    /// A refusal or a failure.
    Error(ErrorReply),
    /// A whole number.
    Integer(i64),
    /// Bytes of any kind.
    Bulk(Bytes),
    /// No value.
    Nil,
    /// No array: what `EXEC` and blocking commands answer in place of one. The same as `Nil` in RESP3.
    NilArray,
    /// Values in order.
    Array(Vec<Self>),
    /// Keys and values; a flat array in RESP2.
    Map(Vec<(Self, Self)>),
    /// Distinct values; an array in RESP2.
    Set(Vec<Self>),
    /// A message that answers no request; an array in RESP2.
    Push(Vec<Self>),
    /// Text for people; a bulk in RESP2.
    Verbatim(Bytes),
    /// A number with a fraction; a bulk in RESP2.
    Double(f64),
    /// Yes or no; 1 or 0 in RESP2.
    Boolean(bool),
}

impl Reply {
    /// `+OK`.
    pub const OK: Self = Self::Simple(Line::from_static("OK"));

    /// A bulk of a constant text, without allocation.
    #[must_use]
    pub const fn word(text: &'static str) -> Self {
        Self::Bulk(Bytes::from_static(text.as_bytes()))
    }

    /// A bulk with a copy of `bytes`.
    #[must_use]
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(Bytes::copy_from_slice(bytes.as_ref()))
    }

    /// An error reply, `word` first.
    #[must_use]
    pub fn error(word: ErrorWord, message: impl fmt::Display) -> Self {
        Self::Error(ErrorReply::new(word, message))
    }

    /// An integer; values above 2^63 - 1, which a reply cannot hold, become that.
    #[must_use]
    pub fn count(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<ErrorReply> for Reply {
    fn from(error: ErrorReply) -> Self {
        Self::Error(error)
    }
}

/// An error reply: a word for programs, and a text for people.
#[derive(Clone, PartialEq, Eq)]
pub struct ErrorReply(Line);

impl ErrorReply {
    /// The error `word message`, cut off at [`ERROR_TEXT_BYTES_MAX`].
    #[must_use]
    pub fn new(word: ErrorWord, message: impl fmt::Display) -> Self {
        let mut text = format!("{word} {message}");
        text.truncate(text.floor_char_boundary(ERROR_TEXT_BYTES_MAX));
        Self(Line::from(text))
    }

    /// An error with a word of its own choice, as scripts may give.
    #[must_use]
    pub const fn from_line(line: Line) -> Self {
        Self(line)
    }

    /// The whole text, its word first.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The first word; `None` if it is none of ours.
    #[must_use]
    pub fn word(&self) -> Option<ErrorWord> {
        ErrorWord::parse(self.split().0)
    }

    /// The text behind the first word.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.split().1
    }

    /// Whether sending the same request again can help; not for an unknown word.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.word().is_some_and(ErrorWord::is_retryable)
    }

    /// Whether the request may have been applied all the same; yes for an unknown word.
    #[must_use]
    pub fn may_have_applied(&self) -> bool {
        self.word().is_none_or(ErrorWord::may_have_applied)
    }

    fn split(&self) -> (&[u8], &[u8]) {
        let text = self.as_bytes();
        let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        (
            text.get(..end).unwrap_or_default(),
            text.get(end.saturating_add(1)..).unwrap_or_default(),
        )
    }
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ErrorReply {}
