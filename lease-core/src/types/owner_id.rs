use std::fmt;

use serde::{Deserialize, Serialize};

use super::SharedBytes;
use super::invalid::{InvalidValue, check_length};
use crate::limits::{OWNER_BYTES_MAX, VALUE_BYTES_MAX};

/// Who asks for a lease. Two workers never share one; a Redis client's lock value is its owner. Any bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "SharedBytes", into = "SharedBytes")]
pub struct OwnerId(SharedBytes);

impl OwnerId {
    /// An owner as `LEASE.*` takes it.
    ///
    /// # Errors
    /// [`InvalidValue::Length`] outside 1 to [`OWNER_BYTES_MAX`] bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        check_length("owner", 1, OWNER_BYTES_MAX, bytes.len())?;
        Ok(Self(SharedBytes::from(bytes)))
    }

    /// A Redis value, which names the owner of a key taken by `SET`: 0 to [`VALUE_BYTES_MAX`] bytes of anything.
    ///
    /// # Errors
    /// [`InvalidValue::Length`] above the limit.
    pub fn redis_value(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        check_length("value", 0, VALUE_BYTES_MAX, bytes.len())?;
        Ok(Self(SharedBytes::from(bytes)))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl TryFrom<SharedBytes> for OwnerId {
    type Error = InvalidValue;
    fn try_from(bytes: SharedBytes) -> Result<Self, InvalidValue> {
        check_length("owner", 0, VALUE_BYTES_MAX, bytes.len())?;
        Ok(Self(bytes))
    }
}

impl From<OwnerId> for SharedBytes {
    fn from(value: OwnerId) -> Self {
        value.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
