use std::fmt;

use bytes::Bytes;

use crate::types::SharedBytes;

/// Arguments whose spans need no allocation: all of `SET key value NX PX 5000`, and of most others.
const INLINE_SPANS: usize = 8;

/// Where one argument lies within its request.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    len: u32,
}

/// The spans of a request's arguments, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    first: [Span; INLINE_SPANS],
    len: usize,
    more: Vec<Span>,
}

impl Spans {
    /// Adds the span of `len` bytes from `start`; both lie below [`crate::limits::REQUEST_BYTES_MAX`].
    pub(super) fn push(&mut self, start: usize, len: usize) {
        let span = Span {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        match self.first.get_mut(self.len) {
            Some(slot) => *slot = span,
            None => self.more.push(span),
        }
        self.len = self.len.saturating_add(1);
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.more.capacity().saturating_mul(size_of::<Span>())
    }

    fn get(&self, index: usize) -> Option<std::ops::Range<usize>> {
        if index >= self.len {
            return None;
        }
        let span = match self.first.get(index) {
            Some(span) => span,
            None => self.more.get(index.checked_sub(INLINE_SPANS)?)?,
        };
        let start = usize::try_from(span.start).ok()?;
        Some(start..start.checked_add(usize::try_from(span.len).ok()?)?)
    }
}

/// One request: its command and arguments, never empty.
///
/// The arguments are slices of the bytes that were read, so a request holds on to its connection's read buffer: copy
/// what must outlive the answer.
#[derive(Clone)]
pub struct Request {
    bytes: Bytes,
    spans: Spans,
}

impl Request {
    pub(super) const fn new(bytes: Bytes, spans: Spans) -> Self {
        Self { bytes, spans }
    }

    /// The same request in memory of its own, for whoever keeps it beyond its answer.
    #[must_use]
    pub fn copied(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.args().map(<[u8]>::len).fold(0, usize::saturating_add));
        let mut spans = Spans::default();
        for arg in self.args() {
            spans.push(bytes.len(), arg.len());
            bytes.extend_from_slice(arg);
        }
        Self::new(Bytes::from(bytes), spans)
    }

    /// Bytes of all arguments.
    #[must_use]
    pub fn arg_bytes(&self) -> usize {
        self.args().map(<[u8]>::len).fold(0, usize::saturating_add)
    }

    /// The command's name as it was sent; letters of either case.
    #[must_use]
    pub fn command(&self) -> &[u8] {
        self.arg(0).unwrap_or_default()
    }

    /// Number of arguments, the command's name among them.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a request is never empty")]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// The argument at `index`; the command's name is at 0.
    #[must_use]
    pub fn arg(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(self.spans.get(index)?)
    }

    /// The argument at `index`, sharing the request's memory.
    #[must_use]
    pub fn bytes(&self, index: usize) -> Option<Bytes> {
        let span = self.spans.get(index)?;
        (span.end <= self.bytes.len()).then(|| self.bytes.slice(span))
    }

    /// All arguments in order, the command's name first.
    pub fn args(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map_while(|index| self.arg(index))
    }
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.args().eq(other.args())
    }
}

impl Eq for Request {}

/// The command and the number of arguments. Their text stays out of logs: it may be a password.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("command", &SharedBytes::from(self.command()))
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
