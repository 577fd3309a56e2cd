//! Strict decimal numbers, as Redis reads them: no `+`, no spaces, no leading zeros, no `-0`.

use bytes::{BufMut, BytesMut};

/// Digits of the longest number, 2^64 - 1.
const DIGITS_MAX: usize = 20;

/// Reads a signed number; `None` unless the whole text is one in its only spelling.
pub(super) fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', b'0', ..] => None,
        [b'-', digits @ ..] => 0_i64.checked_sub_unsigned(parse_u64(digits)?),
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Reads an unsigned number; `None` unless the whole text is one in its only spelling.
pub(super) fn parse_u64(text: &[u8]) -> Option<u64> {
    match text {
        [] | [b'0', _, ..] => None,
        digits => digits.iter().try_fold(0_u64, |value, byte| {
            let digit = u64::from(byte.wrapping_sub(b'0'));
            if digit > 9 {
                return None;
            }
            value.checked_mul(10)?.checked_add(digit)
        }),
    }
}

/// Appends a number without allocating.
pub(super) fn write_u64(value: u64, out: &mut BytesMut) {
    let mut digits = [b'0'; DIGITS_MAX];
    let mut rest = value;
    let mut first = DIGITS_MAX;
    for slot in digits.iter_mut().rev() {
        *slot = b'0'.wrapping_add(u8::try_from(rest % 10).unwrap_or_default());
        rest /= 10;
        first = first.saturating_sub(1);
        if rest == 0 {
            break;
        }
    }
    out.put_slice(digits.get(first..).unwrap_or_default());
}

/// Appends a number without allocating.
pub(super) fn write_i64(value: i64, out: &mut BytesMut) {
    if value < 0 {
        out.put_u8(b'-');
    }
    write_u64(value.unsigned_abs(), out);
}

/// Appends `kind`, a count or length, and the end of the line.
pub(super) fn write_header(kind: u8, count: usize, out: &mut BytesMut) {
    out.put_u8(kind);
    write_u64(u64::try_from(count).unwrap_or(u64::MAX), out);
    out.put_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_one_spelling_of_a_number_is_read() {
        for (text, value) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-7", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999999", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
            ("0x1", None),
            ("1e3", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), value, "{text:?}");
        }
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"-1"), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(value: i64, unsigned: u64) {
            let mut out = BytesMut::new();
            write_i64(value, &mut out);
            prop_assert_eq!(out.to_vec(), value.to_string().into_bytes());
            prop_assert_eq!(parse_i64(&out), Some(value));
            out.clear();
            write_u64(unsigned, &mut out);
            prop_assert_eq!(out.to_vec(), unsigned.to_string().into_bytes());
            prop_assert_eq!(parse_u64(&out), Some(unsigned));
        }
    }
}
