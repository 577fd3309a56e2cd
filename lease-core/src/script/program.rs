//! A script in its checked form: what the log and the snapshots hold, and what is run.
//!
//! Names are gone: a local variable is a slot of its function's frame, and functions are numbered. A function is no
//! value here, so it is called only while the block that declares it still stands, and the variables around it are found
//! by going up from frame to frame.

use crate::script::number::Arithmetic;
use crate::script::verb::Verb;
use crate::types::SharedBytes;

/// A script that was read and checked, to be run by the lease machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The script itself at 0, then its local functions.
    pub(super) functions: Vec<Function>,
}

/// No number in it is NaN: no text spells one, and a reader of bytes refuses it.
impl Eq for Program {}

/// The script itself, or one of its functions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Function {
    /// The first slots are its parameters.
    pub(super) parameters: u8,
    pub(super) slots: u8,
    pub(super) body: Block,
}

pub(super) type Block = Vec<Statement>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) line: u32,
    pub(super) act: Act,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// `local a, b = ..`: new variables in `count` slots from `first` on.
    Declare {
        first: u8,
        count: u8,
        values: Vec<Expression>,
    },
    Assign {
        places: Vec<Place>,
        values: Vec<Expression>,
    },
    Call(Call),
    Do(Block),
    If {
        branches: Vec<Branch>,
        otherwise: Block,
    },
    While(Branch),
    /// The condition stands behind the block, and sees its variables.
    Repeat(Branch),
    /// `for i = from, to, step do`
    Count {
        slot: u8,
        from: Expression,
        to: Expression,
        step: Expression,
        block: Block,
    },
    /// `for i, v in ipairs(list) do`: the number in `slot`, the value in the slot behind it.
    Each {
        slot: u8,
        list: Expression,
        block: Block,
    },
    Return(Vec<Expression>),
    Break,
}

/// A block and its condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Branch {
    pub(super) condition: Expression,
    pub(super) block: Block,
}

/// What is assigned to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    Variable(Variable),
    Field { table: Expression, key: Expression },
}

/// A variable: so many frames up, in this slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) up: u8,
    pub(super) slot: u8,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Nil,
    False,
    True,
    Number(f64),
    Text(SharedBytes),
    Keys,
    Arguments,
    Variable(Variable),
    Field(Box<[Self; 2]>),
    Table(Vec<Entry>),
    Not(Box<Self>),
    Negate(Box<Self>),
    Length(Box<Self>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
    Join(Operator, Box<[Self; 2]>),
    Call(Box<Call>),
    /// A call in parentheses: its first value alone.
    First(Box<Self>),
}

/// What joins two values, and has both of them at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Arithmetic(Arithmetic),
    Concatenate,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One entry of a table as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    Item(Expression),
    Named { key: Expression, value: Expression },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) line: u32,
    pub(super) callee: Callee,
    pub(super) arguments: Vec<Expression>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callee {
    /// A function of the script, declared so many frames up.
    Function {
        up: u8,
        number: u8,
    },
    Library(Library),
    /// `redis.call` of this command.
    Command(Verb),
    /// `redis.pcall` of this command.
    ProtectedCommand(Verb),
}

/// The functions that scripts are given. Numbers stand in the log: they are never reused or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Library {
    ToNumber = 1,
    ToText = 2,
    Type = 3,
    Error = 4,
    Unpack = 5,
    ErrorReply = 6,
    StatusReply = 7,
    TableInsert = 8,
    TableRemove = 9,
    TableConcat = 10,
    TextSub = 11,
    TextLength = 12,
    TextLower = 13,
    TextUpper = 14,
    MathFloor = 15,
    MathCeil = 16,
    MathAbs = 17,
    MathMin = 18,
    MathMax = 19,
}

impl Library {
    pub(super) const ALL: [(Self, &'static str); 19] = [
        (Self::ToNumber, "tonumber"),
        (Self::ToText, "tostring"),
        (Self::Type, "type"),
        (Self::Error, "error"),
        (Self::Unpack, "unpack"),
        (Self::ErrorReply, "redis.error_reply"),
        (Self::StatusReply, "redis.status_reply"),
        (Self::TableInsert, "table.insert"),
        (Self::TableRemove, "table.remove"),
        (Self::TableConcat, "table.concat"),
        (Self::TextSub, "string.sub"),
        (Self::TextLength, "string.len"),
        (Self::TextLower, "string.lower"),
        (Self::TextUpper, "string.upper"),
        (Self::MathFloor, "math.floor"),
        (Self::MathCeil, "math.ceil"),
        (Self::MathAbs, "math.abs"),
        (Self::MathMin, "math.min"),
        (Self::MathMax, "math.max"),
    ];

    /// The function of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(library, _)| *library)
    }

    /// The function with that number in the log.
    pub(super) fn numbered(number: u8) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(library, _)| *library as u8 == number)
            .map(|(library, _)| *library)
    }

    /// The name without the library that it stands in, as errors say it.
    pub(super) fn short_name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(library, _)| *library == self);
        let name = found.map_or("?", |(_, name)| *name);
        name.rsplit('.').next().unwrap_or(name)
    }
}
