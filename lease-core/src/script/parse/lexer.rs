//! The words of a Lua 5.1 text.

use super::error::LoadError;
use crate::script::number;

/// One word, with the line on which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) line: u32,
}

/// What a word is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(Vec<u8>),
    Number(f64),
    /// A keyword or a symbol.
    Word(&'static str),
    End,
}

const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Longer ones first, so that `..` is not read as two dots.
const SYMBOLS: [&str; 26] = [
    "...", "..", "==", "~=", "<=", ">=", "+", "-", "*", "/", "%", "^", "#", "<", ">", "=", "(", ")", "{",
    "}", "[", "]", ";", ":", ",", ".",
];

/// The words of a text, the end among them.
///
/// # Errors
/// [`LoadError::Syntax`] with its line.
pub(super) fn words(text: &[u8]) -> Result<Vec<Lexeme>, LoadError> {
    let mut lexer = Lexer { rest: text, line: 1 };
    if text.starts_with(b"#") {
        return Err(LoadError::unsupported("a line that starts with '#'", 1));
    }
    let mut words = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let line = lexer.line;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        words.push(Lexeme { token, line });
        if is_end {
            return Ok(words);
        }
    }
}

struct Lexer<'a> {
    rest: &'a [u8],
    line: u32,
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.rest.get(ahead).copied()
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        let lines = passed.iter().filter(|byte| **byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
    }

    /// Takes the bytes at the start of the rest that satisfy `is_part`.
    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest;
        let end = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
        self.advance(end);
        rest.get(..end).unwrap_or_default()
    }

    fn syntax(&self, what: impl Into<String>) -> LoadError {
        LoadError::Syntax {
            what: what.into(),
            line: self.line,
        }
    }

    fn skip_blanks(&mut self) -> Result<(), LoadError> {
        loop {
            self.take_while(|byte| byte.is_ascii_whitespace() || byte == 0x0B);
            if !self.rest.starts_with(b"--") {
                return Ok(());
            }
            self.advance(2);
            if let Some(level) = self.long_bracket() {
                self.long_text(level)?;
            } else {
                self.take_while(|byte| byte != b'\n');
            }
        }
    }

    /// How many `=` stand in the opening long bracket that comes next, if one does.
    fn long_bracket(&self) -> Option<usize> {
        let after = self.rest.strip_prefix(b"[")?;
        let level = after.iter().take_while(|byte| **byte == b'=').count();
        (after.get(level) == Some(&b'[')).then_some(level)
    }

    fn long_text(&mut self, level: usize) -> Result<Vec<u8>, LoadError> {
        let began = self.line;
        self.advance(level.saturating_add(2));
        if self.peek(0) == Some(b'\r') {
            self.advance(1);
        }
        if self.peek(0) == Some(b'\n') {
            self.advance(1);
        }
        let mut closing = vec![b'='; level.saturating_add(2)];
        if let Some(first) = closing.first_mut() {
            *first = b']';
        }
        if let Some(last) = closing.last_mut() {
            *last = b']';
        }
        let end = self
            .rest
            .windows(closing.len())
            .position(|window| window == closing);
        let Some(end) = end else {
            return Err(LoadError::Syntax {
                what: "unfinished long string or comment".to_owned(),
                line: began,
            });
        };
        let text = self.rest.get(..end).unwrap_or_default().to_vec();
        self.advance(end.saturating_add(closing.len()));
        Ok(text)
    }

    fn token(&mut self) -> Result<Token, LoadError> {
        let Some(first) = self.peek(0) else {
            return Ok(Token::End);
        };
        if first.is_ascii_alphabetic() || first == b'_' {
            return Ok(self.name());
        }
        let is_number = first.is_ascii_digit()
            || (first == b'.' && self.peek(1).is_some_and(|byte| byte.is_ascii_digit()));
        if is_number {
            return self.number();
        }
        if matches!(first, b'"' | b'\'') {
            return self.quoted(first);
        }
        if let Some(level) = self.long_bracket() {
            return Ok(Token::Text(self.long_text(level)?));
        }
        let symbol = SYMBOLS
            .iter()
            .find(|symbol| self.rest.starts_with(symbol.as_bytes()));
        let Some(symbol) = symbol else {
            let shown = [first].escape_ascii().to_string();
            return Err(self.syntax(format!("unexpected symbol near '{shown}'")));
        };
        self.advance(symbol.len());
        Ok(Token::Word(symbol))
    }

    fn name(&mut self) -> Token {
        let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let keyword = KEYWORDS.iter().find(|keyword| keyword.as_bytes() == name);
        keyword.map_or_else(
            || Token::Name(String::from_utf8_lossy(name).into_owned()),
            |keyword| Token::Word(keyword),
        )
    }

    /// As Lua reads one: digits and dots, a signed exponent, and whatever letters follow must fit.
    fn number(&mut self) -> Result<Token, LoadError> {
        let start = self.rest;
        self.take_while(|byte| byte.is_ascii_digit() || byte == b'.');
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            self.advance(1);
            if matches!(self.peek(0), Some(b'+' | b'-')) {
                self.advance(1);
            }
        }
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let len = start.len().saturating_sub(self.rest.len());
        let text = start.get(..len).unwrap_or_default();
        number::read(text).map(Token::Number).ok_or_else(|| {
            let shown = text.escape_ascii().to_string();
            self.syntax(format!("malformed number near '{shown}'"))
        })
    }

    fn quoted(&mut self, quote: u8) -> Result<Token, LoadError> {
        self.advance(1);
        let mut text = Vec::new();
        loop {
            text.extend_from_slice(
                self.take_while(|byte| byte != quote && !matches!(byte, b'\\' | b'\n' | b'\r')),
            );
            match self.peek(0) {
                Some(byte) if byte == quote => {
                    self.advance(1);
                    return Ok(Token::Text(text));
                }
                Some(b'\\') => {
                    self.advance(1);
                    text.push(self.escaped()?);
                }
                _ => return Err(self.syntax("unfinished string")),
            }
        }
    }

    /// The byte that an escape stands for; one without a meaning stands for itself.
    fn escaped(&mut self) -> Result<u8, LoadError> {
        let Some(first) = self.peek(0) else {
            return Err(self.syntax("unfinished string"));
        };
        if first.is_ascii_digit() {
            let mut value = 0_u32;
            for _ in 0..3 {
                let Some(digit) = self.peek(0).filter(u8::is_ascii_digit) else {
                    break;
                };
                value = value
                    .saturating_mul(10)
                    .saturating_add(u32::from(digit.wrapping_sub(b'0')));
                self.advance(1);
            }
            return u8::try_from(value).map_err(|_| self.syntax("escape sequence too large"));
        }
        self.advance(1);
        if first == b'\r' && self.peek(0) == Some(b'\n') {
            self.advance(1);
        }
        Ok(match first {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' | b'\r' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0B,
            other => other,
        })
    }
}
