use crate::machine::LeaseKey;
use crate::types::{Database, LeaseName, OwnerId, Ttl};
use crate::wire::{ErrorReply, ErrorWord};

/// What surrounds a command.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// The database that is selected.
    pub database: Database,
    /// Longest key or value, in bytes.
    pub value_bytes_max: usize,
    /// What the wall clock of the serving node shows, in milliseconds since 1970; `None` where there is none, as in a
    /// script: then a time of the wall clock is refused.
    pub wall_ms: Option<i64>,
}

/// A point of time as a command gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// From now on.
    In(Ttl),
    /// It has passed.
    Over,
}

impl Context {
    /// A key in this database.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub fn key(&self, bytes: &[u8]) -> Result<LeaseKey, ErrorReply> {
        self.check("key", bytes)?;
        let name = LeaseName::redis_key(bytes).map_err(|error| ErrorReply::new(ErrorWord::Limit, error))?;
        Ok(LeaseKey::new(self.database, name))
    }

    /// Keys in this database.
    ///
    /// # Errors
    /// The reply that refuses the first that is refused.
    pub fn keys(&self, all: &[&[u8]]) -> Result<Vec<LeaseKey>, ErrorReply> {
        all.iter().map(|bytes| self.key(bytes)).collect()
    }

    pub(super) fn value(&self, bytes: &[u8]) -> Result<OwnerId, ErrorReply> {
        self.check("value", bytes)?;
        OwnerId::redis_value(bytes).map_err(|error| ErrorReply::new(ErrorWord::Limit, error))
    }

    pub(super) fn check(&self, what: &str, bytes: &[u8]) -> Result<(), ErrorReply> {
        let (max, len) = (self.value_bytes_max, bytes.len());
        if len > max {
            let text = format!("a {what} has at most {max} bytes here (--max-value), this one has {len}");
            return Err(ErrorReply::new(ErrorWord::Limit, text));
        }
        Ok(())
    }

    /// A time of the wall clock, in milliseconds since 1970, becomes one from now on: the log knows no wall clock.
    pub(super) fn counted_from_now(&self, at_ms: i64) -> Result<When, ErrorReply> {
        let Some(wall_ms) = self.wall_ms else {
            let text = "a time of the wall clock cannot be given here: give one from now on";
            return Err(ErrorReply::new(ErrorWord::Err, text));
        };
        Ok(relative(at_ms.saturating_sub(wall_ms)))
    }
}

/// So many milliseconds from now on.
pub(super) fn relative(millis: i64) -> When {
    let millis = u64::try_from(millis).unwrap_or(0);
    Ttl::from_millis(millis).map_or(When::Over, When::In)
}

/// A number as Redis reads one: in the one form in which it would be written.
///
/// # Errors
/// The reply that refuses it.
pub fn read_integer(number: &[u8]) -> Result<i64, ErrorReply> {
    let read: Option<i64> = std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok());
    read.filter(|read| read.to_string().as_bytes() == number)
        .ok_or_else(|| ErrorReply::new(ErrorWord::Err, "value is not an integer or out of range"))
}

/// Redis's text for options that do not fit.
#[must_use]
pub fn syntax_error() -> ErrorReply {
    ErrorReply::new(ErrorWord::Err, "syntax error")
}

/// The error for a time that cannot be.
pub(super) fn invalid_expire(command: &str) -> ErrorReply {
    ErrorReply::new(
        ErrorWord::Err,
        format_args!("invalid expire time in '{command}' command"),
    )
}

/// A digest as `DIGEST` writes it.
pub(super) fn read_digest(text: &[u8]) -> Result<u64, ErrorReply> {
    const DIGITS: usize = 16;
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == DIGITS);
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| ErrorReply::new(ErrorWord::Err, "must be exactly 16 hexadecimal characters"))
}
