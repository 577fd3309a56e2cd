//! Lua's values while a script runs.

use std::collections::BTreeMap;

use super::budget::{Budget, ScriptBound};
use crate::script::number;
use crate::types::SharedBytes;

/// One value. Tables are held by the run, and named here.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Nil,
    Boolean(bool),
    Number(f64),
    Text(SharedBytes),
    Table(TableId),
}

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TableId(usize);

impl TableId {
    pub(super) const KEYS: Self = Self(0);
    pub(super) const ARGUMENTS: Self = Self(1);
}

impl Value {
    pub(super) fn text(bytes: impl AsRef<[u8]>) -> Self {
        Self::Text(SharedBytes::from(bytes.as_ref()))
    }

    /// All but nil and false.
    pub(super) const fn is_true(&self) -> bool {
        !matches!(self, Self::Nil | Self::Boolean(false))
    }

    pub(super) const fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// What Lua's `type` says.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Boolean(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Table(_) => "table",
        }
    }

    /// A number, or a text that spells one.
    pub(super) fn to_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => number::read(text.as_slice()),
            Self::Nil | Self::Boolean(_) | Self::Table(_) => None,
        }
    }

    /// A text, or a number as one.
    pub(super) fn to_text(&self) -> Option<SharedBytes> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(SharedBytes::from(number::shown(*number).as_str())),
            Self::Nil | Self::Boolean(_) | Self::Table(_) => None,
        }
    }

    /// Bytes that a comparison or a copy walks through.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Nil | Self::Boolean(_) | Self::Number(_) | Self::Table(_) => 0,
        }
    }

    #[expect(clippy::float_cmp, reason = "Lua compares numbers exactly")]
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Boolean(left), Self::Boolean(right)) => left == right,
            (Self::Number(left), Self::Number(right)) => left == right,
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Table(left), Self::Table(right)) => left == right,
            _ => false,
        }
    }
}

/// What a table holds: what stands behind one another from 1 on, and all else by its key.
#[derive(Debug, Default)]
struct Table {
    /// The last one is never nil.
    items: Vec<Value>,
    named: BTreeMap<Key, Value>,
}

/// A key that is no place among the items.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Boolean(bool),
    /// The bits of a number, zero without its sign.
    Number(u64),
    Text(SharedBytes),
    Table(TableId),
}

/// Why a value cannot be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKey {
    Nil,
    NotANumber,
}

impl NoKey {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Nil => "table index is nil",
            Self::NotANumber => "table index is NaN",
        }
    }
}

/// Where a key leads.
enum Found {
    Place(usize),
    Named(Key),
}

fn find(key: &Value) -> Result<Found, NoKey> {
    Ok(match key {
        Value::Nil => return Err(NoKey::Nil),
        Value::Number(number) if number.is_nan() => return Err(NoKey::NotANumber),
        Value::Number(number) => match number::place(*number) {
            Some(place) => Found::Place(place),
            None if *number == 0.0 => Found::Named(Key::Number(0)),
            None => Found::Named(Key::Number(number.to_bits())),
        },
        Value::Boolean(value) => Found::Named(Key::Boolean(*value)),
        Value::Text(text) => Found::Named(Key::Text(text.clone())),
        Value::Table(table) => Found::Named(Key::Table(*table)),
    })
}

/// All tables of one run.
#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: Vec<Table>,
}

/// What a table and an entry cost, in bytes of the budget.
const TABLE_BYTES: usize = 64;
const ENTRY_BYTES: usize = 48;
/// Steps of an entry by its name, beside those of its bytes.
const NAMED_STEPS: usize = 8;

impl Tables {
    pub(super) fn make(&mut self, budget: &mut Budget) -> Result<TableId, ScriptBound> {
        budget.take_bytes(TABLE_BYTES)?;
        let id = TableId(self.tables.len());
        self.tables.push(Table::default());
        Ok(id)
    }

    /// A table of values behind one another.
    pub(super) fn make_list(
        &mut self,
        values: impl IntoIterator<Item = Value>,
        budget: &mut Budget,
    ) -> Result<TableId, ScriptBound> {
        let id = self.make(budget)?;
        self.extend(id, values, budget)?;
        Ok(id)
    }

    /// Puts values at the places from 1 on, over what stands there.
    pub(super) fn extend(
        &mut self,
        id: TableId,
        values: impl IntoIterator<Item = Value>,
        budget: &mut Budget,
    ) -> Result<(), ScriptBound> {
        let Some(table) = self.tables.get_mut(id.0) else {
            return Ok(());
        };
        let mut items = Vec::new();
        for (place, value) in (1..).zip(values) {
            budget.take_bytes(ENTRY_BYTES)?;
            table.named.remove(&place_key(place));
            items.push(value);
        }
        items.extend(table.items.split_off(items.len().min(table.items.len())));
        table.items = items;
        self.trim(id);
        self.join_following(id);
        Ok(())
    }

    /// One place behind the last value: what `#` says.
    pub(super) fn len(&self, id: TableId) -> usize {
        self.tables.get(id.0).map_or(0, |table| table.items.len())
    }

    pub(super) fn get(&self, id: TableId, key: &Value) -> Value {
        let Some(table) = self.tables.get(id.0) else {
            return Value::Nil;
        };
        match find(key) {
            Ok(Found::Place(place)) => self.at(id, place),
            Ok(Found::Named(key)) => table.named.get(&key).cloned().unwrap_or(Value::Nil),
            Err(_) => Value::Nil,
        }
    }

    /// The value at a place; 1 is the first.
    pub(super) fn at(&self, id: TableId, place: usize) -> Value {
        let Some(table) = self.tables.get(id.0) else {
            return Value::Nil;
        };
        let item = place.checked_sub(1).and_then(|at| table.items.get(at));
        item.or_else(|| table.named.get(&place_key(place)))
            .cloned()
            .unwrap_or(Value::Nil)
    }

    pub(super) fn field(&self, id: TableId, name: &str) -> Value {
        self.get(id, &Value::text(name))
    }

    /// Puts a value under a key; nil takes it away.
    pub(super) fn set(
        &mut self,
        id: TableId,
        key: &Value,
        value: Value,
        budget: &mut Budget,
    ) -> Result<Result<(), NoKey>, ScriptBound> {
        budget.take_bytes(ENTRY_BYTES)?;
        let found = match find(key) {
            Ok(found) => found,
            Err(no_key) => return Ok(Err(no_key)),
        };
        match found {
            Found::Place(place) => self.set_at(id, place, value),
            Found::Named(key) => {
                budget.take_steps(NAMED_STEPS)?;
                self.set_named(id, key, value);
            }
        }
        Ok(Ok(()))
    }

    fn set_named(&mut self, id: TableId, key: Key, value: Value) {
        let Some(table) = self.tables.get_mut(id.0) else {
            return;
        };
        if value.is_nil() {
            table.named.remove(&key);
        } else {
            table.named.insert(key, value);
        }
    }

    fn set_at(&mut self, id: TableId, place: usize, value: Value) {
        let Some(table) = self.tables.get_mut(id.0) else {
            return;
        };
        let at = place.saturating_sub(1);
        if let Some(item) = table.items.get_mut(at) {
            *item = value;
            self.trim(id);
        } else if at == table.items.len() && !value.is_nil() {
            table.named.remove(&place_key(place));
            table.items.push(value);
            self.join_following(id);
        } else {
            self.set_named(id, place_key(place), value);
        }
    }

    /// What stood alone behind the items, and now stands behind the last one, becomes one of them.
    fn join_following(&mut self, id: TableId) {
        let Some(table) = self.tables.get_mut(id.0) else {
            return;
        };
        while !table.named.is_empty()
            && let Some(next) = table
                .named
                .remove(&place_key(table.items.len().saturating_add(1)))
        {
            table.items.push(next);
        }
    }

    fn trim(&mut self, id: TableId) {
        if let Some(table) = self.tables.get_mut(id.0) {
            while table.items.last().is_some_and(Value::is_nil) {
                table.items.pop();
            }
        }
    }

    /// Puts a value before a place, and moves what stands from there on.
    pub(super) fn insert(
        &mut self,
        id: TableId,
        place: usize,
        value: Value,
        budget: &mut Budget,
    ) -> Result<(), ScriptBound> {
        budget.take_bytes(ENTRY_BYTES)?;
        let len = self.len(id);
        budget.take_steps_for(len.saturating_sub(place).saturating_mul(size_of::<Value>()))?;
        match self.tables.get_mut(id.0) {
            Some(table) if (1..=len).contains(&place) && !value.is_nil() => {
                table.items.insert(place.saturating_sub(1), value);
                self.join_following(id);
            }
            _ => self.set_at(id, place, value),
        }
        Ok(())
    }

    /// Takes a value out, and moves what stands behind it.
    pub(super) fn remove(
        &mut self,
        id: TableId,
        place: usize,
        budget: &mut Budget,
    ) -> Result<Value, ScriptBound> {
        let len = self.len(id);
        budget.take_steps_for(len.saturating_sub(place).saturating_mul(size_of::<Value>()))?;
        let Some(table) = self.tables.get_mut(id.0) else {
            return Ok(Value::Nil);
        };
        if !(1..=len).contains(&place) {
            return Ok(Value::Nil);
        }
        let removed = table.items.remove(place.saturating_sub(1));
        self.trim(id);
        Ok(removed)
    }
}

fn place_key(place: usize) -> Key {
    Key::Number(number::from_count(place).to_bits())
}
