//! Writes a program.

use bytes::BufMut as _;

use super::{PROGRAM_FORMAT, act, operator, part, value};
use crate::script::program::{
    Act, Block, Branch, Call, Callee, Entry, Expression, Place, Program, Statement, Variable,
};

pub(super) fn program(program: &Program) -> Vec<u8> {
    let mut out = Writer(vec![PROGRAM_FORMAT]);
    out.count(program.functions.len());
    for function in &program.functions {
        out.byte(function.parameters);
        out.byte(function.slots);
        out.block(&function.body);
    }
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.0.put_u8(byte);
    }

    /// Counts and lines stay far below 2^32: the text that they come from is bounded.
    fn count(&mut self, count: usize) {
        self.0.put_u32_le(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn block(&mut self, block: &Block) {
        self.count(block.len());
        for Statement { line, act } in block {
            self.0.put_u32_le(*line);
            self.act(act);
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Declare { first, count, values } => {
                self.byte(act::DECLARE);
                self.byte(*first);
                self.byte(*count);
                self.expressions(values);
            }
            Act::Assign { places, values } => {
                self.byte(act::ASSIGN);
                self.count(places.len());
                places.iter().for_each(|place| self.place(place));
                self.expressions(values);
            }
            Act::Call(call) => {
                self.byte(act::CALL);
                self.call(call);
            }
            Act::Do(block) => {
                self.byte(act::DO);
                self.block(block);
            }
            Act::If { branches, otherwise } => {
                self.byte(act::IF);
                self.count(branches.len());
                branches.iter().for_each(|branch| self.branch(branch));
                self.block(otherwise);
            }
            Act::While(branch) => {
                self.byte(act::WHILE);
                self.branch(branch);
            }
            Act::Repeat(branch) => {
                self.byte(act::REPEAT);
                self.branch(branch);
            }
            Act::Count {
                slot,
                from,
                to,
                step,
                block,
            } => {
                self.byte(act::COUNT);
                self.byte(*slot);
                [from, to, step]
                    .into_iter()
                    .for_each(|bound| self.expression(bound));
                self.block(block);
            }
            Act::Each { slot, list, block } => {
                self.byte(act::EACH);
                self.byte(*slot);
                self.expression(list);
                self.block(block);
            }
            Act::Return(values) => {
                self.byte(act::RETURN);
                self.expressions(values);
            }
            Act::Break => self.byte(act::BREAK),
        }
    }

    fn branch(&mut self, Branch { condition, block }: &Branch) {
        self.expression(condition);
        self.block(block);
    }

    fn place(&mut self, place: &Place) {
        match place {
            Place::Variable(variable) => {
                self.byte(part::VARIABLE);
                self.variable(*variable);
            }
            Place::Field { table, key } => {
                self.byte(part::FIELD);
                self.expression(table);
                self.expression(key);
            }
        }
    }

    fn variable(&mut self, Variable { up, slot }: Variable) {
        self.byte(up);
        self.byte(slot);
    }

    fn call(&mut self, call: &Call) {
        self.0.put_u32_le(call.line);
        match call.callee {
            Callee::Function { up, number } => {
                self.byte(part::FUNCTION);
                self.byte(up);
                self.byte(number);
            }
            Callee::Library(library) => {
                self.byte(part::LIBRARY);
                self.byte(library as u8);
            }
            Callee::Command(verb) => {
                self.byte(part::COMMAND);
                self.byte(verb.number());
            }
            Callee::ProtectedCommand(verb) => {
                self.byte(part::PROTECTED_COMMAND);
                self.byte(verb.number());
            }
        }
        self.expressions(&call.arguments);
    }

    fn expressions(&mut self, expressions: &[Expression]) {
        self.count(expressions.len());
        expressions
            .iter()
            .for_each(|expression| self.expression(expression));
    }

    fn pair(&mut self, tag: u8, [left, right]: &[Expression; 2]) {
        self.byte(tag);
        self.expression(left);
        self.expression(right);
    }

    fn wrapped(&mut self, tag: u8, inner: &Expression) {
        self.byte(tag);
        self.expression(inner);
    }

    fn expression(&mut self, expression: &Expression) {
        match expression {
            Expression::Nil => self.byte(value::NIL),
            Expression::False => self.byte(value::FALSE),
            Expression::True => self.byte(value::TRUE),
            Expression::Number(number) => {
                self.byte(value::NUMBER);
                self.0.put_u64_le(number.to_bits());
            }
            Expression::Text(text) => {
                self.byte(value::TEXT);
                self.count(text.len());
                self.0.put_slice(text.as_slice());
            }
            Expression::Keys => self.byte(value::KEYS),
            Expression::Arguments => self.byte(value::ARGUMENTS),
            Expression::Variable(variable) => {
                self.byte(value::VARIABLE);
                self.variable(*variable);
            }
            Expression::Field(pair) => self.pair(value::FIELD, pair),
            Expression::Table(entries) => {
                self.byte(value::TABLE);
                self.count(entries.len());
                entries.iter().for_each(|entry| self.entry(entry));
            }
            Expression::Not(inner) => self.wrapped(value::NOT, inner),
            Expression::Negate(inner) => self.wrapped(value::NEGATE, inner),
            Expression::Length(inner) => self.wrapped(value::LENGTH, inner),
            Expression::And(pair) => self.pair(value::AND, pair),
            Expression::Or(pair) => self.pair(value::OR, pair),
            Expression::Join(joint, pair) => {
                self.byte(value::JOIN);
                let number = operator::ALL.iter().find(|(known, _)| known == joint);
                self.pair(number.map_or(0, |(_, number)| *number), pair);
            }
            Expression::Call(call) => {
                self.byte(value::CALL);
                self.call(call);
            }
            Expression::First(inner) => self.wrapped(value::FIRST, inner),
        }
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Item(item) => self.wrapped(part::ITEM, item),
            Entry::Named { key, value } => {
                self.byte(part::NAMED);
                self.expression(key);
                self.expression(value);
            }
        }
    }
}
