//! Writes replies by protocol version.

use bytes::{BufMut as _, BytesMut};

use super::decimal::{write_header, write_i64};
use super::{ErrorReply, Line, Protocol, Reply};
use crate::limits::REPLY_DEPTH_MAX;

/// Stands in for whatever lies deeper than [`REPLY_DEPTH_MAX`].
const TOO_DEEP: Line = Line::from_static("ERR the reply is nested too deeply");

/// Appends replies to a connection's output, piece by piece. Only a double allocates.
///
/// Whoever writes an aggregate's header owes as many elements.
#[derive(Debug)]
pub struct ReplyWriter<'a> {
    out: &'a mut BytesMut,
    protocol: Protocol,
}

impl<'a> ReplyWriter<'a> {
    /// A writer that appends to `out`.
    #[must_use]
    pub const fn new(protocol: Protocol, out: &'a mut BytesMut) -> Self {
        Self { out, protocol }
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A status.
    pub fn simple(&mut self, line: &Line) {
        self.line(b'+', line.as_bytes());
    }

    /// An error.
    pub fn error(&mut self, error: &ErrorReply) {
        self.line(b'-', error.as_bytes());
    }

    /// A whole number.
    pub fn integer(&mut self, value: i64) {
        self.out.put_u8(b':');
        write_i64(value, self.out);
        self.out.put_slice(b"\r\n");
    }

    /// Bytes of any kind.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len().saturating_add(32));
        write_header(b'$', bytes.len(), self.out);
        self.out.put_slice(bytes);
        self.out.put_slice(b"\r\n");
    }

    /// No value.
    pub fn nil(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// No array.
    pub fn nil_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The header of `len` values.
    pub fn array(&mut self, len: usize) {
        write_header(b'*', len, self.out);
    }

    /// The header of `pairs` keys, each followed by its value.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs.saturating_mul(2)),
            Protocol::Resp3 => write_header(b'%', pairs, self.out),
        }
    }

    /// The header of `len` distinct values.
    pub fn set(&mut self, len: usize) {
        self.resp3_header(b'~', len);
    }

    /// The header of a message of `len` values that answers no request.
    pub fn push(&mut self, len: usize) {
        self.resp3_header(b'>', len);
    }

    /// Text for people.
    pub fn verbatim(&mut self, text: &[u8]) {
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text);
        }
        self.out.reserve(text.len().saturating_add(32));
        write_header(b'=', text.len().saturating_add(4), self.out);
        self.out.put_slice(b"txt:");
        self.out.put_slice(text);
        self.out.put_slice(b"\r\n");
    }

    /// A number with a fraction.
    pub fn double(&mut self, value: f64) {
        let text = double_text(value);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Yes or no.
    #[expect(
        clippy::fn_params_excessive_bools,
        reason = "the value that is sent, not a mode"
    )]
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// A whole reply. Below [`REPLY_DEPTH_MAX`] levels an error stands in its place, so that no client is sent what it
    /// would refuse, and the stack is bounded.
    pub fn reply(&mut self, reply: &Reply) {
        self.reply_at(reply, 0);
    }

    fn reply_at(&mut self, reply: &Reply, depth: usize) {
        match reply {
            Reply::Simple(line) => self.simple(line),
            Reply::Error(error) => self.error(error),
            Reply::Integer(value) => self.integer(*value),
            Reply::Bulk(bytes) => self.bulk(bytes),
            Reply::Nil => self.nil(),
            Reply::NilArray => self.nil_array(),
            Reply::Verbatim(text) => self.verbatim(text),
            Reply::Double(value) => self.double(*value),
            Reply::Boolean(value) => self.boolean(*value),
            Reply::Array(_) | Reply::Map(_) | Reply::Set(_) | Reply::Push(_) if depth == REPLY_DEPTH_MAX => {
                self.line(b'-', TOO_DEEP.as_bytes());
            }
            Reply::Array(items) => {
                self.array(items.len());
                self.items(items, depth);
            }
            Reply::Set(items) => {
                self.set(items.len());
                self.items(items, depth);
            }
            Reply::Push(items) => {
                self.push(items.len());
                self.items(items, depth);
            }
            Reply::Map(pairs) => {
                self.map(pairs.len());
                for (key, value) in pairs {
                    self.reply_at(key, depth.saturating_add(1));
                    self.reply_at(value, depth.saturating_add(1));
                }
            }
        }
    }

    fn items(&mut self, items: &[Reply], depth: usize) {
        for item in items {
            self.reply_at(item, depth.saturating_add(1));
        }
    }

    fn resp3_header(&mut self, kind: u8, len: usize) {
        let kind = match self.protocol {
            Protocol::Resp2 => b'*',
            Protocol::Resp3 => kind,
        };
        write_header(kind, len, self.out);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.reserve(text.len().saturating_add(3));
        self.out.put_u8(kind);
        self.out.put_slice(text);
        self.out.put_slice(b"\r\n");
    }
}

impl Reply {
    /// Appends this reply as `protocol` spells it.
    pub fn encode(&self, protocol: Protocol, out: &mut BytesMut) {
        ReplyWriter::new(protocol, out).reply(self);
    }
}

/// A double as text. The longest finite one has some 330 plain digits, so exponents are used beyond 1e17.
fn double_text(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        (if value > 0.0 { "inf" } else { "-inf" }).to_owned()
    } else if value == 0.0 || (1e-5..1e17).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}
