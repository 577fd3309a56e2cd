//! What a script may use, counted alike on every replica.

use thiserror::Error;

use super::value::Value;
use crate::limits::{
    SCRIPT_BYTES_MAX, SCRIPT_REPLY_BYTES_MAX, SCRIPT_REPLY_DEPTH_MAX, SCRIPT_STEPS_ALWAYS, SCRIPT_STEPS_MAX,
    SCRIPT_STEPS_PER_ENTRY_MAX,
};

/// A bound that a script has reached. Nothing that it did is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptBound {
    /// It takes too long.
    #[error("the script takes more than {SCRIPT_STEPS_MAX} steps")]
    Steps,
    /// It takes more than the scripts that were run right before it have left. Alone it may get through.
    #[error(
        "the scripts of this moment take too many steps together, and this one more than {SCRIPT_STEPS_ALWAYS}; try again"
    )]
    StepsTogether,
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
/// Steps of a number that is written out.
const SHOWN_NUMBER_STEPS: usize = 10;

/// What scripts that run one after the other, as those of one log entry do, may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepsLeft(usize);

impl StepsLeft {
    /// Before the first script of an entry.
    #[must_use]
    pub const fn full() -> Self {
        Self(SCRIPT_STEPS_PER_ENTRY_MAX)
    }

    /// What the next script may take.
    fn of_one(self) -> usize {
        self.0.clamp(SCRIPT_STEPS_ALWAYS, SCRIPT_STEPS_MAX)
    }
}

impl Default for StepsLeft {
    fn default() -> Self {
        Self::full()
    }
}

/// What is left to one script.
#[derive(Debug)]
pub(super) struct Budget {
    steps: usize,
    /// Whether others have taken some of what it could take alone.
    is_cut: bool,
    bytes: usize,
}

impl Budget {
    pub(super) fn of(left: StepsLeft) -> Self {
        Self {
            steps: left.of_one(),
            is_cut: left.of_one() < SCRIPT_STEPS_MAX,
            bytes: SCRIPT_BYTES_MAX,
        }
    }

    /// What others have left, `before` what it was when this script began.
    pub(super) fn settle(&self, before: StepsLeft) -> StepsLeft {
        let taken = before.of_one().saturating_sub(self.steps);
        StepsLeft(before.0.saturating_sub(taken))
    }

    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), ScriptBound> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(if self.is_cut {
                    ScriptBound::StepsTogether
                } else {
                    ScriptBound::Steps
                })
            }
        }
    }

    /// The steps of walking through so many bytes.
    pub(super) fn take_steps_for(&mut self, bytes: usize) -> Result<(), ScriptBound> {
        self.take_steps(bytes.wrapping_div(STEP_BYTES))
    }

    /// The steps of a value that is shown as a text: a number costs some.
    pub(super) fn take_steps_to_show(&mut self, value: &Value) -> Result<(), ScriptBound> {
        match value {
            Value::Number(_) => self.take_steps(SHOWN_NUMBER_STEPS),
            Value::Nil | Value::Boolean(_) | Value::Text(_) | Value::Table(_) => Ok(()),
        }
    }

    /// Bytes that are made anew, and walked through.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), ScriptBound> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ScriptBound::Bytes)?;
        self.take_steps_for(bytes)
    }
}
