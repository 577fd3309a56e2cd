use std::fmt;

use serde::{Deserialize, Serialize};

use super::invalid::{InvalidValue, check_range};
use crate::limits::DATABASES_MAX;

/// A numbered name space, as Redis's `SELECT` knows it: the same name in two databases is two leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Database(u8);

impl Database {
    /// The database that a connection starts in.
    pub const ZERO: Self = Self(0);

    /// A database from its number.
    ///
    /// # Errors
    /// [`InvalidValue::Range`] at [`DATABASES_MAX`] and above.
    pub fn new(number: u64) -> Result<Self, InvalidValue> {
        let last = u64::from(DATABASES_MAX).saturating_sub(1);
        check_range("database", 0, last, number)?;
        let number = u8::try_from(number).map_err(|_| InvalidValue::NotANumber { what: "database" })?;
        Ok(Self(number))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u64> for Database {
    type Error = InvalidValue;
    fn try_from(number: u64) -> Result<Self, InvalidValue> {
        Self::new(number)
    }
}

impl From<Database> for u64 {
    fn from(database: Database) -> Self {
        Self::from(database.0)
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
