//! What a script may use, counted alike on every replica.

use thiserror::Error;

use crate::limits::{SCRIPT_BYTES_MAX, SCRIPT_REPLY_BYTES_MAX, SCRIPT_REPLY_DEPTH_MAX, SCRIPT_STEPS_MAX};

/// A bound that a script has reached. Nothing that it did is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptBound {
    /// It takes too long.
    #[error("the script takes more than {SCRIPT_STEPS_MAX} steps")]
    Steps,
    /// It makes too many texts and tables.
    #[error("the script makes more than {SCRIPT_BYTES_MAX} bytes of texts and tables")]
    Bytes,
    /// Its calls are nested too deeply.
    #[error("the script is nested too deeply (stack overflow)")]
    Depth,
    /// What it answers is too large or too deep.
    #[error(
        "the script's reply has more than {SCRIPT_REPLY_BYTES_MAX} bytes or {SCRIPT_REPLY_DEPTH_MAX} levels"
    )]
    Reply,
}

/// Bytes that are walked through in one step.
const STEP_BYTES: usize = 64;

/// What is left.
#[derive(Debug)]
pub(super) struct Budget {
    steps: usize,
    bytes: usize,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            steps: SCRIPT_STEPS_MAX,
            bytes: SCRIPT_BYTES_MAX,
        }
    }

    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), ScriptBound> {
        self.steps = self.steps.checked_sub(steps).ok_or(ScriptBound::Steps)?;
        Ok(())
    }

    /// The steps of walking through so many bytes.
    pub(super) fn take_steps_for(&mut self, bytes: usize) -> Result<(), ScriptBound> {
        self.take_steps(bytes.wrapping_div(STEP_BYTES))
    }

    /// Bytes that are made anew, and walked through.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), ScriptBound> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ScriptBound::Bytes)?;
        self.take_steps_for(bytes)
    }
}
