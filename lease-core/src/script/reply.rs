//! What a command answers to a script, and a script to its caller.

use bytes::{Buf as _, BufMut as _, Bytes};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::limits::SCRIPT_REPLY_DEPTH_MAX;
use crate::types::SharedBytes;
use crate::wire::{ErrorReply, Line, Reply};

/// An answer, as Redis's commands and scripts give them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptReply {
    /// No value.
    Nil,
    /// A whole number.
    Integer(i64),
    /// Bytes of any kind.
    Bulk(SharedBytes),
    /// A short status, such as `OK`.
    Status(SharedBytes),
    /// An error, its word first.
    Error(SharedBytes),
    /// Values in order.
    Array(Vec<Self>),
}

impl ScriptReply {
    pub(crate) fn error(text: impl AsRef<[u8]>) -> Self {
        Self::Error(SharedBytes::from(text.as_ref()))
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let held = match self {
            Self::Nil | Self::Integer(_) => 0,
            Self::Bulk(text) | Self::Status(text) | Self::Error(text) => text.len(),
            Self::Array(items) => items.iter().map(Self::bytes).fold(0, usize::saturating_add),
        };
        held.saturating_add(size_of::<Self>())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let bytes = |out: &mut Vec<u8>, tag, bytes: &SharedBytes| {
            out.put_u8(tag);
            out.put_u32_le(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            out.put_slice(bytes.as_slice());
        };
        match self {
            Self::Nil => out.put_u8(tag::NIL),
            Self::Integer(number) => {
                out.put_u8(tag::INTEGER);
                out.put_i64_le(*number);
            }
            Self::Bulk(text) => bytes(out, tag::BULK, text),
            Self::Status(text) => bytes(out, tag::STATUS, text),
            Self::Error(text) => bytes(out, tag::ERROR, text),
            Self::Array(items) => {
                out.put_u8(tag::ARRAY);
                out.put_u32_le(u32::try_from(items.len()).unwrap_or(u32::MAX));
                items.iter().for_each(|item| item.write(out));
            }
        }
    }

    fn read(rest: &mut &[u8], depth: usize) -> Option<Self> {
        let bytes = |rest: &mut &[u8]| {
            let len = rest.try_get_u32_le().ok()? as usize;
            let (bytes, after) = rest.split_at_checked(len)?;
            *rest = after;
            Some(SharedBytes::from(bytes))
        };
        Some(match rest.try_get_u8().ok()? {
            tag::NIL => Self::Nil,
            tag::INTEGER => Self::Integer(rest.try_get_i64_le().ok()?),
            tag::BULK => Self::Bulk(bytes(rest)?),
            tag::STATUS => Self::Status(bytes(rest)?),
            tag::ERROR => Self::Error(bytes(rest)?),
            tag::ARRAY if depth < SCRIPT_REPLY_DEPTH_MAX => {
                let len = rest.try_get_u32_le().ok()? as usize;
                if len > rest.len() {
                    return None;
                }
                let items = (0..len).map(|_| Self::read(rest, depth.saturating_add(1)));
                Self::Array(items.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}

/// What commands on keys answer; no other form is among it.
impl From<Reply> for ScriptReply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Simple(line) => Self::Status(SharedBytes::from(line.as_bytes())),
            Reply::Error(error) => error.into(),
            Reply::Integer(number) => Self::Integer(number),
            Reply::Bulk(bytes) | Reply::Verbatim(bytes) => Self::Bulk(SharedBytes::from(bytes.as_ref())),
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
                Self::Array(items.into_iter().map(Self::from).collect())
            }
            Reply::Nil | Reply::NilArray | Reply::Map(_) | Reply::Double(_) | Reply::Boolean(_) => Self::Nil,
        }
    }
}

impl From<ErrorReply> for ScriptReply {
    fn from(error: ErrorReply) -> Self {
        Self::error(error.as_bytes())
    }
}

/// As it is sent to a script's caller.
impl From<ScriptReply> for Reply {
    fn from(reply: ScriptReply) -> Self {
        let line = |text: &SharedBytes| Line::new(Bytes::copy_from_slice(text.as_slice()));
        match reply {
            ScriptReply::Nil => Self::Nil,
            ScriptReply::Integer(number) => Self::Integer(number),
            ScriptReply::Bulk(bytes) => Self::bulk(bytes),
            ScriptReply::Status(text) => Self::Simple(line(&text)),
            ScriptReply::Error(text) => Self::Error(ErrorReply::from_line(line(&text))),
            ScriptReply::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
        }
    }
}

/// Tags in what nodes send each other.
mod tag {
    pub(super) const NIL: u8 = 0;
    pub(super) const INTEGER: u8 = 1;
    pub(super) const BULK: u8 = 2;
    pub(super) const STATUS: u8 = 3;
    pub(super) const ERROR: u8 = 4;
    pub(super) const ARRAY: u8 = 5;
}

/// As bytes of its own form: reading is bounded in depth.
impl Serialize for ScriptReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Vec::new();
        self.write(&mut out);
        serializer.serialize_bytes(&out)
    }
}

impl<'de> Deserialize<'de> for ScriptReply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = SharedBytes::deserialize(deserializer)?;
        let mut rest = bytes.as_slice();
        let reply = Self::read(&mut rest, 0);
        reply
            .filter(|_| rest.is_empty())
            .ok_or_else(|| de::Error::custom("this is no script's reply"))
    }
}
