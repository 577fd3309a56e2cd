//! The rule by which an id "looks random".

use std::fmt;

/// Shortest run of hex digits, with digits and letters mixed, that looks random, in characters.
const HEX_RUN_MIN: usize = 16;
/// Shortest run of base-62 characters, with digits and letters mixed, that looks random, in characters.
const BASE62_RUN_MIN: usize = 20;
/// Lengths of the five groups of a UUID as text.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Why an id looks random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RandomLook {
    /// It contains a UUID.
    Uuid,
    /// It contains 16 or more hex digits in a row, with digits and letters mixed.
    Hex,
    /// It contains 20 or more base-62 characters in a row, with digits and letters mixed.
    Base62,
}

impl fmt::Display for RandomLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid => f.write_str("a UUID"),
            Self::Hex => write!(f, "{HEX_RUN_MIN} or more hex digits, letters and digits mixed"),
            Self::Base62 => write!(f, "{BASE62_RUN_MIN} or more letters and digits, mixed"),
        }
    }
}

/// What in `text` looks random, if anything does.
pub(super) fn find(text: &str) -> Option<RandomLook> {
    let bytes = text.as_bytes();
    if (0..bytes.len()).any(|at| bytes.get(at..).is_some_and(starts_with_uuid)) {
        Some(RandomLook::Uuid)
    } else if has_mixed_run(bytes, HEX_RUN_MIN, u8::is_ascii_hexdigit) {
        Some(RandomLook::Hex)
    } else if has_mixed_run(bytes, BASE62_RUN_MIN, u8::is_ascii_alphanumeric) {
        Some(RandomLook::Base62)
    } else {
        None
    }
}

fn starts_with_uuid(mut rest: &[u8]) -> bool {
    for (group, &len) in UUID_GROUPS.iter().enumerate() {
        if group > 0 {
            match rest.split_first() {
                Some((b'-', tail)) => rest = tail,
                Some(_) | None => return false,
            }
        }
        match rest.split_at_checked(len) {
            Some((digits, tail)) if digits.iter().all(u8::is_ascii_hexdigit) => rest = tail,
            Some(_) | None => return false,
        }
    }
    true
}

/// Whether some unbroken run of at least `run_min` bytes of the alphabet has both a digit and a letter. It is enough
/// to look at whole runs: if a run is mixed somewhere, some stretch of `run_min` in it is.
fn has_mixed_run(bytes: &[u8], run_min: usize, in_alphabet: fn(&u8) -> bool) -> bool {
    bytes.split(|b| !in_alphabet(b)).any(|run| {
        run.len() >= run_min && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic)
    })
}
