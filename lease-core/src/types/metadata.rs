use std::fmt;

use serde::{Deserialize, Serialize};

use super::SharedBytes;
use super::invalid::{InvalidValue, check_length};
use crate::limits::METADATA_BYTES_MAX;

/// What a holder wants others to see beside its lease (a host, a build, a trace id). Any bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "SharedBytes", into = "SharedBytes")]
pub struct Metadata(SharedBytes);

impl Metadata {
    /// Metadata of a lease.
    ///
    /// # Errors
    /// [`InvalidValue::Length`] outside 0 to [`METADATA_BYTES_MAX`] bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        check_length("metadata", 0, METADATA_BYTES_MAX, bytes.len())?;
        Ok(Self(SharedBytes::from(bytes)))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl TryFrom<SharedBytes> for Metadata {
    type Error = InvalidValue;
    fn try_from(bytes: SharedBytes) -> Result<Self, InvalidValue> {
        check_length("metadata", 0, METADATA_BYTES_MAX, bytes.len())?;
        Ok(Self(bytes))
    }
}

impl From<Metadata> for SharedBytes {
    fn from(value: Metadata) -> Self {
        value.0
    }
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
