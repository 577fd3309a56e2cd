use std::fmt;

/// Who is rewarded. Any 64-bit number; as text in decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(i64);

impl PlayerId {
    /// The player of this number.
    #[must_use]
    pub const fn new(value: i64) -> Self {
        Self(value)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl From<i64> for PlayerId {
    fn from(value: i64) -> Self {
        Self(value)
    }
}

impl fmt::Display for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
