//! Scripts: loaded, found by their digests, and run.
//!
//! A script is first tried on what this node holds. If it would change something there, it is proposed, and what the log
//! makes of it counts. If not, it is tried once more on what a proof shows to be no older than the call, and its answer
//! needs no entry. A trial changes nothing, so a wrong guess costs time alone.

use std::sync::Arc;

use lease_core::Database;
use lease_core::SharedBytes;
use lease_core::machine::{Command, Outcome, Preview, RunScript, ScriptAccess, ScriptSource};
use lease_core::script::{Program, ScriptDigest, ScriptReply};
use sha1::{Digest as _, Sha1};

use super::CallError;
use super::leases::unexpected;
use crate::error::StoreError;
use crate::orphans::IfUndelivered;
use crate::runtime::Rt;
use crate::store::Store;

/// How often a script is tried again after what it touched, or the script itself, had to be brought up to date.
const TRIES_MAX: usize = 16;

/// What a script is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCall {
    /// The database that is selected when it begins.
    pub database: Database,
    /// How many databases `SELECT` reaches within it.
    pub databases: u8,
    /// Longest key and value that it may store, in bytes.
    pub value_bytes_max: u32,
    /// `KEYS`
    pub keys: Vec<SharedBytes>,
    /// `ARGV`
    pub arguments: Vec<SharedBytes>,
}

/// A script as its caller names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedScript {
    /// By its text, which is held from then on.
    Text(SharedBytes),
    /// By the digest of a text that is held.
    Digest(ScriptDigest),
}

/// A call that is ready to be tried.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    script: RunScript,
    text: Option<SharedBytes>,
    access: ScriptAccess,
}

impl Attempt {
    pub(crate) fn new(named: NamedScript, call: ScriptCall, access: ScriptAccess) -> Self {
        let (digest, text) = match named {
            NamedScript::Text(text) => (digest(text.as_slice()), Some(text)),
            NamedScript::Digest(digest) => (digest, None),
        };
        let script = RunScript {
            source: ScriptSource::Held { digest },
            database: call.database,
            databases: call.databases,
            value_bytes_max: call.value_bytes_max,
            keys: call.keys,
            arguments: call.arguments,
        };
        Self { script, text, access }
    }
}

/// The name of a script's text.
fn digest(text: &[u8]) -> ScriptDigest {
    ScriptDigest::new(Sha1::digest(text).into())
}

fn compile(text: &SharedBytes) -> Result<Arc<Program>, CallError> {
    Ok(Arc::new(Program::parse(text.as_slice())?))
}

impl<R: Rt> Store<R> {
    /// Runs a script: `EVAL`, `EVALSHA` and their read-only forms. What it answers may be an error of its own, after
    /// changes that stay.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied: as a whole, or not at all.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. What it stored stays.
    pub async fn run_script(
        &self,
        named: NamedScript,
        call: ScriptCall,
        access: ScriptAccess,
    ) -> Result<ScriptReply, CallError> {
        self.attempt(Attempt::new(named, call, access)).await
    }

    /// Whether a call would change something, as far as this node knows.
    pub(crate) fn would_change(&self, attempt: &Attempt) -> bool {
        let guess = self.glance(|machine| machine.preview(machine.now(), &attempt.script, attempt.access));
        guess == Preview::Changes
    }

    pub(crate) async fn attempt(&self, attempt: Attempt) -> Result<ScriptReply, CallError> {
        if self.would_change(&attempt) {
            return self.propose_script(attempt).await;
        }
        for _ in 0..TRIES_MAX {
            let at = self.proven_time().await?;
            match self.glance(|machine| machine.preview(at, &attempt.script, attempt.access)) {
                Preview::Replied(reply) => return Ok(reply),
                // The end of a lease is decided in the log, never by a reader's clock.
                Preview::Due(key) if attempt.access == ScriptAccess::ReadOnly => {
                    self.submit(&Command::Touch { key }, IfUndelivered::Keep).await?;
                }
                Preview::NotHeld if attempt.access == ScriptAccess::ReadOnly => {
                    let text = attempt.text.as_ref().ok_or(CallError::NoScript)?;
                    self.load_script(text).await?;
                }
                Preview::NotHeld if attempt.text.is_none() => return Err(CallError::NoScript),
                Preview::Changes | Preview::Due(_) | Preview::NotHeld => {
                    return self.propose_script(attempt).await;
                }
            }
        }
        Err(StoreError::Unavailable {
            leader: self.leader(),
        }
        .into())
    }

    /// Has the log decide. A script that it does not hold goes with the call.
    pub(crate) async fn propose_script(&self, attempt: Attempt) -> Result<ScriptReply, CallError> {
        let Attempt { mut script, text, .. } = attempt;
        let digest = script.source.digest();
        let is_held = self.glance(|machine| machine.holds_script(digest));
        if is_held && let Some(reply) = self.submit_script(&script).await? {
            return Ok(reply);
        }
        let program = compile(&text.ok_or(CallError::NoScript)?)?;
        script.source = ScriptSource::Given { digest, program };
        let reply = self.submit_script(&script).await?;
        reply.ok_or(CallError::Unexpected { command: "EVAL" })
    }

    /// `None` if the script is not held.
    async fn submit_script(&self, script: &RunScript) -> Result<Option<ScriptReply>, CallError> {
        let command = Command::RunScript(script.clone());
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::Replied(reply) => Ok(Some(reply)),
            Outcome::NoScript => Ok(None),
            other => Err(unexpected("EVAL", other)),
        }
    }

    /// Holds a script for those who name it by its digest; one that is held already needs no entry.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. Asking again does no harm.
    pub async fn load_script(&self, text: &SharedBytes) -> Result<ScriptDigest, CallError> {
        let digest = digest(text.as_slice());
        self.proven_time().await?;
        if self.glance(|machine| machine.holds_script(digest)) {
            return Ok(digest);
        }
        let program = compile(text)?;
        let command = Command::LoadScript { digest, program };
        match self.submit(&command, IfUndelivered::Keep).await? {
            Outcome::Done => Ok(digest),
            other => Err(unexpected("SCRIPT LOAD", other)),
        }
    }

    /// Which of these scripts are held. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn scripts_exist(&self, digests: &[Option<ScriptDigest>]) -> Result<Vec<bool>, CallError> {
        self.proven_time().await?;
        Ok(self.glance(|machine| {
            let is_held =
                |digest: &Option<ScriptDigest>| digest.is_some_and(|digest| machine.holds_script(digest));
            digests.iter().map(is_held).collect()
        }))
    }

    /// Forgets all scripts that are held.
    ///
    /// # Errors
    /// [`CallError`] says whether it may have been applied; asking again does no harm.
    ///
    /// # Cancel safety
    /// Dropped, it may or may not be applied. Asking again does no harm.
    pub async fn flush_scripts(&self) -> Result<(), CallError> {
        match self.submit(&Command::FlushScripts, IfUndelivered::Keep).await? {
            Outcome::Done => Ok(()),
            other => Err(unexpected("SCRIPT FLUSH", other)),
        }
    }

    /// How many scripts this node holds.
    #[must_use]
    pub fn scripts_held(&self) -> usize {
        self.glance(lease_core::machine::LeaseMachine::scripts_held)
    }
}
