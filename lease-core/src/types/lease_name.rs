use std::fmt;

use serde::{Deserialize, Serialize};

use super::SharedBytes;
use super::invalid::{InvalidValue, check_length};
use crate::limits::{NAME_BYTES_MAX, VALUE_BYTES_MAX};

/// What a lease guards: the name that every contender and the guarded resource agree on. Any bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "SharedBytes", into = "SharedBytes")]
pub struct LeaseName(SharedBytes);

impl LeaseName {
    /// A name as `LEASE.*` takes it.
    ///
    /// # Errors
    /// [`InvalidValue::Length`] outside 1 to [`NAME_BYTES_MAX`] bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        check_length("lease name", 1, NAME_BYTES_MAX, bytes.len())?;
        Ok(Self(SharedBytes::from(bytes)))
    }

    /// A Redis key: 0 to [`VALUE_BYTES_MAX`] bytes of anything, as `SET` takes them.
    ///
    /// # Errors
    /// [`InvalidValue::Length`] above the limit.
    pub fn redis_key(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        check_length("key", 0, VALUE_BYTES_MAX, bytes.len())?;
        Ok(Self(SharedBytes::from(bytes)))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl TryFrom<SharedBytes> for LeaseName {
    type Error = InvalidValue;
    fn try_from(bytes: SharedBytes) -> Result<Self, InvalidValue> {
        check_length("lease name", 0, VALUE_BYTES_MAX, bytes.len())?;
        Ok(Self(bytes))
    }
}

impl From<LeaseName> for SharedBytes {
    fn from(value: LeaseName) -> Self {
        value.0
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
