use thiserror::Error;

/// Why a script is not taken. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is no Lua.
    #[error("Error compiling script (new function): user_script:{line}: {what}")]
    Syntax {
        /// What is wrong, in the words of Lua's compiler where they are short.
        what: String,
        /// Where.
        line: u32,
    },
    /// It is Lua, but not of the part that is served here.
    #[error("unsupported script: {construct} at line {line} (docs/protocol.md lists what scripts may hold)")]
    Unsupported {
        /// Which construct.
        construct: String,
        /// Where.
        line: u32,
    },
    /// It is larger than any script that is taken.
    #[error("unsupported script: {found} {what}, at most {max} are taken")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        found: usize,
        /// The bound.
        max: usize,
    },
}

impl LoadError {
    pub(super) fn unsupported(construct: impl Into<String>, line: u32) -> Self {
        Self::Unsupported {
            construct: construct.into(),
            line,
        }
    }

    /// Whether the same script may be taken later: never.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        false
    }

    /// Whether anything may have been applied: never.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}
