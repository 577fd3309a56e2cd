//! As much of protocol buffers as etcd's messages need: whole numbers and bytes by field number.
//!
//! Source: "Protocol Buffers, Encoding"; the messages are those of etcd 3.4's `rpc.proto` and `v3lock.proto`.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::Error;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;
/// Bytes of a varint at the most.
const VARINT_BYTES_MAX: u32 = 10;

/// A message that is being written.
#[derive(Debug, Default, Clone)]
pub struct Message(BytesMut);

impl Message {
    /// Adds a whole number; etcd writes negative ones in two's complement, too.
    #[must_use]
    pub fn number(mut self, field: u64, value: i64) -> Self {
        self.tag(field, VARINT);
        self.varint(u64::from_ne_bytes(value.to_ne_bytes()));
        self
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.tag(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.put_slice(value);
        self
    }

    /// Adds a message.
    #[must_use]
    pub fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint((field << 3) | kind);
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let low = (value & 0x7f).to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.0.put_slice(low.get(..1).unwrap_or_default());
                return;
            }
            self.0.put_u8(low.first().copied().unwrap_or_default() | 0x80);
        }
    }
}

/// The fields of a message that was read. Of a field that stands there several times, the last counts.
#[derive(Debug, Default)]
pub struct Fields {
    numbers: Vec<(u64, i64)>,
    bytes: Vec<(u64, Bytes)>,
}

impl Fields {
    /// Reads a message.
    ///
    /// # Errors
    /// It is no message.
    pub fn read(mut message: Bytes) -> Result<Self, Error> {
        let mut fields = Self::default();
        while message.has_remaining() {
            let tag = varint(&mut message)?;
            let field = tag >> 3;
            match tag & 7 {
                VARINT => {
                    let value = varint(&mut message)?;
                    fields
                        .numbers
                        .push((field, i64::from_ne_bytes(value.to_ne_bytes())));
                }
                LENGTH => {
                    let len = usize::try_from(varint(&mut message)?)?;
                    if len > message.len() {
                        return Err("a field of protocol buffers is cut short".into());
                    }
                    fields.bytes.push((field, message.split_to(len)));
                }
                FIXED_64 => drop(message.try_get_u64()?),
                FIXED_32 => drop(message.try_get_u32()?),
                kind => return Err(format!("protocol buffers have no kind {kind}").into()),
            }
        }
        Ok(fields)
    }

    /// A whole number; 0 if it is not there, as the format has it.
    #[must_use]
    pub fn number(&self, field: u64) -> i64 {
        let found = self.numbers.iter().rev().find(|(number, _)| *number == field);
        found.map_or(0, |(_, value)| *value)
    }

    /// Bytes; none if they are not there.
    #[must_use]
    pub fn bytes(&self, field: u64) -> Bytes {
        let found = self.bytes.iter().rev().find(|(number, _)| *number == field);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

fn varint(message: &mut Bytes) -> Result<u64, Error> {
    let mut value = 0_u64;
    for at in 0..VARINT_BYTES_MAX {
        let byte = message.try_get_u8()?;
        value |= u64::from(byte & 0x7f).checked_shl(at * 7).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of protocol buffers is too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_as_the_format_has_it() {
        // The example of the format's own description: field 1 is 150, field 2 is "testing".
        let message = Message::default().number(1, 150).bytes(2, b"testing");
        assert_eq!(message.as_bytes(), b"\x08\x96\x01\x12\x07testing");
    }

    #[test]
    fn what_is_written_is_read() {
        let inner = Message::default().number(5, 0);
        let message = Message::default()
            .number(1, -1)
            .number(2, i64::MAX)
            .message(3, &inner)
            .bytes(3, b"last");
        let fields = Fields::read(Bytes::copy_from_slice(message.as_bytes())).unwrap();
        assert_eq!(
            (fields.number(1), fields.number(2), fields.number(9)),
            (-1, i64::MAX, 0)
        );
        assert_eq!(
            (fields.bytes(3), fields.bytes(4)),
            (Bytes::from("last"), Bytes::new())
        );
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        for bytes in [
            b"\x08".as_slice(),
            b"\x12\x05ab",
            b"\x0b",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(Fields::read(Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
