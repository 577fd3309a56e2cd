//! What a Rust file says, without its comments and strings: paths with their `use` groups spelt out, functions,
//! attributes. Made from tokens, so a rule that looks for `a::b` is not fooled by a line break or a doc comment.
//!
//! It does not resolve names: a re-export under another name is not seen.

mod reader;

use proc_macro2::TokenStream;

use self::reader::Reader;

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) paths: Vec<CodePath>,
    pub(crate) functions: Vec<Function>,
    pub(crate) attributes: Vec<Attribute>,
}

/// A name or a path of names, wherever it stands: `use a::{b, c::d}` gives `a::b` and `a::c::d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodePath {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    pub(crate) role: Role,
    /// Inside `#[cfg(test)]` or a test function.
    pub(crate) in_test: bool,
    /// Index of the innermost function around it.
    pub(crate) function: Option<usize>,
}

/// What stands around a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// In a `use` item.
    Import,
    /// `path!`
    Macro,
    /// `path()`
    CallWithoutArguments,
    /// `path(..)`, also a pattern.
    Call,
    /// Everything else.
    Mention,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) attributes: Vec<String>,
}

/// An attribute: its tokens without spaces, `tokio::test(start_paused=true)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Code {
    /// Lexes `text`; `path` names it if it is not Rust.
    pub(crate) fn read(path: &str, text: &str) -> Self {
        let stream: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{path} is not Rust: {error}"));
        Reader::read(stream)
    }
}

impl CodePath {
    /// Whether the path goes into the crate called `name`: `name::..`, or `use name`.
    pub(crate) fn enters_crate(&self, name: &str) -> bool {
        let long_enough = self.segments.len() > 1 || self.role == Role::Import;
        long_enough && self.segments.first().is_some_and(|first| first == name)
    }

    pub(crate) fn starts_with(&self, names: &[&str]) -> bool {
        self.segments.len() >= names.len() && self.segments.iter().zip(names).all(|(a, b)| a == b)
    }

    pub(crate) fn ends_with(&self, names: &[&str]) -> bool {
        self.segments.len() >= names.len()
            && self
                .segments
                .iter()
                .rev()
                .zip(names.iter().rev())
                .all(|(a, b)| a == b)
    }

    pub(crate) fn is_call(&self) -> bool {
        matches!(self.role, Role::Call | Role::CallWithoutArguments)
    }

    pub(crate) fn text(&self) -> String {
        self.segments.join("::")
    }
}

impl Function {
    /// Whether it is a test: `#[test]`, `#[tokio::test(..)]`, also inside a macro such as `proptest!`.
    pub(crate) fn is_test(&self) -> bool {
        let marks = |attribute: &String| {
            let name = attribute.split('(').next().unwrap_or_default();
            name == "test" || name.ends_with("::test")
        };
        self.attributes.iter().any(marks)
    }
}
