//! The bytes of a program: what the log and the snapshots hold of a script.
//!
//! A format byte, then the functions, each node its tag before its parts. Tags are never reused or moved. Reading is
//! bounded in depth and size, and refuses what the parser could not have made: a variable outside of its frame, a
//! function that is not there, a `break` without a loop.

mod read;
mod write;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::program::Program;
use crate::types::SharedBytes;

/// The format that this build writes and reads.
pub const PROGRAM_FORMAT: u8 = 1;

/// Bytes that are no program of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("these bytes are no script program: {what}")]
pub struct NotAProgram {
    what: &'static str,
}

impl NotAProgram {
    const fn new(what: &'static str) -> Self {
        Self { what }
    }
}

impl Program {
    /// The bytes of this program.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        write::program(self)
    }

    /// Reads back what [`Program::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`NotAProgram`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAProgram> {
        read::program(bytes)
    }
}

impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = SharedBytes::deserialize(deserializer)?;
        Self::from_bytes(bytes.as_slice()).map_err(de::Error::custom)
    }
}

/// Tags of statements.
mod act {
    pub(super) const DECLARE: u8 = 1;
    pub(super) const ASSIGN: u8 = 2;
    pub(super) const CALL: u8 = 3;
    pub(super) const DO: u8 = 4;
    pub(super) const IF: u8 = 5;
    pub(super) const WHILE: u8 = 6;
    pub(super) const REPEAT: u8 = 7;
    pub(super) const COUNT: u8 = 8;
    pub(super) const EACH: u8 = 9;
    pub(super) const RETURN: u8 = 10;
    pub(super) const BREAK: u8 = 11;
}

/// Tags of what is assigned to, of a table's entries, and of what is called.
mod part {
    pub(super) const VARIABLE: u8 = 1;
    pub(super) const FIELD: u8 = 2;
    pub(super) const ITEM: u8 = 3;
    pub(super) const NAMED: u8 = 4;
    pub(super) const FUNCTION: u8 = 5;
    pub(super) const LIBRARY: u8 = 6;
    pub(super) const COMMAND: u8 = 7;
    pub(super) const PROTECTED_COMMAND: u8 = 8;
}

/// Tags of expressions.
mod value {
    pub(super) const NIL: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const NUMBER: u8 = 4;
    pub(super) const TEXT: u8 = 5;
    pub(super) const KEYS: u8 = 6;
    pub(super) const ARGUMENTS: u8 = 7;
    pub(super) const VARIABLE: u8 = 8;
    pub(super) const FIELD: u8 = 9;
    pub(super) const TABLE: u8 = 10;
    pub(super) const NOT: u8 = 11;
    pub(super) const NEGATE: u8 = 12;
    pub(super) const LENGTH: u8 = 13;
    pub(super) const AND: u8 = 14;
    pub(super) const OR: u8 = 15;
    pub(super) const JOIN: u8 = 16;
    pub(super) const CALL: u8 = 17;
    pub(super) const FIRST: u8 = 18;
}

/// Numbers of operators.
mod operator {
    use crate::script::number::Arithmetic;
    use crate::script::program::Operator;

    pub(super) const ALL: [(Operator, u8); 12] = [
        (Operator::Arithmetic(Arithmetic::Add), 1),
        (Operator::Arithmetic(Arithmetic::Subtract), 2),
        (Operator::Arithmetic(Arithmetic::Multiply), 3),
        (Operator::Arithmetic(Arithmetic::Divide), 4),
        (Operator::Arithmetic(Arithmetic::Modulo), 5),
        (Operator::Concatenate, 6),
        (Operator::Equal, 7),
        (Operator::Unequal, 8),
        (Operator::Less, 9),
        (Operator::LessOrEqual, 10),
        (Operator::Greater, 11),
        (Operator::GreaterOrEqual, 12),
    ];
}
