use std::fmt;

use super::InvalidField;

/// How much is granted, in units of the item: 1 to 2^63 - 1. Taking something back is another event, never a
/// negative amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// An amount from its number.
    ///
    /// # Errors
    /// [`InvalidField::NotPositive`] for 0 and below.
    pub const fn new(value: i64) -> Result<Self, InvalidField> {
        if value > 0 {
            Ok(Self(value))
        } else {
            Err(InvalidField::NotPositive {
                what: "amount",
                value,
            })
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for Amount {
    type Error = InvalidField;
    fn try_from(value: i64) -> Result<Self, InvalidField> {
        Self::new(value)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
