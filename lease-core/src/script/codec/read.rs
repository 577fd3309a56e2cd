//! Reads a program, and checks that it holds together.

use bytes::Buf as _;

use super::{NotAProgram, PROGRAM_FORMAT, act, operator, part, value};
use crate::limits::{PROGRAM_BYTES_MAX, SCRIPT_DEPTH_MAX, SCRIPT_FUNCTIONS_MAX};
use crate::script::program::{
    Act, Block, Branch, Call, Callee, Entry, Expression, Function, Library, Operator, Place, Program,
    Statement, Variable,
};
use crate::script::verb::Verb;
use crate::types::SharedBytes;

/// A reader sees each level of blocks and of expressions once.
const LEVELS_MAX: usize = 2 * SCRIPT_DEPTH_MAX;

const CUT_OFF: NotAProgram = NotAProgram::new("they are cut off");

pub(super) fn program(bytes: &[u8]) -> Result<Program, NotAProgram> {
    if bytes.len() > PROGRAM_BYTES_MAX {
        return Err(NotAProgram::new("they are too many"));
    }
    let mut reader = Reader {
        rest: bytes,
        functions: 0,
        levels: 0,
        loops: 0,
        slots: 0,
    };
    if reader.byte()? != PROGRAM_FORMAT {
        return Err(NotAProgram::new("their format is not known to this build"));
    }
    reader.functions = reader.count()?;
    if reader.functions == 0 || reader.functions > SCRIPT_FUNCTIONS_MAX {
        return Err(NotAProgram::new("the number of functions cannot be"));
    }
    let functions = (0..reader.functions).map(|_| reader.function());
    let functions = functions.collect::<Result<_, _>>()?;
    if !reader.rest.is_empty() {
        return Err(NotAProgram::new("bytes are left over"));
    }
    Ok(Program { functions })
}

struct Reader<'a> {
    rest: &'a [u8],
    functions: usize,
    levels: usize,
    loops: usize,
    /// Slots of the function that is being read.
    slots: u8,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, NotAProgram> {
        self.rest.try_get_u8().map_err(|_| CUT_OFF)
    }

    fn line(&mut self) -> Result<u32, NotAProgram> {
        self.rest.try_get_u32_le().map_err(|_| CUT_OFF)
    }

    /// A count of things that take at least a byte each: one that lies reserves no memory.
    fn count(&mut self) -> Result<usize, NotAProgram> {
        let count = self.line()? as usize;
        if count > self.rest.len() {
            return Err(CUT_OFF);
        }
        Ok(count)
    }

    fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, NotAProgram>,
    ) -> Result<Vec<T>, NotAProgram> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn level<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, NotAProgram>) -> Result<T, NotAProgram> {
        if self.levels >= LEVELS_MAX {
            return Err(NotAProgram::new("they are nested too deeply"));
        }
        self.levels = self.levels.saturating_add(1);
        let result = read(self);
        self.levels = self.levels.saturating_sub(1);
        result
    }

    fn function(&mut self) -> Result<Function, NotAProgram> {
        let (parameters, slots) = (self.byte()?, self.byte()?);
        if parameters > slots {
            return Err(NotAProgram::new("a function has more parameters than slots"));
        }
        self.slots = slots;
        self.loops = 0;
        let body = self.block()?;
        Ok(Function {
            parameters,
            slots,
            body,
        })
    }

    fn block(&mut self) -> Result<Block, NotAProgram> {
        self.level(|reader| {
            reader.list(|reader| {
                let line = reader.line()?;
                let act = reader.act()?;
                Ok(Statement { line, act })
            })
        })
    }

    fn loop_body(&mut self) -> Result<Block, NotAProgram> {
        self.loops = self.loops.saturating_add(1);
        let block = self.block()?;
        self.loops = self.loops.saturating_sub(1);
        Ok(block)
    }

    fn act(&mut self) -> Result<Act, NotAProgram> {
        Ok(match self.byte()? {
            act::DECLARE => {
                let (first, count) = (self.byte()?, self.byte()?);
                self.check_slots(first, count)?;
                let values = self.expressions()?;
                Act::Declare { first, count, values }
            }
            act::ASSIGN => Act::Assign {
                places: self.list(Self::place)?,
                values: self.expressions()?,
            },
            act::CALL => Act::Call(self.call()?),
            act::DO => Act::Do(self.block()?),
            act::IF => Act::If {
                branches: self.list(|reader| {
                    Ok(Branch {
                        condition: reader.expression()?,
                        block: reader.block()?,
                    })
                })?,
                otherwise: self.block()?,
            },
            act::WHILE => Act::While(self.looping()?),
            act::REPEAT => Act::Repeat(self.looping()?),
            act::COUNT => {
                let slot = self.byte()?;
                self.check_slots(slot, 1)?;
                Act::Count {
                    slot,
                    from: self.expression()?,
                    to: self.expression()?,
                    step: self.expression()?,
                    block: self.loop_body()?,
                }
            }
            act::EACH => {
                let slot = self.byte()?;
                self.check_slots(slot, 2)?;
                Act::Each {
                    slot,
                    list: self.expression()?,
                    block: self.loop_body()?,
                }
            }
            act::RETURN => Act::Return(self.expressions()?),
            act::BREAK if self.loops > 0 => Act::Break,
            act::BREAK => return Err(NotAProgram::new("there is no loop to break")),
            _ => return Err(NotAProgram::new("a statement is not known to this build")),
        })
    }

    fn looping(&mut self) -> Result<Branch, NotAProgram> {
        Ok(Branch {
            condition: self.expression()?,
            block: self.loop_body()?,
        })
    }

    fn check_slots(&self, first: u8, count: u8) -> Result<(), NotAProgram> {
        match first.checked_add(count) {
            Some(end) if end <= self.slots => Ok(()),
            _ => Err(NotAProgram::new("a variable lies outside of its frame")),
        }
    }

    fn place(&mut self) -> Result<Place, NotAProgram> {
        match self.byte()? {
            part::VARIABLE => Ok(Place::Variable(self.variable()?)),
            part::FIELD => Ok(Place::Field {
                table: self.expression()?,
                key: self.expression()?,
            }),
            _ => Err(NotAProgram::new("what is assigned to is not known to this build")),
        }
    }

    /// Frames further up are looked for when the script runs: a variable that is not there has no value.
    fn variable(&mut self) -> Result<Variable, NotAProgram> {
        let (up, slot) = (self.byte()?, self.byte()?);
        if up == 0 {
            self.check_slots(slot, 1)?;
        }
        Ok(Variable { up, slot })
    }

    fn call(&mut self) -> Result<Call, NotAProgram> {
        let line = self.line()?;
        let kind = self.byte()?;
        let callee = match kind {
            part::FUNCTION => {
                let (up, number) = (self.byte()?, self.byte()?);
                if usize::from(number) >= self.functions {
                    return Err(NotAProgram::new("a function is not there"));
                }
                Callee::Function { up, number }
            }
            part::LIBRARY => Library::numbered(self.byte()?)
                .map(Callee::Library)
                .ok_or(NotAProgram::new(
                    "a library's function is not known to this build",
                ))?,
            part::COMMAND => Callee::Command(self.verb()?),
            part::PROTECTED_COMMAND => Callee::ProtectedCommand(self.verb()?),
            _ => return Err(NotAProgram::new("what is called is not known to this build")),
        };
        let arguments = self.expressions()?;
        Ok(Call {
            line,
            callee,
            arguments,
        })
    }

    fn verb(&mut self) -> Result<Verb, NotAProgram> {
        let verb = Verb::numbered(self.byte()?);
        verb.ok_or(NotAProgram::new("a command is not known to this build"))
    }

    fn expressions(&mut self) -> Result<Vec<Expression>, NotAProgram> {
        self.list(Self::expression)
    }

    fn expression(&mut self) -> Result<Expression, NotAProgram> {
        self.level(Self::expression_here)
    }

    fn expression_here(&mut self) -> Result<Expression, NotAProgram> {
        Ok(match self.byte()? {
            value::NIL => Expression::Nil,
            value::FALSE => Expression::False,
            value::TRUE => Expression::True,
            value::NUMBER => {
                let bits = self.rest.try_get_u64_le().map_err(|_| CUT_OFF)?;
                let number = f64::from_bits(bits);
                if number.is_nan() {
                    return Err(NotAProgram::new("a number is none"));
                }
                Expression::Number(number)
            }
            value::TEXT => Expression::Text(self.text()?),
            value::KEYS => Expression::Keys,
            value::ARGUMENTS => Expression::Arguments,
            value::VARIABLE => Expression::Variable(self.variable()?),
            value::FIELD => Expression::Field(self.pair()?),
            value::TABLE => Expression::Table(self.list(Self::entry)?),
            value::NOT => Expression::Not(self.wrapped()?),
            value::NEGATE => Expression::Negate(self.wrapped()?),
            value::LENGTH => Expression::Length(self.wrapped()?),
            value::AND => Expression::And(self.pair()?),
            value::OR => Expression::Or(self.pair()?),
            value::JOIN => Expression::Join(self.operator()?, self.pair()?),
            value::CALL => Expression::Call(Box::new(self.call()?)),
            value::FIRST => Expression::First(self.wrapped()?),
            _ => return Err(NotAProgram::new("an expression is not known to this build")),
        })
    }

    fn text(&mut self) -> Result<SharedBytes, NotAProgram> {
        let count = self.line()? as usize;
        let (text, rest) = self.rest.split_at_checked(count).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(SharedBytes::from(text))
    }

    fn pair(&mut self) -> Result<Box<[Expression; 2]>, NotAProgram> {
        Ok(Box::new([self.expression()?, self.expression()?]))
    }

    fn wrapped(&mut self) -> Result<Box<Expression>, NotAProgram> {
        self.expression().map(Box::new)
    }

    fn operator(&mut self) -> Result<Operator, NotAProgram> {
        let number = self.byte()?;
        let found = operator::ALL.iter().find(|(_, known)| *known == number);
        found
            .map(|(operator, _)| *operator)
            .ok_or(NotAProgram::new("an operator is not known to this build"))
    }

    fn entry(&mut self) -> Result<Entry, NotAProgram> {
        match self.byte()? {
            part::ITEM => Ok(Entry::Item(self.expression()?)),
            part::NAMED => Ok(Entry::Named {
                key: self.expression()?,
                value: self.expression()?,
            }),
            _ => Err(NotAProgram::new("a table's entry is not known to this build")),
        }
    }
}
