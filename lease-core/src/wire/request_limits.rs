use crate::limits::{
    BULK_SLACK_BYTES, INLINE_BYTES_MAX, REQUEST_ARGUMENTS_MAX, REQUEST_BYTES_MAX, VALUE_BYTES_DEFAULT,
    VALUE_BYTES_MAX,
};

/// Whether a connection has shown its password. Before that it may send little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A password is asked for and not shown yet.
    Unauthenticated,
    /// The password was shown, or none is asked for.
    Authenticated,
}

/// What one connection may send. Before `AUTH` the tighter bounds of [`crate::limits`] hold as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    pub(super) arguments_max: usize,
    pub(super) bulk_bytes_max: usize,
    pub(super) inline_bytes_max: usize,
    pub(super) request_bytes_max: usize,
}

impl RequestLimits {
    /// Bounds for a server that stores values of at most `value_bytes_max` bytes.
    ///
    /// An argument may be a little longer, so that the refusal can name the rule, and a whole request holds four such
    /// values and a megabyte of small ones.
    #[must_use]
    pub const fn for_values(value_bytes_max: usize) -> Self {
        let value_bytes_max = if value_bytes_max > VALUE_BYTES_MAX {
            VALUE_BYTES_MAX
        } else {
            value_bytes_max
        };
        let bulk_bytes_max = value_bytes_max.saturating_add(BULK_SLACK_BYTES);
        Self {
            arguments_max: REQUEST_ARGUMENTS_MAX,
            bulk_bytes_max,
            inline_bytes_max: INLINE_BYTES_MAX,
            request_bytes_max: REQUEST_BYTES_MAX,
        }
        .request_bytes_max(bulk_bytes_max.saturating_mul(4).saturating_add(1_024 * 1_024))
    }

    /// Arguments of one request at the most. Too small: large renewals of many are refused and their connections
    /// closed. Too large: one request takes the table of its spans, 8 bytes each.
    #[must_use]
    pub const fn arguments_max(mut self, count: usize) -> Self {
        self.arguments_max = count;
        self
    }

    /// Longest argument, in bytes.
    #[must_use]
    pub const fn bulk_bytes_max(mut self, bytes: usize) -> Self {
        self.bulk_bytes_max = bytes;
        self
    }

    /// Longest inline request, and longest line with a count or length, in bytes. At most Redis's 64 KiB.
    #[must_use]
    pub const fn inline_bytes_max(mut self, bytes: usize) -> Self {
        self.inline_bytes_max = if bytes > INLINE_BYTES_MAX {
            INLINE_BYTES_MAX
        } else {
            bytes
        };
        self
    }

    /// Longest request with its framing, in bytes; at most [`REQUEST_BYTES_MAX`]. This bounds a connection's memory:
    /// its buffer stays below about twice this.
    #[must_use]
    pub const fn request_bytes_max(mut self, bytes: usize) -> Self {
        self.request_bytes_max = if bytes > REQUEST_BYTES_MAX {
            REQUEST_BYTES_MAX
        } else {
            bytes
        };
        self
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self::for_values(VALUE_BYTES_DEFAULT)
    }
}
