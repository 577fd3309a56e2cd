use std::fmt;
use std::sync::Arc;

use super::{InvalidField, check_text};
use crate::limits::REASON_BYTES_MAX;

/// Why a person did something that the ledger would not have done by itself: 1 to 256 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reason(Arc<str>);

impl Reason {
    /// A reason from its text.
    ///
    /// # Errors
    /// [`InvalidField::Length`] outside 1 to [`REASON_BYTES_MAX`] bytes, [`InvalidField::Character`] for control
    /// characters.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidField> {
        let text = text.as_ref();
        check_text("reason", 1, REASON_BYTES_MAX, text)?;
        Ok(Self(Arc::from(text)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_text(self) -> Arc<str> {
        self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a machine has to say of what it saw, such as an error of an outside server. It is cut to fit, never refused: what
/// others send must not keep a row from being written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Note(Arc<str>);

impl Note {
    /// The text without its control characters, cut to [`REASON_BYTES_MAX`] bytes at a character.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        let mut kept = String::new();
        for character in text
            .as_ref()
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
        {
            if kept.len() + character.len_utf8() > REASON_BYTES_MAX {
                break;
            }
            kept.push(character);
        }
        Self(Arc::from(kept))
    }

    /// The text; empty where there is nothing to say.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
