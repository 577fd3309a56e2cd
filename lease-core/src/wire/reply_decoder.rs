//! Reads replies from a stream of bytes, RESP2 and RESP3 alike: the client's half.
//!
//! A state machine without a socket. It keeps its place between reads, looks at each line once, and holds unfinished
//! arrays on a list instead of the stack. It leaves to the client which request a reply answers.

use std::fmt;

use bytes::buf::Limit;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::decimal::parse_i64;
use super::{ErrorReply, Line, Reply, ReplyDecodeError};
use crate::limits::{
    BUFFER_KEEP_BYTES, INLINE_BYTES_MAX, READ_BYTES, REPLY_BYTES_MAX, REPLY_DEPTH_MAX, REPLY_ELEMENTS_MAX,
};

/// A read of less than this is not worth a system call, in bytes.
const SPACE_BYTES_MIN: usize = READ_BYTES / 4;
/// Longest line of a reply, in bytes with its first: texts and counts.
const LINE_BYTES_MAX: usize = INLINE_BYTES_MAX;

/// Turns the bytes of one connection into replies.
pub struct ReplyDecoder {
    buffer: BytesMut,
    state: State,
    /// Aggregates whose elements are still coming, the outermost first.
    open: Vec<Open>,
    /// Bytes of `buffer` up to which its first line is known not to end.
    scanned: usize,
    /// Bytes of the current reply that have left `buffer`.
    reply_bytes: usize,
    /// Elements that the current reply has announced.
    elements: usize,
    oversized: bool,
    reply_bytes_max: usize,
    /// Bytes looked at in search of a line's end, and steps taken.
    #[cfg(test)]
    pub(super) work: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// An element.
    Element,
    /// The bytes behind a length.
    Body { kind: u8, len: usize },
    /// Nothing: the stream broke.
    Failed(ReplyDecodeError),
}

struct Open {
    kind: u8,
    missing: usize,
    items: Vec<Reply>,
}

enum Step {
    Element(Reply),
    Onward,
    NeedsBytes,
}

impl ReplyDecoder {
    /// A decoder at the start of a stream, for replies of at most [`REPLY_BYTES_MAX`] bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::with_reply_bytes_max(REPLY_BYTES_MAX)
    }

    /// A decoder for replies of at most `bytes` bytes with their framing. Too small: large listings break the
    /// connection. Too large: a hostile server takes that much memory, and some 50 bytes an element more.
    #[must_use]
    pub fn with_reply_bytes_max(bytes: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            state: State::Element,
            open: Vec::new(),
            scanned: 0,
            reply_bytes: 0,
            elements: 0,
            oversized: false,
            reply_bytes_max: bytes,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Room for one read from a socket; whatever is written there is fed. At most [`READ_BYTES`], or what the current
    /// bulk lacks if that room is there already.
    pub fn space(&mut self) -> Limit<&mut BytesMut> {
        self.make_room(SPACE_BYTES_MIN, READ_BYTES);
        let spare = self.buffer.capacity().saturating_sub(self.buffer.len());
        let lacking = match self.state {
            State::Body { len, .. } => len.saturating_sub(self.buffer.len()),
            State::Element | State::Failed(_) => 0,
        };
        (&mut self.buffer).limit(lacking.max(READ_BYTES).min(spare))
    }

    /// Takes bytes that were read elsewhere. Ask for the replies after each call.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len(), bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole reply; `None` if more bytes are needed. A null array of RESP2 is [`Reply::NilArray`].
    ///
    /// # Errors
    /// [`ReplyDecodeError`] once the stream cannot be read on, and at every later call. Requests without an answer
    /// may have been applied; the connection must be closed.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, ReplyDecodeError> {
        loop {
            let element = match self.step() {
                Ok(Step::Element(element)) => element,
                Ok(Step::Onward) => continue,
                Ok(Step::NeedsBytes) => return Ok(None),
                Err(error) => {
                    self.fail(error);
                    return Err(error);
                }
            };
            if let Some(reply) = self.place(element) {
                self.reply_bytes = 0;
                self.elements = 0;
                return Ok(Some(reply));
            }
        }
    }

    /// Whether the stream stands between two replies, with nothing read ahead.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Element) && self.open.is_empty() && self.buffer.is_empty()
    }

    /// Bytes of the read buffer in use or at hand.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    fn make_room(&mut self, at_least: usize, reserve: usize) {
        if matches!(self.state, State::Failed(_)) {
            self.buffer.clear();
        }
        if self.buffer.is_empty() && self.oversized {
            self.buffer = BytesMut::new();
            self.oversized = false;
        }
        if self.buffer.capacity().saturating_sub(self.buffer.len()) < at_least {
            self.buffer.reserve(reserve);
        }
        self.oversized |= self.buffer.capacity() > BUFFER_KEEP_BYTES;
    }

    fn step(&mut self) -> Result<Step, ReplyDecodeError> {
        #[cfg(test)]
        {
            self.work = self.work.saturating_add(1);
        }
        match self.state {
            State::Element => self.read_line(),
            State::Body { kind, len } => self.read_body(kind, len),
            State::Failed(error) => Err(error),
        }
    }

    fn read_line(&mut self) -> Result<Step, ReplyDecodeError> {
        let Some(kind) = self.buffer.first().copied() else {
            return Ok(Step::NeedsBytes);
        };
        if !b"+-:$*_#,!=~>%".contains(&kind) {
            return Err(ReplyDecodeError::UnknownKind { got: kind });
        }
        let Some(end) = self.find_line_end()? else {
            return Ok(Step::NeedsBytes);
        };
        match self.buffer.get(end.saturating_add(1)) {
            None => return Ok(Step::NeedsBytes),
            Some(b'\n') => {}
            Some(_) => return Err(ReplyDecodeError::NotTerminated),
        }
        self.skip(1);
        let text = self.take(end.saturating_sub(1))?;
        self.skip(2);
        self.scanned = 0;
        self.read_element(kind, text)
    }

    /// What a line of `kind` with `text` says.
    fn read_element(&mut self, kind: u8, text: Bytes) -> Result<Step, ReplyDecodeError> {
        let invalid = ReplyDecodeError::InvalidValue { kind };
        let reply = match kind {
            b'+' => Reply::Simple(Line::new(text)),
            b'-' => Reply::Error(ErrorReply::from_line(Line::new(text))),
            b':' => Reply::Integer(parse_i64(&text).ok_or(invalid)?),
            b'_' if text.is_empty() => Reply::Nil,
            b'#' if *text == *b"t" => Reply::Boolean(true),
            b'#' if *text == *b"f" => Reply::Boolean(false),
            b',' => Reply::Double(parse_double(&text).ok_or(invalid)?),
            b'$' | b'!' | b'=' => match parse_i64(&text).ok_or(invalid)? {
                -1 if kind == b'$' => Reply::Nil,
                len => return self.open_body(kind, usize::try_from(len).map_err(|_| invalid)?),
            },
            b'*' | b'~' | b'>' | b'%' => match parse_i64(&text).ok_or(invalid)? {
                -1 if kind == b'*' => Reply::NilArray,
                count => return self.open_aggregate(kind, usize::try_from(count).map_err(|_| invalid)?),
            },
            _ => return Err(invalid),
        };
        Ok(Step::Element(reply))
    }

    fn open_body(&mut self, kind: u8, len: usize) -> Result<Step, ReplyDecodeError> {
        if self.reply_bytes.saturating_add(len) > self.reply_bytes_max {
            return Err(ReplyDecodeError::TooLong {
                max: self.reply_bytes_max,
            });
        }
        self.state = State::Body { kind, len };
        Ok(Step::Onward)
    }

    fn open_aggregate(&mut self, kind: u8, count: usize) -> Result<Step, ReplyDecodeError> {
        let missing = if kind == b'%' {
            count.saturating_mul(2)
        } else {
            count
        };
        self.elements = self.elements.saturating_add(missing);
        if self.elements > REPLY_ELEMENTS_MAX {
            return Err(ReplyDecodeError::TooManyElements {
                max: REPLY_ELEMENTS_MAX,
            });
        }
        if self.open.len() == REPLY_DEPTH_MAX {
            return Err(ReplyDecodeError::TooDeep { max: REPLY_DEPTH_MAX });
        }
        if missing == 0 {
            return Ok(Step::Element(close(kind, Vec::new())));
        }
        // No capacity by the announced count: memory follows what came.
        self.open.push(Open {
            kind,
            missing,
            items: Vec::new(),
        });
        Ok(Step::Onward)
    }

    fn read_body(&mut self, kind: u8, len: usize) -> Result<Step, ReplyDecodeError> {
        let Some(tail) = self.buffer.get(len..len.saturating_add(2)) else {
            return Ok(Step::NeedsBytes);
        };
        if tail != b"\r\n" {
            return Err(ReplyDecodeError::NotTerminated);
        }
        let mut body = self.take(len)?;
        self.skip(2);
        self.state = State::Element;
        Ok(Step::Element(match kind {
            b'!' => Reply::Error(ErrorReply::from_line(Line::new(body))),
            b'=' => {
                // Three letters of format and a colon come first.
                if body.get(3) != Some(&b':') {
                    return Err(ReplyDecodeError::InvalidValue { kind });
                }
                body.advance(4);
                Reply::Verbatim(body)
            }
            _ => Reply::Bulk(body),
        }))
    }

    /// Puts an element where it belongs; gives the reply once nothing is missing.
    fn place(&mut self, mut element: Reply) -> Option<Reply> {
        loop {
            let Some(open) = self.open.last_mut() else {
                return Some(element);
            };
            open.items.push(element);
            open.missing = open.missing.saturating_sub(1);
            if open.missing > 0 {
                return None;
            }
            let Open { kind, items, .. } = self.open.pop()?;
            element = close(kind, items);
        }
    }

    fn find_line_end(&mut self) -> Result<Option<usize>, ReplyDecodeError> {
        let to = self.buffer.len().min(LINE_BYTES_MAX.saturating_add(1));
        let unseen = self.buffer.get(self.scanned..to).unwrap_or_default();
        let found = unseen.iter().position(|seen| *seen == b'\r');
        #[cfg(test)]
        {
            self.work = self.work.saturating_add(found.unwrap_or(unseen.len()));
        }
        match found {
            Some(offset) => {
                self.scanned = self.scanned.saturating_add(offset);
                Ok(Some(self.scanned))
            }
            None if to > LINE_BYTES_MAX => Err(ReplyDecodeError::LineTooLong { max: LINE_BYTES_MAX }),
            None => {
                self.scanned = to;
                Ok(None)
            }
        }
    }

    /// Takes the first `len` bytes, which are there, and counts them.
    fn take(&mut self, len: usize) -> Result<Bytes, ReplyDecodeError> {
        self.reply_bytes = self.reply_bytes.saturating_add(len);
        if self.reply_bytes > self.reply_bytes_max {
            return Err(ReplyDecodeError::TooLong {
                max: self.reply_bytes_max,
            });
        }
        Ok(self.buffer.split_to(len.min(self.buffer.len())).freeze())
    }

    /// Drops the first `len` bytes, which are there, and counts them. The next [`ReplyDecoder::take`] checks the sum.
    fn skip(&mut self, len: usize) {
        self.reply_bytes = self.reply_bytes.saturating_add(len);
        self.buffer.advance(len.min(self.buffer.len()));
    }

    fn fail(&mut self, error: ReplyDecodeError) {
        self.state = State::Failed(error);
        self.buffer = BytesMut::new();
        self.open = Vec::new();
        self.oversized = false;
    }
}

impl Default for ReplyDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ReplyDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyDecoder")
            .field("state", &self.state)
            .field("depth", &self.open.len())
            .field("buffered", &self.buffer.len())
            .finish_non_exhaustive()
    }
}

/// The aggregate of `kind` with these elements.
fn close(kind: u8, items: Vec<Reply>) -> Reply {
    match kind {
        b'~' => Reply::Set(items),
        b'>' => Reply::Push(items),
        b'%' => {
            let mut pairs = Vec::with_capacity(items.len() / 2);
            let mut items = items.into_iter();
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                pairs.push((key, value));
            }
            Reply::Map(pairs)
        }
        _ => Reply::Array(items),
    }
}

fn parse_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
