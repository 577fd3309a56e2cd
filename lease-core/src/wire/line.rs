use std::fmt;

use bytes::Bytes;

use crate::types::SharedBytes;

/// A text that fits one protocol line: it holds no CR and no LF, so that it can never forge a second reply.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Line(Bytes);

impl Line {
    /// The line of a constant text.
    ///
    /// # Panics
    /// At compile time, when used in a constant: if the text holds CR or LF.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        let bytes = text.as_bytes();
        let mut rest = bytes;
        while let [first, tail @ ..] = rest {
            assert!(*first != b'\r' && *first != b'\n', "a line has no line break");
            rest = tail;
        }
        Self(Bytes::from_static(bytes))
    }

    /// The line of `text`; each CR and LF becomes a space, as in Redis.
    #[must_use]
    pub fn new(text: Bytes) -> Self {
        if !text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return Self(text);
        }
        let clean = text.iter().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => *other,
        });
        Self(clean.collect())
    }

    /// The bytes, without the line's end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::new(Bytes::from(text))
    }
}

/// Printable characters as they are, everything else as `\xNN`.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SharedBytes::from(self.as_bytes()).fmt(f)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&SharedBytes::from(self.as_bytes()), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_inside_becomes_a_space() {
        let line = Line::from("ERR a\r\n+OK\n".to_owned());
        assert_eq!(line.as_bytes(), b"ERR a  +OK ");
    }
}
