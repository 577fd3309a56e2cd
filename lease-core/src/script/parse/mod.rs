//! Reads a Lua text into a checked [`Program`], or says which construct is not served, and where.
//!
//! Recursive descent over the grammar of Lua 5.1, in a bounded depth. A construct outside the subset is refused here and
//! never misread: what is taken means what it means in Redis.

mod error;
mod expression;
mod lexer;
mod scope;
mod statement;

pub use error::LoadError;

use self::lexer::{Lexeme, Token, words};
use self::scope::Scopes;
use super::program::{Block, Function, Program};
use crate::limits::{PROGRAM_BYTES_MAX, SCRIPT_DEPTH_MAX, SCRIPT_FUNCTIONS_MAX, SCRIPT_TEXT_BYTES_MAX};

impl Program {
    /// Reads a script.
    ///
    /// # Errors
    /// [`LoadError`] names what is wrong or not served, and the line.
    pub fn parse(text: &[u8]) -> Result<Self, LoadError> {
        if text.len() > SCRIPT_TEXT_BYTES_MAX {
            return Err(LoadError::TooLarge {
                what: "bytes of text",
                found: text.len(),
                max: SCRIPT_TEXT_BYTES_MAX,
            });
        }
        let mut parser = Parser {
            words: words(text)?,
            at: 0,
            scopes: Scopes::new(),
            functions: Vec::new(),
            nest: 0,
        };
        let main = parser.reserve_function()?;
        parser.scopes.enter_function();
        let body = parser.block()?;
        if parser.peek() != &Token::End {
            return Err(parser.unexpected("'<eof>' expected"));
        }
        let slots = parser.scopes.leave_function();
        parser.finish_function(
            main,
            Function {
                parameters: 0,
                slots,
                body,
            },
        );
        let program = Self {
            functions: parser.functions,
        };
        let found = program.to_bytes().len();
        if found > PROGRAM_BYTES_MAX {
            return Err(LoadError::TooLarge {
                what: "bytes of program",
                found,
                max: PROGRAM_BYTES_MAX,
            });
        }
        Ok(program)
    }
}

/// What is being read.
struct Parser {
    words: Vec<Lexeme>,
    at: usize,
    scopes: Scopes,
    functions: Vec<Function>,
    /// Blocks and expressions that are being read within one another.
    nest: usize,
}

const END: Token = Token::End;

impl Parser {
    fn peek(&self) -> &Token {
        self.peek_ahead(0)
    }

    fn peek_ahead(&self, words: usize) -> &Token {
        self.words
            .get(self.at.saturating_add(words))
            .map_or(&END, |lexeme| &lexeme.token)
    }

    fn line(&self) -> u32 {
        let at = self.at.min(self.words.len().saturating_sub(1));
        self.words.get(at).map_or(1, |lexeme| lexeme.line)
    }

    /// The line of the word before.
    fn line_before(&self) -> u32 {
        let before = self.at.checked_sub(1);
        before
            .and_then(|at| self.words.get(at))
            .map_or(1, |lexeme| lexeme.line)
    }

    fn is(&self, word: &'static str) -> bool {
        self.peek() == &Token::Word(word)
    }

    fn skip(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// Takes the next word if it is this one.
    fn take(&mut self, word: &'static str) -> bool {
        let is_it = self.is(word);
        if is_it {
            self.skip();
        }
        is_it
    }

    fn expect(&mut self, word: &'static str) -> Result<(), LoadError> {
        if self.take(word) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{word}' expected")))
        }
    }

    fn name(&mut self) -> Result<String, LoadError> {
        if let Token::Name(name) = self.peek() {
            let name = name.clone();
            self.skip();
            return Ok(name);
        }
        if self.is("...") {
            return Err(self.unsupported("'...'"));
        }
        Err(self.unexpected("<name> expected"))
    }

    /// As Lua says it: what was expected, and what stands there.
    fn unexpected(&self, what: &str) -> LoadError {
        let near = match self.peek() {
            Token::Name(name) => name.clone(),
            Token::Text(text) => text.escape_ascii().to_string(),
            Token::Number(number) => super::number::shown(*number),
            Token::Word(word) => (*word).to_owned(),
            Token::End => "<eof>".to_owned(),
        };
        let near: String = near.chars().take(NEAR_CHARS_MAX).collect();
        LoadError::Syntax {
            what: format!("{what} near '{near}'"),
            line: self.line(),
        }
    }

    fn unsupported(&self, construct: impl Into<String>) -> LoadError {
        LoadError::unsupported(construct, self.line())
    }

    /// Reads something that may hold others of its kind.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, LoadError>) -> Result<T, LoadError> {
        if self.nest >= SCRIPT_DEPTH_MAX {
            return Err(self.too_deep());
        }
        self.nest = self.nest.saturating_add(1);
        let result = read(self);
        self.nest = self.nest.saturating_sub(1);
        result
    }

    fn too_deep(&self) -> LoadError {
        self.unsupported(format!("more than {SCRIPT_DEPTH_MAX} levels within one another"))
    }

    /// A number for a function that is about to be read.
    fn reserve_function(&mut self) -> Result<u8, LoadError> {
        let number = self.functions.len();
        if number >= SCRIPT_FUNCTIONS_MAX {
            return Err(self.unsupported(format!("more than {SCRIPT_FUNCTIONS_MAX} functions")));
        }
        self.functions.push(Function {
            parameters: 0,
            slots: 0,
            body: Block::new(),
        });
        u8::try_from(number).map_err(|_| self.too_deep())
    }

    fn finish_function(&mut self, number: u8, function: Function) {
        if let Some(place) = self.functions.get_mut(usize::from(number)) {
            *place = function;
        }
    }
}

/// Characters of a word that an error repeats at the most.
const NEAR_CHARS_MAX: usize = 40;
