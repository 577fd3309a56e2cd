//! How far a group has come, for a test to do something there.

use std::fmt;

/// How far the transaction of a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PostgresStage {
    /// Nothing was sent yet.
    BeforeTransaction,
    /// Everything was read and locked; nothing was written yet.
    BeforeWrites,
    /// Everything was written; the commit was not sent yet.
    BeforeCommit,
    /// The commit was sent, and its answer is thrown away where the hook fails.
    AfterCommit,
    /// A commit whose answer was lost is about to be looked up.
    BeforeLookUp,
}

impl fmt::Display for PostgresStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeTransaction => "before-transaction",
            Self::BeforeWrites => "before-writes",
            Self::BeforeCommit => "before-commit",
            Self::AfterCommit => "after-commit",
            Self::BeforeLookUp => "before-look-up",
        })
    }
}
