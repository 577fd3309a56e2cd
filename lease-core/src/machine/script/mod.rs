//! Scripts in the machine: those that are held for `EVALSHA`, and what running one does.
//!
//! A script sees the time of its entry throughout. Its changes are made at once when it has ended, and only then are the
//! queues of its keys looked at. An error in the middle keeps what was done before it, as Redis does; a bound that is
//! reached, of the script's own or of the whole store, keeps nothing. The scripts of one entry have a bound together, so that
//! no entry holds up a replica for long.

mod commands;
mod draft;
mod held;

use std::sync::Arc;

pub use commands::ScriptAccess;
pub(super) use held::Scripts;

use self::commands::Commands;
use self::draft::{Draft, Look, LookEnd};
use super::outcome::{Effect, Outcome};
use super::{LeaseKey, LeaseMachine, RunScript, ScriptSource};
use crate::script::{Ended, Invocation, Program, ScriptBound, ScriptDigest, ScriptReply, StepsLeft, run};
use crate::types::Timestamp;

/// What running a script would do, as of a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preview {
    /// It changes nothing, and answers so.
    Replied(ScriptReply),
    /// It changes something: it must go through the log.
    Changes,
    /// The time of a key that it touches has passed, and the log has not ended it yet.
    Due(LeaseKey),
    /// No script of that digest is held.
    NotHeld,
}

impl LeaseMachine {
    /// Whether `EVALSHA` would find a script, as of the last entry.
    #[must_use]
    pub fn holds_script(&self, digest: ScriptDigest) -> bool {
        self.scripts.get(digest).is_some()
    }

    /// How many scripts are held.
    #[must_use]
    pub fn scripts_held(&self) -> usize {
        self.scripts.len()
    }

    /// Runs a script at a moment that is not before the last entry, and changes nothing, not even the order in which
    /// scripts were used.
    #[must_use]
    pub fn preview(&self, at: Timestamp, script: &RunScript, access: ScriptAccess) -> Preview {
        let digest = script.source.digest();
        let program = match &script.source {
            ScriptSource::Given { program, .. } => Some(program.as_ref()),
            ScriptSource::Held { .. } => self.scripts.get(digest).map(AsRef::as_ref),
        };
        let Some(program) = program else {
            return Preview::NotHeld;
        };
        let ground = Look {
            machine: self,
            at: at.max(self.now),
        };
        let mut commands = commands(ground, script, access);
        let invocation = invocation(program, script);
        match run(&invocation, &mut StepsLeft::full(), &mut commands) {
            Ok(reply) => Preview::Replied(reply),
            Err(Ended::Bound(bound)) => Preview::Replied(bound_reply(bound, digest)),
            Err(Ended::Stopped(LookEnd::Changes)) => Preview::Changes,
            Err(Ended::Stopped(LookEnd::Due(key))) => Preview::Due(key),
        }
    }

    pub(super) fn load_script(&mut self, digest: ScriptDigest, program: &Arc<Program>) -> Outcome {
        let is_held = self.scripts.get(digest).is_some_and(|held| held == program);
        if is_held {
            Arc::make_mut(&mut self.scripts).take_up(digest);
        } else {
            Arc::make_mut(&mut self.scripts).load(digest, Arc::clone(program));
        }
        Outcome::Done
    }

    pub(super) fn flush_scripts(&mut self) -> Outcome {
        self.scripts = Arc::default();
        Outcome::Done
    }

    pub(super) fn run_script(&mut self, script: &RunScript, effects: &mut Vec<Effect>) -> Outcome {
        let digest = script.source.digest();
        if let ScriptSource::Given { program, .. } = &script.source {
            self.load_script(digest, program);
        }
        let Some(program) = Arc::make_mut(&mut self.scripts).take_up(digest) else {
            return Outcome::NoScript;
        };
        let mut left = self.script_steps;
        let ground = Draft::new(self, effects);
        let mut commands = commands(ground, script, ScriptAccess::ReadWrite);
        let ended = run(&invocation(&program, script), &mut left, &mut commands);
        let outcome = match ended {
            Ok(reply) => {
                commands.ground.commit();
                Outcome::Replied(reply)
            }
            Err(Ended::Bound(bound)) => Outcome::Replied(bound_reply(bound, digest)),
            Err(Ended::Stopped(refusal)) => Outcome::Refused(refusal),
        };
        self.script_steps = left;
        outcome
    }
}

fn invocation<'a>(program: &'a Program, script: &'a RunScript) -> Invocation<'a> {
    Invocation {
        program,
        digest: script.source.digest(),
        keys: &script.keys,
        arguments: &script.arguments,
    }
}

fn commands<G>(ground: G, script: &RunScript, access: ScriptAccess) -> Commands<'_, G> {
    Commands {
        ground,
        script,
        access,
        database: script.database,
    }
}

fn bound_reply(bound: ScriptBound, digest: ScriptDigest) -> ScriptReply {
    ScriptReply::error(format!(
        "LIMIT {bound}; nothing of it was applied. script: {digest}"
    ))
}
