//! Patterns of `KEYS`, `SCAN` and `PSUBSCRIBE`.

use crate::limits::{PATTERN_BYTES_MAX, PATTERN_TEXT_BYTES_MAX};
use crate::wire::{ErrorReply, ErrorWord};

/// A pattern that a client gives.
///
/// # Errors
/// The reply that refuses one of more than [`PATTERN_BYTES_MAX`].
pub fn read_pattern(text: &[u8]) -> Result<&[u8], ErrorReply> {
    if text.len() > PATTERN_BYTES_MAX {
        let len = text.len();
        return Err(ErrorReply::new(
            ErrorWord::Limit,
            format_args!("a pattern has at most {PATTERN_BYTES_MAX} bytes, this one has {len}"),
        ));
    }
    Ok(text)
}

/// Whether `text` is as `pattern` says: `*` any bytes, `?` one byte, `[a-z]` and `[^a]` one of a class, `\` before a byte
/// that is meant as it is.
///
/// It takes at most `pattern.len() * text.len()` steps: of several `*` only the last is tried again. A text of more than
/// [`PATTERN_TEXT_BYTES_MAX`] fits no pattern with a `*` elsewhere than at its end: then the steps are those of the
/// longer of both, and no such text holds up who compares.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let last = pattern.iter().rposition(|byte| *byte != b'*');
    let before = last.and_then(|last| pattern.get(..last)).unwrap_or_default();
    if text.len() > PATTERN_TEXT_BYTES_MAX && before.contains(&b'*') {
        return false;
    }
    let (mut at, mut rest) = (pattern, text);
    // Behind the last `*`: what is left of the pattern, and of the text where it was tried last.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', behind @ ..] = at {
            if behind.is_empty() {
                return true;
            }
            at = behind;
            again = Some((behind, rest));
            continue;
        }
        match (at.is_empty(), rest.split_first()) {
            (true, None) => return true,
            (false, Some((byte, after))) => {
                let (one, behind) = first(at);
                if one.is(*byte) {
                    (at, rest) = (behind, after);
                    continue;
                }
            }
            _ => {}
        }
        match again {
            Some((behind, tried)) if !tried.is_empty() => {
                let later = tried.get(1..).unwrap_or_default();
                again = Some((behind, later));
                (at, rest) = (behind, later);
            }
            _ => return false,
        }
    }
}

/// What stands for one byte.
enum One<'a> {
    Any,
    Byte(u8),
    Class { members: &'a [u8], inside: Inside },
}

/// Which bytes a class means.
#[derive(PartialEq, Eq)]
enum Inside {
    Members,
    Others,
}

/// The first part of a pattern that is not empty and starts with no `*`, and what is behind it.
fn first(pattern: &[u8]) -> (One<'_>, &[u8]) {
    match pattern {
        [b'?', behind @ ..] => (One::Any, behind),
        [b'\\', byte, behind @ ..] => (One::Byte(*byte), behind),
        [b'[', b'^', class @ ..] => class_of(class, Inside::Others),
        [b'[', class @ ..] => class_of(class, Inside::Members),
        [byte, behind @ ..] => (One::Byte(*byte), behind),
        [] => (One::Any, &[]),
    }
}

/// A class that is never closed goes on to the end of the pattern, as with Redis.
fn class_of(class: &[u8], inside: Inside) -> (One<'_>, &[u8]) {
    let mut end = 0_usize;
    loop {
        match class.get(end..).unwrap_or_default() {
            [] => {
                return (
                    One::Class {
                        members: class,
                        inside,
                    },
                    &[],
                );
            }
            [b'\\', _, _, ..] => end = end.saturating_add(2),
            [b']', behind @ ..] => {
                let members = class.get(..end).unwrap_or_default();
                return (One::Class { members, inside }, behind);
            }
            _ => end = end.saturating_add(1),
        }
    }
}

impl One<'_> {
    fn is(&self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Byte(wanted) => byte == *wanted,
            Self::Class { members, inside } => {
                let among = is_among(members, byte);
                among == (*inside == Inside::Members)
            }
        }
    }
}

fn is_among(mut members: &[u8], byte: u8) -> bool {
    loop {
        members = match members {
            [] => return false,
            [b'\\', member, rest @ ..] => {
                if *member == byte {
                    return true;
                }
                rest
            }
            [low, b'-', high, rest @ ..] => {
                let (low, high) = if low > high { (high, low) } else { (low, high) };
                if (*low..=*high).contains(&byte) {
                    return true;
                }
                rest
            }
            [member, rest @ ..] => {
                if *member == byte {
                    return true;
                }
                rest
            }
        };
    }
}
