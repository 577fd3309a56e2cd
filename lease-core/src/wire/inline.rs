//! Splits an inline request into its arguments, with Redis's quotes.
//!
//! Source: `sdssplitargs` of Redis, by behaviour.

use bytes::Bytes;

use super::ProtocolError;
use super::request::{Request, Spans};

/// The request of one line without its end; `None` if the line holds no argument.
pub(super) fn split_inline(line: &[u8], arguments_max: usize) -> Result<Option<Request>, ProtocolError> {
    if line.contains(&0) {
        return Err(ProtocolError::ZeroByteInline);
    }
    // Unquoting only ever shortens, so this never grows.
    let mut arena = Vec::with_capacity(line.len());
    let mut spans = Spans::default();
    let mut rest = skip_spaces(line);
    while !rest.is_empty() {
        if spans.len() == arguments_max {
            return Err(ProtocolError::TooManyInlineArguments);
        }
        let start = arena.len();
        rest = skip_spaces(read_argument(rest, &mut arena)?);
        spans.push(start, arena.len().saturating_sub(start));
    }
    Ok((spans.len() > 0).then(|| Request::new(Bytes::from(arena), spans)))
}

/// Reads one argument from the start of `rest`, and gives what follows it.
fn read_argument<'a>(mut rest: &'a [u8], arena: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Ok(rest),
            [b'"', quoted @ ..] => return read_double_quoted(quoted, arena),
            [b'\'', quoted @ ..] => return read_single_quoted(quoted, arena),
            [byte, after @ ..] => {
                arena.push(*byte);
                after
            }
        };
    }
}

fn read_double_quoted<'a>(mut rest: &'a [u8], arena: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', after @ ..] => return after_quote(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                arena.push(hex_value(*high) << 4 | hex_value(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                arena.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                arena.push(*byte);
                after
            }
        };
    }
}

fn read_single_quoted<'a>(mut rest: &'a [u8], arena: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', after @ ..] => return after_quote(after),
            [b'\\', b'\'', after @ ..] => {
                arena.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                arena.push(*byte);
                after
            }
        };
    }
}

/// A closing quote is followed by a space or by nothing.
fn after_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest {
        [] => Ok(rest),
        [next, ..] if is_space(*next) => Ok(rest),
        _ => Err(ProtocolError::UnbalancedQuotes),
    }
}

const fn is_space(byte: u8) -> bool {
    // C's isspace: unlike is_ascii_whitespace it knows the vertical tab.
    matches!(byte, b' ' | b'\t'..=b'\r')
}

const fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit.wrapping_sub(b'0'),
        b'a'..=b'f' => digit.wrapping_sub(b'a').wrapping_add(10),
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    text.get(spaces..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let request = split_inline(line, 16)?;
        Ok(request
            .map(|request| request.args().map(<[u8]>::to_vec).collect())
            .unwrap_or_default())
    }

    #[test]
    fn words_quotes_and_escapes_are_split_as_redis_does() {
        let table: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b" \t\x0b\x0c ", &[]),
            (b"PING", &[b"PING"]),
            (b"  SET  a\tb  ", &[b"SET", b"a", b"b"]),
            (b"\"\"", &[b""]),
            (b"''  x", &[b"", b"x"]),
            (b"a\"b c\"", &[b"ab c"]),
            (br#""a\x41\xfF\n\r\t\b\a\"\\\q""#, &[b"aA\xff\n\r\t\x08\x07\"\\q"]),
            (br#""\x4""#, &[b"x4"]),
            (br#""\xzz""#, &[b"xzz"]),
            (br"'a\'b\n\x41'", &[b"a'b\\n\\x41"]),
            (br"a\x41", &[b"a\\x41"]),
            (b"a\x0bb c", &[b"a\x0bb", b"c"]),
            (b"\"a\"\x0bb", &[b"a", b"b"]),
        ];
        for (line, expected) in table {
            assert_eq!(split(line).unwrap(), *expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn an_open_quote_or_one_that_is_glued_to_a_word_is_unbalanced() {
        for line in [
            r#"set """a""" b"#,
            r#"""#,
            "'",
            r#""a"b"#,
            "'a'b",
            r#""a\"#,
            r#""a\""#,
            r"'a\'",
        ] {
            assert_eq!(
                split(line.as_bytes()),
                Err(ProtocolError::UnbalancedQuotes),
                "{line}"
            );
        }
    }

    #[test]
    fn zero_bytes_and_too_many_words_are_refused() {
        assert_eq!(split(b"a\0b"), Err(ProtocolError::ZeroByteInline));
        assert_eq!(split(&b"a ".repeat(16)).unwrap().len(), 16);
        assert_eq!(
            split(&b"a ".repeat(17)),
            Err(ProtocolError::TooManyInlineArguments)
        );
    }
}
