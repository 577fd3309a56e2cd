use std::fmt;

use bytes::Bytes;

use crate::types::SharedBytes;

/// Before an operator's words.
const FORCED_PREFIX: &[u8] = b"forced:";

/// Why a lease is over, as clients are told: one word, and behind `forced:` an operator's reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Its time ran out.
    Expired,
    /// Its holder released it.
    Released,
    /// An operator ended it.
    Forced {
        /// Why, in the operator's words; empty if none were given.
        reason: SharedBytes,
    },
    /// Another `SET` took the key over.
    Superseded,
    /// `DEL` ended it, or it ran out after somebody had shortened it.
    Overridden,
    /// Its answer could not be delivered.
    Orphaned,
    /// Its request was given up.
    Cancelled,
    /// Not remembered; also what a newer server says with a word that is not known here.
    Unknown,
}

impl LossReason {
    const fn word(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Released => "released",
            Self::Forced { .. } => "forced",
            Self::Superseded => "superseded",
            Self::Overridden => "overridden",
            Self::Orphaned => "orphaned",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// The text as it is sent.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        if let Self::Forced { reason } = self
            && !reason.is_empty()
        {
            return Bytes::from([FORCED_PREFIX, reason.as_slice()].concat());
        }
        Bytes::from_static(self.word().as_bytes())
    }

    /// The reason that a server gives with this text.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        if let Some(reason) = text.strip_prefix(FORCED_PREFIX) {
            return Self::Forced {
                reason: SharedBytes::from(reason),
            };
        }
        match text {
            b"expired" => Self::Expired,
            b"released" => Self::Released,
            b"forced" => Self::Forced {
                reason: SharedBytes::from(""),
            },
            b"superseded" => Self::Superseded,
            b"overridden" => Self::Overridden,
            b"orphaned" => Self::Orphaned,
            b"cancelled" => Self::Cancelled,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        if let Self::Forced { reason } = self
            && !reason.is_empty()
        {
            write!(f, ": {reason}")?;
        }
        Ok(())
    }
}
