use std::fmt;

use serde::{Deserialize, Serialize};

use super::SharedBytes;
use super::invalid::{InvalidValue, check_length};
use crate::limits::REQUEST_ID_BYTES_MAX;

/// Names one attempt to acquire, so that its retry after a lost answer gets the same token. Scoped by database, name and owner. Any bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "SharedBytes", into = "SharedBytes")]
pub struct RequestId(SharedBytes);

impl RequestId {
    /// A request id.
    ///
    /// # Errors
    /// [`InvalidValue::Length`] outside 1 to [`REQUEST_ID_BYTES_MAX`] bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        check_length("request id", 1, REQUEST_ID_BYTES_MAX, bytes.len())?;
        Ok(Self(SharedBytes::from(bytes)))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl TryFrom<SharedBytes> for RequestId {
    type Error = InvalidValue;
    fn try_from(bytes: SharedBytes) -> Result<Self, InvalidValue> {
        check_length("request id", 1, REQUEST_ID_BYTES_MAX, bytes.len())?;
        Ok(Self(bytes))
    }
}

impl From<RequestId> for SharedBytes {
    fn from(value: RequestId) -> Self {
        value.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
