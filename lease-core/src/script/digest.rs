use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of a SHA1 digest.
const DIGEST_BYTES: usize = 20;

/// The name of a script: the SHA1 of its text, as Redis has it. Whoever loads a script computes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScriptDigest([u8; DIGEST_BYTES]);

impl ScriptDigest {
    /// A digest from its bytes.
    #[must_use]
    pub const fn new(bytes: [u8; DIGEST_BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads 40 hexadecimal digits of either case; `None` for anything else, which names no script.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        let (pairs, rest) = text.as_chunks::<2>();
        if pairs.len() != DIGEST_BYTES || !rest.is_empty() {
            return None;
        }
        let mut bytes = [0; DIGEST_BYTES];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (digit(*high)? << 4) | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ScriptDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ScriptDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
