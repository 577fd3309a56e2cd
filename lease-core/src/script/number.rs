//! Lua's numbers: IEEE doubles, with the arithmetic that every machine does alike, and their texts.
//!
//! Addition, subtraction, multiplication, division and rounding to a whole number are exact in their definition, so
//! replicas agree. Powers and other functions of a mathematics library are not, and are not here. No number is ever
//! stored: only texts that are made of them, and no text shows the sign of what is no number.

#![expect(
    clippy::float_arithmetic,
    reason = "the operations of IEEE 754 that are defined to the last bit"
)]

/// Digits of a number's text, as Lua's `%.14g`.
const SHOWN_DIGITS: usize = 14;
/// Digits of a number that is an argument of a command, as Redis's `%.17g`.
const ARGUMENT_DIGITS: usize = 17;

/// What two numbers are joined by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

pub(super) fn calculate(how: Arithmetic, left: f64, right: f64) -> f64 {
    match how {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Modulo => left - (left / right).floor() * right,
    }
}

pub(super) fn negate(number: f64) -> f64 {
    -number
}

/// The number that a text spells, as Lua's `tonumber`: blanks around it, decimal with an exponent, or hexadecimal.
///
/// A C library reads more than Lua's manual promises (`inf`, `nan`, hexadecimal fractions): those are no numbers here.
pub(super) fn read(text: &[u8]) -> Option<f64> {
    let (is_negative, digits) = split_sign(trimmed(text));
    let number = match digits {
        [b'0', b'x' | b'X', digits @ ..] => read_hexadecimal(digits)?,
        [b'0'..=b'9' | b'.', ..] => read_decimal(digits)?,
        _ => return None,
    };
    Some(if is_negative { -number } else { number })
}

/// A base in which [`read_in_base`] reads.
pub(super) fn base(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|base| (2..=36).contains(base))
}

/// The whole number that a text spells in a base of 2 to 36: blanks around it, and `0x` in front in base 16. A number
/// below zero counts back from 2^64, and one that is too large is 2^64.
///
/// Source: Lua 5.1's `tonumber` with a base, which is C's `strtoul` of 64 bits.
pub(super) fn read_in_base(text: &[u8], base: u32) -> Option<f64> {
    // To C a text ends at its first zero byte.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (is_negative, digits) = split_sign(trimmed(text));
    let digits = match digits {
        [b'0', b'x' | b'X', digits @ ..] if base == 16 => digits,
        digits => digits,
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = Some(0_u64);
    for digit in digits {
        let digit = char::from(*digit).to_digit(base)?;
        number = number.and_then(|number| {
            let moved = number.checked_mul(u64::from(base))?;
            moved.checked_add(u64::from(digit))
        });
    }
    Some(from_unsigned(match number {
        None => u64::MAX,
        Some(number) if is_negative => number.wrapping_neg(),
        Some(number) => number,
    }))
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    }
}

fn read_decimal(digits: &[u8]) -> Option<f64> {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !digits.iter().all(is_part) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn read_hexadecimal(digits: &[u8]) -> Option<f64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0.0, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number * 16.0 + f64::from(digit))
    })
}

fn trimmed(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let Some(start) = text.iter().position(|byte| !is_blank(byte)) else {
        return &[];
    };
    let end = text
        .iter()
        .rposition(|byte| !is_blank(byte))
        .map_or(0, |last| last.saturating_add(1));
    text.get(start..end).unwrap_or_default()
}

/// A number as Lua shows it.
pub(super) fn shown(number: f64) -> String {
    general(number, SHOWN_DIGITS)
}

/// A number as Redis hands it to a command.
pub(super) fn argument(number: f64) -> String {
    general(number, ARGUMENT_DIGITS)
}

/// C's `%.{digits}g`.
fn general(number: f64, digits: usize) -> String {
    if number.is_nan() {
        // Which sign a machine gives to 0/0 must not show: this is the one that Redis shows on most.
        return "-nan".to_owned();
    }
    if number.is_infinite() {
        return (if number > 0.0 { "inf" } else { "-inf" }).to_owned();
    }
    let last = digits.saturating_sub(1);
    let scientific = format!("{number:.last$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let plain_below = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= plain_below {
        let mantissa = without_trailing_zeros(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let decimals = usize::try_from(plain_below.saturating_sub(1).saturating_sub(exponent)).unwrap_or(0);
    without_trailing_zeros(&format!("{number:.decimals$}")).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// A number as a reply: cut off towards zero. What no 64-bit integer holds is the least one, as Redis shows it on the
/// machines that it mostly runs on.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn integer(number: f64) -> i64 {
    // 2^63, the first number that is too large.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// A reply's integer as a number.
#[expect(
    clippy::cast_precision_loss,
    reason = "Lua has no other numbers: Redis loses the same digits"
)]
pub(super) const fn from_integer(integer: i64) -> f64 {
    integer as f64
}

#[expect(clippy::cast_precision_loss, reason = "Lua has no other numbers")]
const fn from_unsigned(number: u64) -> f64 {
    number as f64
}

/// A count as a number: exact, since all counts here are small.
pub(super) fn from_count(count: usize) -> f64 {
    from_integer(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The place of an array that a number names: 1 is the first.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range and the fraction are checked"
)]
pub(super) fn place(number: f64) -> Option<usize> {
    (number >= 1.0 && number < f64::from(u32::MAX) && number.fract() == 0.0).then_some(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_c_shows_them() {
        for (number, lua, argument_text) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.0, "1", "1"),
            (-7.5, "-7.5", "-7.5"),
            (0.1, "0.1", "0.10000000000000001"),
            (3.3, "3.3", "3.2999999999999998"),
            (1e14, "1e+14", "100000000000000"),
            (99_999_999_999_999.0, "99999999999999", "99999999999999"),
            (1e15, "1e+15", "1000000000000000"),
            (1e17, "1e+17", "1e+17"),
            (
                123_456_789_012_345_680.0,
                "1.2345678901235e+17",
                "1.2345678901234568e+17",
            ),
            (0.0001, "0.0001", "0.0001"),
            (0.000_01, "1e-05", "1.0000000000000001e-05"),
            (1e300, "1e+300", "1.0000000000000001e+300"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
            (f64::NAN, "-nan", "-nan"),
            (-f64::NAN, "-nan", "-nan"),
        ] {
            assert_eq!(shown(number), lua, "{number:e}");
            assert_eq!(argument(number), argument_text, "{number:e}");
        }
    }

    #[test]
    fn texts_are_read_as_lua_reads_them() {
        for (text, number) in [
            ("10", Some(10.0)),
            (" 5 ", Some(5.0)),
            ("\t-5\n", Some(-5.0)),
            ("+5", Some(5.0)),
            ("1e2", Some(100.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x1F", Some(31.0)),
            ("-0x10", Some(-16.0)),
            ("", None),
            (" ", None),
            ("x", None),
            ("1 2", None),
            ("1e", None),
            ("0x", None),
            ("inf", None),
            ("nan", None),
            ("--5", None),
            ("1-2", None),
        ] {
            assert_eq!(read(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn whole_numbers_are_read_in_a_base_as_c_reads_them() {
        for (text, base, number) in [
            ("10", 16, Some(16.0)),
            ("ff", 16, Some(255.0)),
            (" -0xFf\t", 16, Some(18_446_744_073_709_551_361.0)),
            ("0x", 16, None),
            ("0x10", 2, None),
            ("x10", 16, None),
            ("101", 2, Some(5.0)),
            ("102", 2, None),
            ("zZ", 36, Some(1_295.0)),
            ("7.5", 8, None),
            ("1e2", 8, None),
            ("", 8, None),
            (" ", 8, None),
            ("- 5", 8, None),
            ("12 3", 8, None),
            ("10\0zz", 16, Some(16.0)),
            ("ffffffffffffffffff", 16, Some(18_446_744_073_709_551_616.0)),
            ("-ffffffffffffffffff", 16, Some(18_446_744_073_709_551_616.0)),
        ] {
            assert_eq!(read_in_base(text.as_bytes(), base), number, "{text:?} in {base}");
        }
        assert_eq!(
            [1, 2, 36, 37, -16].map(base),
            [None, Some(2), Some(36), None, None]
        );
    }

    #[test]
    fn replies_are_cut_off_towards_zero() {
        assert_eq!(integer(3.99), 3);
        assert_eq!(integer(-3.99), -3);
        assert_eq!(integer(1e300), i64::MIN);
        assert_eq!(integer(f64::NAN), i64::MIN);
        assert_eq!(integer(9_223_372_036_854_774_784.0), 9_223_372_036_854_774_784);
    }
}
