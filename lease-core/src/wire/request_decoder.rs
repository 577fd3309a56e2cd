//! Reads requests from a stream of bytes: `*n` of `$len` arguments, or one inline line.
//!
//! A state machine without a socket. It looks at every byte of a line once, at the bytes of an argument never, keeps
//! its place between reads, and never recurses: a request has one level. It leaves to the connection what the
//! commands mean, and to close when it fails.

use std::fmt;

use bytes::buf::Limit;
use bytes::{BufMut as _, Bytes, BytesMut};

use super::decimal::parse_i64;
use super::inline::split_inline;
use super::request::{Request, Spans};
use super::{Access, ProtocolError, RequestLimits};
use crate::limits::{
    BUFFER_KEEP_BYTES, READ_BYTES, UNAUTHENTICATED_ARGUMENTS_MAX, UNAUTHENTICATED_BULK_BYTES_MAX,
};

/// A read of less than this is not worth a system call, in bytes.
const SPACE_BYTES_MIN: usize = READ_BYTES / 4;

/// Turns the bytes of one connection into requests.
///
/// ```
/// use lease_core::wire::{Access, RequestDecoder, RequestLimits};
///
/// let mut decoder = RequestDecoder::new(RequestLimits::default(), Access::Authenticated);
/// decoder.feed(b"*2\r\n$3\r\nGET\r\n$6\r\nlock:a\r\nPI");
/// let request = decoder.next_request()?.ok_or("a whole request is there")?;
/// assert!(request.args().eq([&b"GET"[..], b"lock:a"]));
/// assert!(decoder.next_request()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RequestDecoder {
    /// What was read and not yet given out. It always begins with the request that is being read.
    buffer: BytesMut,
    limits: RequestLimits,
    access: Access,
    state: State,
    /// The arguments read so far, as spans of `buffer`.
    spans: Spans,
    /// Bytes of `buffer` that are understood.
    parsed: usize,
    /// Bytes of `buffer` up to which the line after `parsed` is known not to end.
    scanned: usize,
    /// Whether the memory behind `buffer` has grown above [`BUFFER_KEEP_BYTES`].
    oversized: bool,
    /// Bytes looked at in search of a line's end, and steps taken.
    #[cfg(test)]
    pub(super) work: usize,
}

/// What comes next in the stream.
#[derive(Debug, Clone, Copy)]
enum State {
    /// A request.
    Start,
    /// The length of an argument; so many arguments are missing.
    Length { missing: usize },
    /// The bytes of an argument; so many are missing, this one included.
    Body { missing: usize, len: usize },
    /// Nothing: the stream broke.
    Failed(ProtocolError),
}

/// What one step found.
enum Step {
    Request(Request),
    Onward,
    NeedsBytes,
}

impl RequestDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new(limits: RequestLimits, access: Access) -> Self {
        Self {
            buffer: BytesMut::new(),
            limits,
            access,
            state: State::Start,
            spans: Spans::default(),
            parsed: 0,
            scanned: 0,
            oversized: false,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Takes over what the connection may send from its next request on. Requests that were read already keep theirs,
    /// so a connection without a password answers `AUTH` before it asks for the next request.
    pub const fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    /// Room for one read from a socket; whatever is written there is fed. At most [`READ_BYTES`], or what the current
    /// argument lacks if that room is there already: memory follows what came, never what was announced.
    pub fn space(&mut self) -> Limit<&mut BytesMut> {
        self.make_room(SPACE_BYTES_MIN, READ_BYTES);
        let spare = self.buffer.capacity().saturating_sub(self.buffer.len());
        let lacking = match self.state {
            State::Body { len, .. } => self.parsed.saturating_add(len).saturating_sub(self.buffer.len()),
            State::Start | State::Length { .. } | State::Failed(_) => 0,
        };
        let room = lacking.max(READ_BYTES).min(spare);
        (&mut self.buffer).limit(room)
    }

    /// Takes bytes that were read elsewhere. Ask for the requests after each call: the decoder bounds the request it
    /// reads, and not what its caller heaps up.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len(), bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole request; `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`ProtocolError`] once the stream cannot be read on, and at every later call. The broken request was not
    /// applied; the connection must be closed.
    pub fn next_request(&mut self) -> Result<Option<Request>, ProtocolError> {
        loop {
            match self.step() {
                Ok(Step::Request(request)) => return Ok(Some(request)),
                Ok(Step::Onward) => {}
                Ok(Step::NeedsBytes) => return Ok(None),
                Err(error) => {
                    self.fail(error);
                    return Err(error);
                }
            }
        }
    }

    /// Whether the stream stands between two requests, with nothing read ahead.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Start) && self.buffer.is_empty()
    }

    /// Bytes of the read buffer in use or at hand.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes allocated for spans.
    #[cfg(test)]
    pub(super) fn span_bytes(&self) -> usize {
        self.spans.allocated()
    }

    fn make_room(&mut self, at_least: usize, reserve: usize) {
        if matches!(self.state, State::Failed(_)) {
            // Nothing more will be read; whatever comes replaces what came before.
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

    fn step(&mut self) -> Result<Step, ProtocolError> {
        #[cfg(test)]
        {
            self.work = self.work.saturating_add(1);
        }
        match self.state {
            State::Start => match self.buffer.get(self.parsed) {
                None => Ok(Step::NeedsBytes),
                Some(b'*') => self.read_count(),
                Some(_) => self.read_inline(),
            },
            State::Length { missing } => match self.buffer.get(self.parsed) {
                None => Ok(Step::NeedsBytes),
                Some(b'$') => self.read_length(missing),
                Some(got) => Err(ProtocolError::ExpectedBulk { got: *got }),
            },
            State::Body { missing, len } => self.read_body(missing, len),
            State::Failed(error) => Err(error),
        }
    }

    fn read_count(&mut self) -> Result<Step, ProtocolError> {
        let Some(end) = self.find(b'\r', ProtocolError::TooBigMultibulkCount)? else {
            return Ok(Step::NeedsBytes);
        };
        let Some(next) = self.buffer.get(end.saturating_add(1)) else {
            return Ok(Step::NeedsBytes);
        };
        let count = self
            .number_before(end)
            .filter(|count| *next == b'\n' && *count <= i64::from(i32::MAX))
            .ok_or(ProtocolError::InvalidMultibulkLength)?;
        let count = usize::try_from(count).unwrap_or(0);
        if self.is_tight() && count > UNAUTHENTICATED_ARGUMENTS_MAX {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        if count > self.limits.arguments_max {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        self.begin_after(end);
        if count == 0 {
            // `*0` and `*-1` are no requests: Redis passes over them without an answer.
            self.drop_parsed();
        } else {
            self.state = State::Length { missing: count };
        }
        Ok(Step::Onward)
    }

    fn read_length(&mut self, missing: usize) -> Result<Step, ProtocolError> {
        let Some(end) = self.find(b'\r', ProtocolError::TooBigBulkCount)? else {
            return Ok(Step::NeedsBytes);
        };
        let Some(next) = self.buffer.get(end.saturating_add(1)) else {
            return Ok(Step::NeedsBytes);
        };
        let len = self
            .number_before(end)
            .filter(|_| *next == b'\n')
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if len > self.limits.bulk_bytes_max {
            return Err(ProtocolError::InvalidBulkLength);
        }
        if self.is_tight() && len > UNAUTHENTICATED_BULK_BYTES_MAX {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        self.begin_after(end);
        if self.parsed.saturating_add(len) > self.limits.request_bytes_max {
            return Err(ProtocolError::TooBigRequest);
        }
        self.state = State::Body { missing, len };
        Ok(Step::Onward)
    }

    fn read_body(&mut self, missing: usize, len: usize) -> Result<Step, ProtocolError> {
        let end = self.parsed.saturating_add(len);
        let Some(tail) = self.buffer.get(end..end.saturating_add(2)) else {
            return Ok(Step::NeedsBytes);
        };
        if tail != b"\r\n" {
            return Err(ProtocolError::BulkNotTerminated);
        }
        self.spans.push(self.parsed, len);
        self.begin_after(end);
        let missing = missing.saturating_sub(1);
        if missing > 0 {
            self.state = State::Length { missing };
            return Ok(Step::Onward);
        }
        let spans = std::mem::take(&mut self.spans);
        let bytes = self.drop_parsed();
        Ok(Step::Request(Request::new(bytes, spans)))
    }

    fn read_inline(&mut self) -> Result<Step, ProtocolError> {
        let Some(end) = self.find(b'\n', ProtocolError::TooBigInline)? else {
            return Ok(Step::NeedsBytes);
        };
        let line = self.buffer.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let request = split_inline(line, self.limits.arguments_max)?;
        self.parsed = end.saturating_add(1);
        self.drop_parsed();
        Ok(request.map_or(Step::Onward, Step::Request))
    }

    /// Where the current line has its first `byte`; `None` if it has not come yet.
    fn find(&mut self, byte: u8, too_big: ProtocolError) -> Result<Option<usize>, ProtocolError> {
        let from = self.scanned.max(self.parsed);
        // One byte past the limit, so that the verdict does not depend on how the bytes were cut.
        let line_end_max = self
            .parsed
            .saturating_add(self.limits.inline_bytes_max)
            .saturating_add(1);
        let to = self.buffer.len().min(line_end_max);
        let unseen = self.buffer.get(from..to).unwrap_or_default();
        let found = unseen.iter().position(|seen| *seen == byte);
        #[cfg(test)]
        {
            self.work = self.work.saturating_add(found.unwrap_or(unseen.len()));
        }
        match found {
            Some(offset) => {
                self.scanned = from.saturating_add(offset);
                Ok(Some(self.scanned))
            }
            None if to == line_end_max => Err(too_big),
            None => {
                self.scanned = to;
                Ok(None)
            }
        }
    }

    /// The number between the current line's first byte and `end`.
    fn number_before(&self, end: usize) -> Option<i64> {
        parse_i64(self.buffer.get(self.parsed.saturating_add(1)..end)?)
    }

    /// Goes on behind the two bytes at `end`.
    fn begin_after(&mut self, end: usize) {
        self.parsed = end.saturating_add(2);
        self.scanned = self.parsed;
    }

    /// Takes what is understood out of the buffer, ready for the next request.
    fn drop_parsed(&mut self) -> Bytes {
        let parsed = self.parsed.min(self.buffer.len());
        self.parsed = 0;
        self.scanned = 0;
        self.state = State::Start;
        self.buffer.split_to(parsed).freeze()
    }

    fn fail(&mut self, error: ProtocolError) {
        self.state = State::Failed(error);
        self.buffer = BytesMut::new();
        self.spans = Spans::default();
        self.oversized = false;
    }

    const fn is_tight(&self) -> bool {
        matches!(self.access, Access::Unauthenticated)
    }
}

/// The place in the stream; what was read stays out of logs.
impl fmt::Debug for RequestDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestDecoder")
            .field("state", &self.state)
            .field("access", &self.access)
            .field("buffered", &self.buffer.len())
            .finish_non_exhaustive()
    }
}
