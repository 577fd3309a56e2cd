//! The bytes of commands in the log and of items in a snapshot.
//!
//! The one place of this crate that names bincode, which is no longer maintained: replacing it is this file and a new
//! format number. Every body starts with its format number; decoding is bounded and must use up all bytes.

use bincode::config::{Config, standard};
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Command, Once, Outcome, Submission};
use crate::limits::{BATCH_COMMANDS_MAX, ENTRY_BYTES_MAX};

/// The format of an entry's body: this byte, then for each command its length as a little-endian `u32` and its bytes.
pub const BODY_FORMAT: u8 = 1;

/// Stands before the number of a command that has one. No command begins with it: it is no tag, and the codec never
/// writes it first.
const ONCE: u8 = u8::MAX;

/// Bytes before each command of a body.
const LENGTH_BYTES: usize = 4;

/// Bytes that are no command, or a command that is too large to store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes were written by a build that uses another format.
    #[error("format {found} is not known to this build (it knows {known})")]
    UnknownFormat {
        /// The format found.
        found: u8,
        /// The format known.
        known: u8,
    },
    /// The bytes end too early, go on too long, or make no sense.
    #[error("malformed {what}: {detail}")]
    Malformed {
        /// What was being read or written.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// More than one entry may hold.
    #[error("{what}: {found} is above the bound of {max}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The bound.
        max: usize,
    },
}

/// One command as it stands in the log: encoded where the request arrives, only joined by the proposer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedCommand(Bytes);

impl EncodedCommand {
    /// Encodes one command.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] above what one entry may hold.
    pub fn new(command: &Command) -> Result<Self, CodecError> {
        Ok(Self(Bytes::from(encode("command", command)?)))
    }

    /// A tick, whose one byte is its tag: it is needed where nothing can be done about an error.
    #[must_use]
    pub const fn tick() -> Self {
        Self(Bytes::from_static(&[0]))
    }

    /// Takes over a command that another node encoded, once it reads as one.
    ///
    /// # Errors
    /// [`CodecError`] if the bytes are no command that this build knows.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, CodecError> {
        decode_submission(&bytes)?;
        Ok(Self(bytes))
    }

    /// The same command under a number.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] above what one entry may hold, [`CodecError::Malformed`] if it has a number already.
    pub fn numbered(&self, once: &Once) -> Result<Self, CodecError> {
        if self.0.first() == Some(&ONCE) {
            return Err(malformed("command", "it has a number already"));
        }
        let mut bytes = vec![ONCE];
        bytes.extend(encode("number", once)?);
        bytes.extend_from_slice(&self.0);
        check_size("command", bytes.len(), ENTRY_BYTES_MAX)?;
        Ok(Self(Bytes::from(bytes)))
    }

    /// The bytes, to be sent to another node.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Bytes that it takes in a body.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.0.len().saturating_add(LENGTH_BYTES)
    }
}

/// Joins encoded commands into the body of one entry.
///
/// # Errors
/// [`CodecError::TooLarge`] above [`BATCH_COMMANDS_MAX`] commands or [`ENTRY_BYTES_MAX`] bytes: every replica would stop
/// at such an entry.
pub fn join(commands: &[EncodedCommand]) -> Result<Bytes, CodecError> {
    check_size("commands of an entry", commands.len(), BATCH_COMMANDS_MAX)?;
    let len = commands
        .iter()
        .map(EncodedCommand::body_len)
        .fold(1, usize::saturating_add);
    check_size("entry", len, ENTRY_BYTES_MAX)?;
    let mut body = BytesMut::with_capacity(len);
    body.put_u8(BODY_FORMAT);
    for command in commands {
        // One command is bounded far below u32::MAX where it is encoded.
        body.put_u32_le(u32::try_from(command.0.len()).unwrap_or(u32::MAX));
        body.put_slice(&command.0);
    }
    Ok(body.freeze())
}

/// The commands of an entry's body.
///
/// # Errors
/// [`CodecError`] if the body is not what [`join`] made. A node that meets one must stop: its log is damaged or comes
/// from a newer build.
pub fn split(body: &[u8]) -> Result<Vec<Submission>, CodecError> {
    let (format, mut rest) = body
        .split_first()
        .ok_or_else(|| malformed("entry", "it is empty"))?;
    if *format != BODY_FORMAT {
        return Err(CodecError::UnknownFormat {
            found: *format,
            known: BODY_FORMAT,
        });
    }
    let mut commands = Vec::new();
    while !rest.is_empty() {
        let count = commands.len().saturating_add(1);
        check_size("commands of an entry", count, BATCH_COMMANDS_MAX)?;
        let (length, after) = rest
            .split_first_chunk::<LENGTH_BYTES>()
            .ok_or_else(|| malformed("entry", "a command's length is cut off"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (command, after) = after
            .split_at_checked(length)
            .ok_or_else(|| malformed("entry", "a command is cut off"))?;
        commands.push(decode_submission(command)?);
        rest = after;
    }
    Ok(commands)
}

/// The bytes of an outcome, for the node that forwarded its command.
///
/// # Errors
/// [`CodecError::TooLarge`] above what one entry may hold.
pub fn encode_outcome(outcome: &Outcome) -> Result<Vec<u8>, CodecError> {
    encode("outcome", outcome)
}

/// Reads back what [`encode_outcome`] wrote.
///
/// # Errors
/// [`CodecError`] if the bytes are no outcome that this build knows.
pub fn decode_outcome(bytes: &[u8]) -> Result<Outcome, CodecError> {
    decode("outcome", bytes)
}

pub(super) fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, CodecError> {
    let bytes = bincode::serde::encode_to_vec(value, config()).map_err(|error| malformed(what, error))?;
    check_size(what, bytes.len(), ENTRY_BYTES_MAX)?;
    Ok(bytes)
}

/// A command, and its number if it has one: never a number within a number, so that no bytes nest.
fn decode_submission(bytes: &[u8]) -> Result<Submission, CodecError> {
    let (once, command) = match bytes.split_first() {
        Some((&ONCE, numbered)) => {
            let (once, used) = decode_first("number", numbered)?;
            (Some(once), numbered.get(used..).unwrap_or_default())
        }
        _ => (None, bytes),
    };
    let command = decode("command", command)?;
    Ok(Submission { once, command })
}

fn check_size(what: &'static str, found: usize, max: usize) -> Result<(), CodecError> {
    if found > max {
        Err(CodecError::TooLarge { what, found, max })
    } else {
        Ok(())
    }
}

pub(super) fn decode<'a, T: Deserialize<'a>>(what: &'static str, bytes: &'a [u8]) -> Result<T, CodecError> {
    let (value, used) = decode_first(what, bytes)?;
    if used != bytes.len() {
        return Err(malformed(what, "bytes are left over"));
    }
    Ok(value)
}

/// The value that the bytes begin with, and its length.
fn decode_first<'a, T: Deserialize<'a>>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(T, usize), CodecError> {
    bincode::serde::borrow_decode_from_slice(bytes, config()).map_err(|error| malformed(what, error))
}

fn config() -> impl Config {
    standard().with_limit::<ENTRY_BYTES_MAX>()
}

fn malformed(what: &'static str, detail: impl ToString) -> CodecError {
    CodecError::Malformed {
        what,
        detail: detail.to_string(),
    }
}
