//! What a test may do at each stage of a group: crash, wait, cut the connection. Outside tests there is no hook.

use std::fmt;
use std::io;
use std::sync::Arc;

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

type Call = dyn Fn(PostgresStage) -> io::Result<()> + Send + Sync;

#[derive(Clone)]
pub(super) struct Hook(Option<Arc<Call>>);

impl Hook {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(super) fn calling(call: impl Fn(PostgresStage) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(call)))
    }

    pub(super) fn at(&self, stage: PostgresStage) -> io::Result<()> {
        match &self.0 {
            Some(call) => call(stage),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.is_some()).finish()
    }
}
