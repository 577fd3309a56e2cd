//! Expressions.

use std::cmp::Ordering;

use super::value::{TableId, Value};
use super::{Halting, Host, Run};
use crate::script::Verb;
use crate::script::number::{self, Arithmetic};
use crate::script::program::{Call, Callee, Entry, Expression, Operator};

/// Steps of one command, beside those of its arguments and its answer.
const COMMAND_STEPS: usize = 16;
/// Steps of one argument of a command: of one that only looks, and of one that may change a key for each.
const LOOK_ARGUMENT_STEPS: usize = 2;
const CHANGE_ARGUMENT_STEPS: usize = 8;

/// What Lua's string library holds.
const TEXT_FUNCTIONS: [&str; 15] = [
    "byte", "char", "dump", "find", "format", "gfind", "gmatch", "gsub", "len", "lower", "match", "rep",
    "reverse", "sub", "upper",
];

impl<'a, H: Host> Run<'a, H> {
    /// Values behind one another; a call at the end gives all of its own.
    pub(super) fn values(&mut self, list: &'a [Expression]) -> Halting<Vec<Value>, H::Stop> {
        let Some((last, before)) = list.split_last() else {
            return Ok(Vec::new());
        };
        let mut values = Vec::new();
        for expression in before {
            values.push(self.value(expression)?);
        }
        if let Expression::Call(call) = last {
            values.extend(self.deeper(|run| run.call(call))?);
        } else {
            values.push(self.value(last)?);
        }
        self.budget.take_steps(values.len())?;
        Ok(values)
    }

    pub(super) fn value(&mut self, expression: &'a Expression) -> Halting<Value, H::Stop> {
        self.budget.take_steps(1)?;
        Ok(match expression {
            Expression::Nil => Value::Nil,
            Expression::False => Value::Boolean(false),
            Expression::True => Value::Boolean(true),
            Expression::Number(number) => Value::Number(*number),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Keys => Value::Table(TableId::KEYS),
            Expression::Arguments => Value::Table(TableId::ARGUMENTS),
            Expression::Variable(variable) => {
                let at = self.slot(variable.up, variable.slot);
                self.slots.get(at).cloned().unwrap_or(Value::Nil)
            }
            composed => return self.deeper(|run| run.composed(composed)),
        })
    }

    /// What is made of other values.
    fn composed(&mut self, expression: &'a Expression) -> Halting<Value, H::Stop> {
        match expression {
            Expression::Field(pair) => {
                let [table, key] = pair.as_ref();
                self.field(table, key)
            }
            Expression::Table(entries) => self.table(entries),
            Expression::Not(inner) => Ok(Value::Boolean(!self.value(inner)?.is_true())),
            Expression::Negate(inner) => self.negated(inner),
            Expression::Length(inner) => self.length(inner),
            Expression::And(pair) => {
                let [left, right] = pair.as_ref();
                let left = self.value(left)?;
                if left.is_true() {
                    self.value(right)
                } else {
                    Ok(left)
                }
            }
            Expression::Or(pair) => {
                let [left, right] = pair.as_ref();
                let left = self.value(left)?;
                if left.is_true() {
                    Ok(left)
                } else {
                    self.value(right)
                }
            }
            Expression::Join(operator, pair) => {
                let [left, right] = pair.as_ref();
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.join(*operator, left, right)
            }
            Expression::Call(call) => Ok(self.call(call)?.into_iter().next().unwrap_or(Value::Nil)),
            Expression::First(inner) => self.value(inner),
            plain => self.value(plain),
        }
    }

    fn field(&mut self, table: &'a Expression, key: &'a Expression) -> Halting<Value, H::Stop> {
        let (table, key) = (self.value(table)?, self.value(key)?);
        self.budget.take_steps_for(key.len())?;
        match table {
            Value::Table(table) => Ok(self.tables.get(table, &key)),
            Value::Text(_) => self.field_of_text(&key),
            other => self.raise(format_args!("attempt to index a {} value", other.type_name())),
        }
    }

    /// A text has the fields of Lua's string library, which are functions, and no others.
    fn field_of_text(&self, key: &Value) -> Halting<Value, H::Stop> {
        match key {
            Value::Text(name)
                if TEXT_FUNCTIONS
                    .iter()
                    .any(|known| known.as_bytes() == name.as_slice()) =>
            {
                self.raise(format_args!("string.{name} as a value is not served here"))
            }
            _ => Ok(Value::Nil),
        }
    }

    fn table(&mut self, entries: &'a [Entry]) -> Halting<Value, H::Stop> {
        let mut items = Vec::new();
        let mut named = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let is_last = at.saturating_add(1) == entries.len();
            match entry {
                Entry::Item(item) if is_last => items.extend(self.values(std::slice::from_ref(item))?),
                Entry::Item(item) => items.push(self.value(item)?),
                Entry::Named { key, value } => named.push((self.value(key)?, self.value(value)?)),
            }
        }
        let id = self.tables.make(&mut self.budget)?;
        for (key, value) in named {
            if let Err(no_key) = self.tables.set(id, &key, value, &mut self.budget)? {
                return self.raise(no_key.text());
            }
        }
        self.tables.extend(id, items, &mut self.budget)?;
        Ok(Value::Table(id))
    }

    fn negated(&mut self, inner: &'a Expression) -> Halting<Value, H::Stop> {
        let value = self.value(inner)?;
        match value.to_number() {
            Some(number) => Ok(Value::Number(number::negate(number))),
            None => self.no_arithmetic(&value),
        }
    }

    fn length(&mut self, inner: &'a Expression) -> Halting<Value, H::Stop> {
        match self.value(inner)? {
            Value::Text(text) => Ok(Value::Number(number::from_count(text.len()))),
            Value::Table(table) => Ok(Value::Number(number::from_count(self.tables.len(table)))),
            other => self.raise(format_args!(
                "attempt to get length of a {} value",
                other.type_name()
            )),
        }
    }

    fn no_arithmetic<T>(&self, value: &Value) -> Halting<T, H::Stop> {
        let found = value.type_name();
        self.raise(format_args!("attempt to perform arithmetic on a {found} value"))
    }

    fn join(&mut self, operator: Operator, left: Value, right: Value) -> Halting<Value, H::Stop> {
        self.budget.take_steps_for(left.len().min(right.len()))?;
        Ok(Value::Boolean(match operator {
            Operator::Arithmetic(how) => return self.calculate(how, &left, &right),
            Operator::Concatenate => return self.concatenate(&left, &right),
            Operator::Equal => left.is_equal(&right),
            Operator::Unequal => !left.is_equal(&right),
            Operator::Less => self.compare(&left, &right)? == Some(Ordering::Less),
            Operator::LessOrEqual => {
                matches!(
                    self.compare(&left, &right)?,
                    Some(Ordering::Less | Ordering::Equal)
                )
            }
            Operator::Greater => self.compare(&right, &left)? == Some(Ordering::Less),
            Operator::GreaterOrEqual => {
                matches!(
                    self.compare(&right, &left)?,
                    Some(Ordering::Less | Ordering::Equal)
                )
            }
        }))
    }

    fn calculate(&self, how: Arithmetic, left: &Value, right: &Value) -> Halting<Value, H::Stop> {
        let (left_number, right_number) = (left.to_number(), right.to_number());
        match (left_number, right_number) {
            (Some(left), Some(right)) => Ok(Value::Number(number::calculate(how, left, right))),
            // Lua blames the second operand if that is no number.
            (Some(_), None) => self.no_arithmetic(right),
            (None, _) => self.no_arithmetic(left),
        }
    }

    fn concatenate(&mut self, left: &Value, right: &Value) -> Halting<Value, H::Stop> {
        self.budget.take_steps_to_show(left)?;
        self.budget.take_steps_to_show(right)?;
        let (Some(first), Some(second)) = (left.to_text(), right.to_text()) else {
            let wrong = if left.to_text().is_none() { left } else { right };
            let found = wrong.type_name();
            return self.raise(format_args!("attempt to concatenate a {found} value"));
        };
        self.budget.take_bytes(first.len().saturating_add(second.len()))?;
        Ok(Value::text([first.as_slice(), second.as_slice()].concat()))
    }

    /// How two numbers or two texts stand to each other; `None` for what is no number.
    fn compare(&self, left: &Value, right: &Value) -> Halting<Option<Ordering>, H::Stop> {
        match (left, right) {
            (Value::Number(left), Value::Number(right)) => Ok(left.partial_cmp(right)),
            (Value::Text(left), Value::Text(right)) => Ok(Some(left.cmp(right))),
            _ => {
                let (left, right) = (left.type_name(), right.type_name());
                if left == right {
                    self.raise(format_args!("attempt to compare two {left} values"))
                } else {
                    self.raise(format_args!("attempt to compare {left} with {right}"))
                }
            }
        }
    }

    pub(super) fn call(&mut self, call: &'a Call) -> Halting<Vec<Value>, H::Stop> {
        let arguments = self.values(&call.arguments)?;
        self.line = call.line;
        match call.callee {
            Callee::Function { up, number } => {
                let outer = self.frame(up);
                let values = self.enter(usize::from(number), outer, arguments)?;
                self.line = call.line;
                Ok(values)
            }
            Callee::Library(library) => self.library(library, arguments),
            Callee::Command(verb) => {
                self.budget.take_steps(command_steps(verb, arguments.len()))?;
                self.command(verb, &arguments)
            }
            Callee::ProtectedCommand(verb) => {
                self.budget.take_steps(command_steps(verb, arguments.len()))?;
                self.protected_command(verb, &arguments)
            }
        }
    }
}

fn command_steps(verb: Verb, arguments: usize) -> usize {
    let each = if verb.writes() {
        CHANGE_ARGUMENT_STEPS
    } else {
        LOOK_ARGUMENT_STEPS
    };
    arguments.saturating_mul(each).saturating_add(COMMAND_STEPS)
}
