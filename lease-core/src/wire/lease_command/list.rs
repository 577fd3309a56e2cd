use std::borrow::Cow;

use super::arguments::{Arguments, decimal, set_once};
use crate::limits::{LIST_COUNT_MAX, NAME_BYTES_MAX};
use crate::types::{InvalidValue, SharedBytes};
use crate::wire::{CommandError, ListCursor};

/// `LEASE.LIST [PREFIX p] [CURSOR c] [COUNT n]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListCommand {
    /// What the names must begin with, at most [`NAME_BYTES_MAX`] bytes; empty for all names.
    pub prefix: SharedBytes,
    /// Where to go on; `None` begins.
    pub cursor: Option<ListCursor>,
    /// Most leases to answer, 1 to [`LIST_COUNT_MAX`]; `None` leaves it to the server.
    pub count: Option<u64>,
}

impl ListCommand {
    pub(super) fn read(arguments: &mut Arguments<'_>) -> Result<Self, CommandError> {
        let (mut prefix, mut cursor, mut count) = (None, None, None);
        while let Some(option) = arguments.option(&["PREFIX", "CURSOR", "COUNT"])? {
            let verb = arguments.verb();
            match option {
                "PREFIX" => set_once(&mut prefix, read_prefix(arguments)?, verb, option)?,
                "CURSOR" => {
                    let next = ListCursor::read(arguments.required()?).map_err(|_| CommandError::Cursor)?;
                    set_once(&mut cursor, next, verb, option)?;
                }
                _ => {
                    let number = arguments.number("COUNT", 1, LIST_COUNT_MAX)?;
                    set_once(&mut count, number, verb, option)?;
                }
            }
        }
        Ok(Self {
            prefix: prefix.unwrap_or_else(|| SharedBytes::from("")),
            cursor: cursor.flatten(),
            count,
        })
    }

    pub(super) fn write<'a>(&'a self, out: &mut Vec<Cow<'a, [u8]>>) {
        if !self.prefix.is_empty() {
            out.extend([b"PREFIX".as_slice().into(), self.prefix.as_slice().into()]);
        }
        if self.cursor.is_some() {
            let cursor = ListCursor::write(self.cursor.as_ref());
            out.extend([b"CURSOR".as_slice().into(), cursor.into()]);
        }
        if let Some(count) = self.count {
            out.extend([b"COUNT".as_slice().into(), decimal(count)]);
        }
    }
}

fn read_prefix(arguments: &mut Arguments<'_>) -> Result<SharedBytes, CommandError> {
    let prefix = arguments.required()?;
    if prefix.len() > NAME_BYTES_MAX {
        return Err(CommandError::Name {
            invalid: InvalidValue::Length {
                what: "prefix",
                min: 0,
                max: NAME_BYTES_MAX,
                len: prefix.len(),
            },
        });
    }
    Ok(SharedBytes::from(prefix))
}
