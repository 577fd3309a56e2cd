//! What goes to commands and comes from them, and what a script answers.

use super::budget::ScriptBound;
use super::value::{TableId, Value};
use super::{Halt, Halting, Host, Run};
use crate::limits::{SCRIPT_REPLY_BYTES_MAX, SCRIPT_REPLY_DEPTH_MAX};
use crate::script::number;
use crate::script::{ScriptReply, Verb};
use crate::types::SharedBytes;

/// What each value of a reply counts for, beside its bytes.
const REPLY_ITEM_BYTES: usize = 32;

/// Fields of a table that Redis answers in another form, which is not served here.
const OTHER_FORMS: [&str; 5] = ["double", "map", "set", "big_number", "verbatim_string"];

impl<H: Host> Run<'_, H> {
    /// `redis.call`: an error ends the script.
    pub(super) fn command(&mut self, verb: Verb, arguments: &[Value]) -> Halting<Vec<Value>, H::Stop> {
        match self.ask(verb, arguments)? {
            ScriptReply::Error(text) => Err(Halt::Raised(text.as_slice().to_vec())),
            reply => Ok(vec![self.received(&reply)?]),
        }
    }

    /// `redis.pcall`: an error is a value.
    pub(super) fn protected_command(
        &mut self,
        verb: Verb,
        arguments: &[Value],
    ) -> Halting<Vec<Value>, H::Stop> {
        let reply = self.ask(verb, arguments)?;
        Ok(vec![self.received(&reply)?])
    }

    fn ask(&mut self, verb: Verb, arguments: &[Value]) -> Halting<ScriptReply, H::Stop> {
        let mut texts = Vec::with_capacity(arguments.len());
        for argument in arguments {
            self.budget.take_steps_to_show(argument)?;
            texts.push(match argument {
                Value::Text(text) => text.clone(),
                Value::Number(number) => SharedBytes::from(number::argument(*number).as_str()),
                Value::Nil | Value::Boolean(_) | Value::Table(_) => {
                    let text = "ERR Lua redis lib command arguments must be strings or integers";
                    return Ok(ScriptReply::error(text));
                }
            });
        }
        if !verb.takes(texts.len()) {
            return Ok(ScriptReply::error(
                "ERR Wrong number of args calling Redis command from script",
            ));
        }
        let bytes = texts.iter().map(SharedBytes::len).fold(0, usize::saturating_add);
        self.budget.take_steps(texts.len())?;
        self.budget.take_steps_for(bytes)?;
        self.host.call(verb, &texts).map_err(Halt::Stopped)
    }

    /// A command's answer as a value: no value is `false`, and a status and an error are tables.
    fn received(&mut self, reply: &ScriptReply) -> Result<Value, ScriptBound> {
        Ok(match reply {
            ScriptReply::Nil => Value::Boolean(false),
            ScriptReply::Integer(integer) => Value::Number(number::from_integer(*integer)),
            ScriptReply::Bulk(text) => Value::Text(text.clone()),
            ScriptReply::Status(text) => self.single_field("ok", text.clone())?,
            ScriptReply::Error(text) => self.single_field("err", text.clone())?,
            ScriptReply::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    self.budget.take_steps(1)?;
                    values.push(self.received(item)?);
                }
                Value::Table(self.tables.make_list(values, &mut self.budget)?)
            }
        })
    }

    /// A table such as `{ok = text}`.
    pub(super) fn single_field(&mut self, name: &str, text: SharedBytes) -> Result<Value, ScriptBound> {
        let table = self.tables.make(&mut self.budget)?;
        // A text is always a key.
        let _ = self
            .tables
            .set(table, &Value::text(name), Value::Text(text), &mut self.budget)?;
        Ok(Value::Table(table))
    }

    /// What a script answers.
    pub(super) fn reply(&mut self, value: Value) -> Halting<ScriptReply, H::Stop> {
        let mut left = SCRIPT_REPLY_BYTES_MAX;
        self.reply_at(value, 0, &mut left)
    }

    fn reply_at(&mut self, value: Value, depth: usize, left: &mut usize) -> Halting<ScriptReply, H::Stop> {
        let bytes = value.len().saturating_add(REPLY_ITEM_BYTES);
        *left = left.checked_sub(bytes).ok_or(ScriptBound::Reply)?;
        self.budget.take_steps(1)?;
        Ok(match value {
            Value::Nil | Value::Boolean(false) => ScriptReply::Nil,
            Value::Boolean(true) => ScriptReply::Integer(1),
            Value::Number(number) => ScriptReply::Integer(number::integer(number)),
            Value::Text(text) => ScriptReply::Bulk(text),
            Value::Table(_) if depth >= SCRIPT_REPLY_DEPTH_MAX => return Err(ScriptBound::Reply.into()),
            Value::Table(table) => self.reply_table(table, depth, left)?,
        })
    }

    fn reply_table(
        &mut self,
        table: TableId,
        depth: usize,
        left: &mut usize,
    ) -> Halting<ScriptReply, H::Stop> {
        if let Value::Text(error) = self.tables.field(table, "err") {
            return Ok(ScriptReply::Error(error));
        }
        if let Value::Text(status) = self.tables.field(table, "ok") {
            return Ok(ScriptReply::Status(status));
        }
        for form in OTHER_FORMS {
            if !self.tables.field(table, form).is_nil() {
                return self.raise(format_args!("a reply with the field '{form}' is not served here"));
            }
        }
        let mut items = Vec::new();
        for place in 1.. {
            let value = self.tables.at(table, place);
            if value.is_nil() {
                break;
            }
            items.push(self.reply_at(value, depth.saturating_add(1), left)?);
        }
        Ok(ScriptReply::Array(items))
    }
}
