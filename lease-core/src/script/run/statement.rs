//! Statements.

use super::value::Value;
use super::{Halting, Host, Run};
use crate::script::number::{self, Arithmetic};
use crate::script::program::{Act, Block, Branch, Expression, Place, Statement};

/// How a block ended.
pub(super) enum Flow {
    Next,
    Break,
    Return(Vec<Value>),
}

impl<'a, H: Host> Run<'a, H> {
    pub(super) fn block(&mut self, block: &'a Block) -> Halting<Flow, H::Stop> {
        self.deeper(|run| {
            for Statement { line, act } in block {
                run.budget.take_steps(1)?;
                run.line = *line;
                match run.act(act)? {
                    Flow::Next => {}
                    ended => return Ok(ended),
                }
            }
            Ok(Flow::Next)
        })
    }

    fn act(&mut self, act: &'a Act) -> Halting<Flow, H::Stop> {
        match act {
            Act::Declare { first, count, values } => {
                let values = self.values(values)?;
                self.declare(*first, *count, values);
            }
            Act::Assign { places, values } => self.assign(places, values)?,
            Act::Call(call) => {
                self.call(call)?;
            }
            Act::Do(block) => return self.block(block),
            Act::If { branches, otherwise } => return self.choose(branches, otherwise),
            Act::While(branch) => return self.repeat_while(branch),
            Act::Repeat(branch) => return self.repeat_until(branch),
            Act::Count {
                slot,
                from,
                to,
                step,
                block,
            } => return self.count(*slot, [from, to, step], block),
            Act::Each { slot, list, block } => return self.each(*slot, list, block),
            Act::Return(values) => return Ok(Flow::Return(self.values(values)?)),
            Act::Break => return Ok(Flow::Break),
        }
        Ok(Flow::Next)
    }

    fn declare(&mut self, first: u8, count: u8, values: Vec<Value>) {
        let mut values = values.into_iter();
        for slot in (first..).take(usize::from(count)) {
            self.set_slot(0, slot, values.next().unwrap_or(Value::Nil));
        }
    }

    /// All places and values are worked out before the first is assigned.
    fn assign(&mut self, places: &'a [Place], values: &'a [Expression]) -> Halting<(), H::Stop> {
        let mut fields = Vec::new();
        for place in places {
            fields.push(match place {
                Place::Variable(_) => None,
                Place::Field { table, key } => Some((self.value(table)?, self.value(key)?)),
            });
        }
        let mut values = self.values(values)?;
        values.resize_with(places.len(), || Value::Nil);
        for ((place, field), value) in places.iter().zip(fields).zip(values).rev() {
            match (place, field) {
                (Place::Variable(variable), _) => self.set_slot(variable.up, variable.slot, value),
                (Place::Field { .. }, Some((table, key))) => self.set_field(&table, &key, value)?,
                (Place::Field { .. }, None) => {}
            }
        }
        Ok(())
    }

    fn set_field(&mut self, table: &Value, key: &Value, value: Value) -> Halting<(), H::Stop> {
        let Value::Table(table) = table else {
            return self.raise(format_args!("attempt to index a {} value", table.type_name()));
        };
        self.budget.take_steps_for(key.len())?;
        match self.tables.set(*table, key, value, &mut self.budget)? {
            Ok(()) => Ok(()),
            Err(no_key) => self.raise(no_key.text()),
        }
    }

    fn choose(&mut self, branches: &'a [Branch], otherwise: &'a Block) -> Halting<Flow, H::Stop> {
        for Branch { condition, block } in branches {
            if self.value(condition)?.is_true() {
                return self.block(block);
            }
        }
        self.block(otherwise)
    }

    fn repeat_while(&mut self, Branch { condition, block }: &'a Branch) -> Halting<Flow, H::Stop> {
        while self.value(condition)?.is_true() {
            match self.block(block)? {
                Flow::Next => {}
                Flow::Break => break,
                returned @ Flow::Return(_) => return Ok(returned),
            }
        }
        Ok(Flow::Next)
    }

    fn repeat_until(&mut self, Branch { condition, block }: &'a Branch) -> Halting<Flow, H::Stop> {
        loop {
            match self.block(block)? {
                Flow::Next => {}
                Flow::Break => break,
                returned @ Flow::Return(_) => return Ok(returned),
            }
            if self.value(condition)?.is_true() {
                break;
            }
        }
        Ok(Flow::Next)
    }

    fn count(
        &mut self,
        slot: u8,
        [from, to, step]: [&'a Expression; 3],
        block: &'a Block,
    ) -> Halting<Flow, H::Stop> {
        // All three are worked out before any is looked at.
        let bounds = [self.value(from)?, self.value(to)?, self.value(step)?];
        let [from, to, step] = bounds.map(|bound| bound.to_number());
        let mut at = self.bound(from, "'for' initial value must be a number")?;
        let to = self.bound(to, "'for' limit must be a number")?;
        let step = self.bound(step, "'for' step must be a number")?;
        let goes_on = |at: f64| if step > 0.0 { at <= to } else { to <= at };
        while goes_on(at) {
            self.budget.take_steps(1)?;
            self.set_slot(0, slot, Value::Number(at));
            match self.block(block)? {
                Flow::Next => {}
                Flow::Break => break,
                returned @ Flow::Return(_) => return Ok(returned),
            }
            at = number::calculate(Arithmetic::Add, at, step);
        }
        Ok(Flow::Next)
    }

    fn bound(&self, bound: Option<f64>, refusal: &str) -> Halting<f64, H::Stop> {
        match bound {
            Some(number) => Ok(number),
            None => self.raise(refusal),
        }
    }

    fn each(&mut self, slot: u8, list: &'a Expression, block: &'a Block) -> Halting<Flow, H::Stop> {
        let list = match self.value(list)? {
            Value::Table(list) => list,
            other => {
                let found = other.type_name();
                return self.raise(format_args!(
                    "bad argument #1 to 'ipairs' (table expected, got {found})"
                ));
            }
        };
        for place in 1.. {
            let value = self.tables.at(list, place);
            if value.is_nil() {
                break;
            }
            self.budget.take_steps(1)?;
            self.set_slot(0, slot, Value::Number(number::from_count(place)));
            self.set_slot(0, slot.saturating_add(1), value);
            match self.block(block)? {
                Flow::Next => {}
                Flow::Break => break,
                returned @ Flow::Return(_) => return Ok(returned),
            }
        }
        Ok(Flow::Next)
    }
}
