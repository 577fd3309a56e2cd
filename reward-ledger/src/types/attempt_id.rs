use std::fmt;
use std::sync::Arc;

use super::{InvalidClaim, InvalidField, check_text};
use crate::limits::ATTEMPT_ID_BYTES_MAX;

/// One try to claim one event. A retry of the same try carries the same id and gets the first answer again; a
/// message id is a good one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(Arc<str>);

impl AttemptId {
    /// An attempt id from its text.
    ///
    /// # Errors
    /// [`InvalidField::Length`] outside 1 to [`ATTEMPT_ID_BYTES_MAX`] bytes, [`InvalidField::Character`] for control
    /// characters.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidField> {
        let text = text.as_ref();
        check_text("attempt id", 1, ATTEMPT_ID_BYTES_MAX, text)?;
        Ok(Self(Arc::from(text)))
    }

    /// A fresh one that no other attempt has: 128 random bits as 32 hex digits.
    pub(crate) fn fresh() -> Result<Self, InvalidClaim> {
        let mut bits = [0_u8; 16];
        getrandom::fill(&mut bits).map_err(|_| InvalidClaim::NoRandomness)?;
        Ok(Self(Arc::from(format!("{:032x}", u128::from_be_bytes(bits)))))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for AttemptId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
