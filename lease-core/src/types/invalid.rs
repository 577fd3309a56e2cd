use thiserror::Error;

/// A value that breaks the rule of its type. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidValue {
    /// A byte string is shorter or longer than its type allows.
    #[error("{what} must have {min} to {max} bytes, this one has {len}")]
    Length {
        /// The type's name as users know it.
        what: &'static str,
        /// Fewest bytes allowed.
        min: usize,
        /// Most bytes allowed.
        max: usize,
        /// Bytes found.
        len: usize,
    },
    /// A number lies outside its type's range.
    #[error("{what} must be {min} to {max}, not {value}")]
    Range {
        /// The type's name as users know it.
        what: &'static str,
        /// Least value allowed.
        min: u64,
        /// Greatest value allowed.
        max: u64,
        /// Value found.
        value: u64,
    },
    /// A text is not a number at all.
    #[error("{what} must be a decimal number")]
    NotANumber {
        /// The type's name as users know it.
        what: &'static str,
    },
}

pub(super) fn check_length(
    what: &'static str,
    min: usize,
    max: usize,
    len: usize,
) -> Result<(), InvalidValue> {
    if (min..=max).contains(&len) {
        Ok(())
    } else {
        Err(InvalidValue::Length { what, min, max, len })
    }
}

pub(super) fn check_range(what: &'static str, min: u64, max: u64, value: u64) -> Result<(), InvalidValue> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(InvalidValue::Range {
            what,
            min,
            max,
            value,
        })
    }
}
