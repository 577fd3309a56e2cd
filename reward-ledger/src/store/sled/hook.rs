//! What a test may do at each stage of the writer: crash, wait, fail. Outside tests there is no hook.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::Stage;

type Call = dyn Fn(Stage) -> io::Result<()> + Send + Sync;

#[derive(Clone)]
pub(super) struct Hook(Option<Arc<Call>>);

impl Hook {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(super) fn calling(call: impl Fn(Stage) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(call)))
    }

    pub(super) fn at(&self, stage: Stage) -> io::Result<()> {
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
