//! What a test may do at each stage of a store's group: crash, wait, fail. Outside tests there is no hook.

use std::fmt;
use std::io;
use std::sync::Arc;

type Call<S> = dyn Fn(S) -> io::Result<()> + Send + Sync;

/// Called at each stage `S`.
#[derive(Clone)]
pub(super) struct Hook<S>(Option<Arc<Call<S>>>);

impl<S> Hook<S> {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(super) fn calling(call: impl Fn(S) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(call)))
    }

    pub(super) fn at(&self, stage: S) -> io::Result<()> {
        match &self.0 {
            Some(call) => call(stage),
            None => Ok(()),
        }
    }
}

impl<S> fmt::Debug for Hook<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.0.is_some()).finish()
    }
}
