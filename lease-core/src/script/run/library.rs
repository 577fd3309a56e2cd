//! The functions that scripts are given.

use super::value::{TableId, Value};
use super::{Halt, Halting, Host, Run};
use crate::script::number;
use crate::script::program::Library;
use crate::types::SharedBytes;

/// Values that `unpack` gives at the most, as Lua's stack bears.
const UNPACKED_MAX: usize = 8_000;

impl<H: Host> Run<'_, H> {
    pub(super) fn library(
        &mut self,
        library: Library,
        arguments: Vec<Value>,
    ) -> Halting<Vec<Value>, H::Stop> {
        let call = Arguments {
            function: library.short_name(),
            values: arguments,
        };
        if library == Library::Unpack {
            return self.unpack(&call);
        }
        let value = match library {
            Library::ToNumber => self.read_number(&call)?,
            Library::ToText => self.shown(&call)?,
            Library::Type => Value::text(self.any(&call, 0)?.type_name()),
            Library::Error => return self.error(&call),
            Library::ErrorReply => self.error_reply(&call)?,
            Library::StatusReply => self.status_reply(&call)?,
            Library::TableInsert => return self.insert(call),
            Library::TableRemove => self.remove(&call)?,
            Library::TableConcat => self.concat(&call)?,
            Library::TextSub => self.sub(&call)?,
            Library::TextLength => Value::Number(number::from_count(self.text(&call, 0)?.len())),
            Library::TextLower => self.changed(&call, <[u8]>::to_ascii_lowercase)?,
            Library::TextUpper => self.changed(&call, <[u8]>::to_ascii_uppercase)?,
            Library::MathFloor => Value::Number(self.number(&call, 0)?.floor()),
            Library::MathCeil => Value::Number(self.number(&call, 0)?.ceil()),
            Library::MathAbs => Value::Number(self.number(&call, 0)?.abs()),
            Library::MathMin => self.extreme(&call, |next, best| next < best)?,
            Library::MathMax => self.extreme(&call, |next, best| next > best)?,
            Library::Unpack => Value::Nil,
        };
        Ok(vec![value])
    }

    fn any(&self, call: &Arguments, at: usize) -> Halting<Value, H::Stop> {
        match call.values.get(at) {
            Some(value) => Ok(value.clone()),
            None => self.bad_argument(call, at, "value expected"),
        }
    }

    fn number(&self, call: &Arguments, at: usize) -> Halting<f64, H::Stop> {
        match call.get(at).to_number() {
            Some(number) => Ok(number),
            None => self.not_what_is_expected(call, at, "number"),
        }
    }

    /// A number, or what stands for it.
    fn number_or(&self, call: &Arguments, at: usize, or: f64) -> Halting<f64, H::Stop> {
        if call.get(at).is_nil() {
            Ok(or)
        } else {
            self.number(call, at)
        }
    }

    fn text(&mut self, call: &Arguments, at: usize) -> Halting<SharedBytes, H::Stop> {
        match call.get(at).to_text() {
            Some(text) => Ok(text),
            None => self.not_what_is_expected(call, at, "string"),
        }
    }

    fn list(&self, call: &Arguments, at: usize) -> Halting<TableId, H::Stop> {
        match call.get(at) {
            Value::Table(table) => Ok(*table),
            _ => self.not_what_is_expected(call, at, "table"),
        }
    }

    fn not_what_is_expected<T>(&self, call: &Arguments, at: usize, expected: &str) -> Halting<T, H::Stop> {
        let found = call.values.get(at).map_or("no value", Value::type_name);
        self.bad_argument(call, at, &format!("{expected} expected, got {found}"))
    }

    fn bad_argument<T>(&self, call: &Arguments, at: usize, what: &str) -> Halting<T, H::Stop> {
        let (function, number) = (call.function, at.saturating_add(1));
        self.raise(format_args!("bad argument #{number} to '{function}' ({what})"))
    }

    /// `tonumber`: in a base other than 10 it reads whole numbers alone.
    fn read_number(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let base = number::integer(self.number_or(call, 1, 10.0)?);
        let found = if base == 10 {
            let value = self.any(call, 0)?;
            self.budget.take_steps_for(value.len())?;
            value.to_number()
        } else {
            let text = self.text(call, 0)?;
            let Some(base) = number::base(base) else {
                return self.bad_argument(call, 1, "base out of range");
            };
            self.budget.take_steps_for(text.len())?;
            number::read_in_base(text.as_slice(), base)
        };
        Ok(found.map_or(Value::Nil, Value::Number))
    }

    fn shown(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let value = self.any(call, 0)?;
        self.budget.take_steps_to_show(&value)?;
        Ok(match &value {
            Value::Nil => Value::text("nil"),
            Value::Boolean(true) => Value::text("true"),
            Value::Boolean(false) => Value::text("false"),
            Value::Number(_) | Value::Text(_) => value.to_text().map_or(Value::Nil, Value::Text),
            // Lua shows where it lies in memory.
            Value::Table(_) => return self.raise("the text of a table is not served here"),
        })
    }

    /// `error`: at a level above 0 its text names the line, at level 1 that of the call.
    fn error<T>(&mut self, call: &Arguments) -> Halting<T, H::Stop> {
        let level = number::integer(self.number_or(call, 1, 1.0)?);
        let value = call.get(0).clone();
        if let Value::Table(table) = &value
            && let Value::Text(error) = self.tables.field(*table, "err")
        {
            return Err(Halt::Raised(error.as_slice().to_vec()));
        }
        match value.to_text() {
            // Which line called the function that is carried out is not kept.
            Some(_) if level > 1 => self.raise("an error at a level above 1 is not served here"),
            Some(text) => {
                let mut said = if level == 1 {
                    format!("ERR user_script:{}: ", self.line).into_bytes()
                } else {
                    b"ERR ".to_vec()
                };
                self.budget.take_bytes(text.len())?;
                said.extend_from_slice(text.as_slice());
                Err(Halt::Raised(said))
            }
            None => self.raise(format_args!("an error of type {}", value.type_name())),
        }
    }

    /// `redis.error_reply`: with a code in front if it has none, unless it is one word alone.
    fn error_reply(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let [Value::Text(text)] = call.values.as_slice() else {
            return Ok(self.single_field("err", SharedBytes::from(WRONG_ARGUMENTS))?);
        };
        self.budget.take_bytes(text.len())?;
        let text = text.as_slice().strip_prefix(b"-").unwrap_or(text.as_slice());
        let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = text.iter().position(|byte| !is_break(byte)).unwrap_or(text.len());
        let end = text
            .iter()
            .rposition(|byte| !is_break(byte))
            .map_or(0, |at| at.saturating_add(1));
        let text = text.get(start..end).unwrap_or_default();
        let said = if text.contains(&b' ') {
            text.to_vec()
        } else {
            [b"ERR ", text].concat()
        };
        Ok(self.single_field("err", SharedBytes::from(said))?)
    }

    fn status_reply(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let [Value::Text(text)] = call.values.as_slice() else {
            return Ok(self.single_field("err", SharedBytes::from(WRONG_ARGUMENTS))?);
        };
        Ok(self.single_field("ok", text.clone())?)
    }

    fn unpack(&mut self, call: &Arguments) -> Halting<Vec<Value>, H::Stop> {
        let list = self.list(call, 0)?;
        let from = self.number_or(call, 1, 1.0)?;
        let to = self.number_or(call, 2, number::from_count(self.tables.len(list)))?;
        let (from, to) = (number::integer(from), number::integer(to));
        if from > to {
            return Ok(Vec::new());
        }
        let count = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        if count >= UNPACKED_MAX {
            return self.raise("too many results to unpack");
        }
        self.budget.take_steps(count.saturating_add(1))?;
        let places = from..=to;
        Ok(places
            .map(|place| self.tables.get(list, &Value::Number(number::from_integer(place))))
            .collect())
    }

    fn insert(&mut self, call: Arguments) -> Halting<Vec<Value>, H::Stop> {
        let list = self.list(&call, 0)?;
        let end = self.tables.len(list).saturating_add(1);
        let place = match call.values.len() {
            2 => end,
            3 => number::place(self.number(&call, 1)?).unwrap_or(0),
            _ => return self.raise("wrong number of arguments to 'insert'"),
        };
        let value = call.values.into_iter().next_back().unwrap_or(Value::Nil);
        if place == 0 {
            return self.raise("an insertion before the first place is not served here");
        }
        self.tables.insert(list, place, value, &mut self.budget)?;
        Ok(Vec::new())
    }

    fn remove(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let list = self.list(call, 0)?;
        let last = number::from_count(self.tables.len(list));
        let place = number::place(self.number_or(call, 1, last)?).unwrap_or(0);
        Ok(self.tables.remove(list, place, &mut self.budget)?)
    }

    fn concat(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let list = self.list(call, 0)?;
        let between = if call.get(1).is_nil() {
            SharedBytes::from("")
        } else {
            self.text(call, 1)?
        };
        let from = number::integer(self.number_or(call, 2, 1.0)?);
        let to = number::integer(self.number_or(call, 3, number::from_count(self.tables.len(list)))?);
        let mut joined = Vec::new();
        let mut place = from;
        while place <= to {
            let value = self.tables.get(list, &Value::Number(number::from_integer(place)));
            self.budget.take_steps_to_show(&value)?;
            let Some(text) = value.to_text() else {
                let found = value.type_name();
                return self.raise(format_args!(
                    "invalid value ({found}) at index {place} in table for 'concat'"
                ));
            };
            self.budget.take_steps(1)?;
            self.budget.take_bytes(text.len().saturating_add(between.len()))?;
            joined.extend_from_slice(text.as_slice());
            if place < to {
                joined.extend_from_slice(between.as_slice());
            }
            let Some(next) = place.checked_add(1) else { break };
            place = next;
        }
        Ok(Value::text(joined))
    }

    /// `string.sub`: places count from 1, or from the end if they are negative.
    fn sub(&mut self, call: &Arguments) -> Halting<Value, H::Stop> {
        let text = self.text(call, 0)?;
        let len = i64::try_from(text.len()).unwrap_or(i64::MAX);
        let from_end = |place: i64| {
            if place < 0 {
                len.saturating_add(place).saturating_add(1).max(0)
            } else {
                place
            }
        };
        let from = from_end(number::integer(self.number(call, 1)?)).max(1);
        let to = from_end(number::integer(self.number_or(call, 2, -1.0)?)).min(len);
        let range = usize::try_from(from.saturating_sub(1))
            .ok()
            .zip(usize::try_from(to).ok());
        let part = range
            .and_then(|(from, to)| text.as_slice().get(from..to))
            .unwrap_or_default();
        self.budget.take_bytes(part.len())?;
        Ok(Value::text(part))
    }

    fn changed(&mut self, call: &Arguments, change: fn(&[u8]) -> Vec<u8>) -> Halting<Value, H::Stop> {
        let text = self.text(call, 0)?;
        self.budget.take_bytes(text.len())?;
        Ok(Value::text(change(text.as_slice())))
    }

    fn extreme(&self, call: &Arguments, is_better: fn(f64, f64) -> bool) -> Halting<Value, H::Stop> {
        let mut best = self.number(call, 0)?;
        for at in 1..call.values.len() {
            let next = self.number(call, at)?;
            if is_better(next, best) {
                best = next;
            }
        }
        Ok(Value::Number(best))
    }
}

const WRONG_ARGUMENTS: &str = "ERR wrong number or type of arguments";

/// What a function is called with.
struct Arguments {
    function: &'static str,
    values: Vec<Value>,
}

impl Arguments {
    fn get(&self, at: usize) -> &Value {
        self.values.get(at).unwrap_or(&Value::Nil)
    }
}
