//! One entry: its commands in order, then what has become due.

use super::outcome::{Applied, Effect, EndReason, Outcome, Refusal, UnsupportedVersion};
use super::slab::Slot;
use super::{Command, LeaseKey, LeaseMachine, MachineVersion, Once, Submission};
use crate::limits::{ENDINGS_BYTES_MAX, PRUNE_RECORDS_MAX, RENEW_MANY_MAX, SWEEP_RECORDS_MAX};
use crate::script::StepsLeft;
use crate::types::Timestamp;

impl LeaseMachine {
    /// Applies one log entry: `commands` in order, at the time that the leader stamped.
    ///
    /// Time never falls: a stamp below an earlier one counts as the earlier one. It stops at [`Timestamp::LAST`].
    ///
    /// # Errors
    /// [`UnsupportedVersion`] if the entry activates rules that this build does not know. Nothing was applied, and
    /// the node must stop.
    pub fn apply(&mut self, at: Timestamp, commands: &[Command]) -> Result<Applied, UnsupportedVersion> {
        self.apply_all(at, commands.iter().map(|command| (None, command)))
    }

    /// As [`LeaseMachine::apply`], of commands that may carry numbers.
    ///
    /// # Errors
    /// [`UnsupportedVersion`] as there.
    pub fn apply_entry(
        &mut self,
        at: Timestamp,
        submissions: &[Submission],
    ) -> Result<Applied, UnsupportedVersion> {
        let commands = submissions.iter();
        self.apply_all(
            at,
            commands.map(|submission| (submission.once, &submission.command)),
        )
    }

    fn apply_all<'a>(
        &mut self,
        at: Timestamp,
        commands: impl ExactSizeIterator<Item = (Option<Once>, &'a Command)> + Clone,
    ) -> Result<Applied, UnsupportedVersion> {
        check_versions(commands.clone().map(|(_, command)| command))?;
        self.now = self.now.max(at.min(Timestamp::LAST));
        self.script_steps = StepsLeft::full();
        self.prune();
        let mut applied = Applied {
            outcomes: Vec::with_capacity(commands.len()),
            effects: Vec::new(),
        };
        for (once, command) in commands {
            let outcome = match once {
                None => self.apply_one(command, &mut applied.effects),
                Some(once) => self.apply_once(&once, command, &mut applied.effects),
            };
            applied.outcomes.push(outcome);
        }
        self.sweep(&mut applied.effects);
        #[cfg(debug_assertions)]
        self.check_sometimes();
        Ok(applied)
    }

    pub(super) fn apply_one(&mut self, command: &Command, effects: &mut Vec<Effect>) -> Outcome {
        match command {
            Command::Tick => Outcome::Done,
            Command::Acquire(acquire) => self.acquire(acquire, effects),
            Command::Renew(renewal) => self.renew(renewal, effects),
            Command::RenewMany(renewals) if renewals.len() > RENEW_MANY_MAX => {
                Outcome::Refused(Refusal::TooManyRenewals {
                    max: RENEW_MANY_MAX as u64,
                })
            }
            Command::RenewMany(renewals) => Outcome::RenewedMany(
                renewals
                    .iter()
                    .map(|renewal| self.renew(renewal, effects))
                    .collect(),
            ),
            Command::Release { key, token, cause } => self.release(key, *token, *cause, effects),
            Command::ReleaseByOwner { key, owner } => self.release_by_owner(key, owner, effects),
            Command::SetTtl { key, ttl, condition } => self.set_ttl(key, *ttl, *condition, effects),
            Command::Force { key, reason } => self.end_now(
                key,
                EndReason::Forced {
                    reason: reason.clone(),
                },
                effects,
            ),
            Command::Cancel { key, owner, request } => self.cancel(key, owner, request, effects),
            Command::Detach { attachment } => self.detach(*attachment, effects),
            Command::NodeStarted { node, incarnation } => self.node_started(*node, *incarnation, effects),
            Command::NodeLost { node, incarnation } => {
                self.detach_below(*node, incarnation.saturating_add(1), effects)
            }
            Command::RaiseTokenFloor { floor } => {
                self.tokens.raise(*floor);
                Outcome::Done
            }
            Command::Activate { version } => self.activate(*version),
            Command::SetLimits(limits) => {
                self.limits = *limits;
                Outcome::Done
            }
            Command::Set(set) => self.set(set, effects),
            Command::Delete { key } => self.end_now(key, EndReason::Overridden, effects),
            Command::Touch { key } => {
                self.touch(key, effects);
                Outcome::Done
            }
            Command::Key(command) => self.key_command_alone(command, effects),
            Command::Transaction { watched, commands } => self.transaction(watched, commands, effects),
            Command::Withdraw { once, key } => self.withdraw(once, key, effects),
            Command::LoadScript { digest, program } => self.load_script(*digest, program),
            Command::RunScript(script) => self.run_script(script, effects),
            Command::FlushScripts => self.flush_scripts(),
        }
    }

    fn activate(&mut self, version: MachineVersion) -> Outcome {
        if version < self.version {
            return Outcome::Refused(Refusal::VersionBelowActive { active: self.version });
        }
        self.version = version;
        Outcome::Done
    }

    /// Finds a name after bringing it up to date: its lease is ended if due, and its head waiter granted.
    pub(super) fn touch(&mut self, key: &LeaseKey, effects: &mut Vec<Effect>) -> Option<Slot> {
        let slot = self.leases.find(key)?;
        self.settle(slot, effects);
        self.leases.get(slot).map(|_| slot)
    }

    fn settle(&mut self, slot: Slot, effects: &mut Vec<Effect>) {
        if let Some(hold) = self.leases.hold(slot).filter(|hold| hold.is_due(self.now)) {
            let reason = hold.expiry_reason();
            self.end_hold(slot, reason, effects);
            self.serve_queue(slot, effects);
        }
    }

    /// Ends what is due, waits before leases, up to the bound of one entry.
    fn sweep(&mut self, effects: &mut Vec<Effect>) {
        for _ in 0..SWEEP_RECORDS_MAX {
            if let Some((at, wait)) = self.waits.next_deadline()
                && at <= self.now
            {
                self.end_wait(wait, effects);
            } else if let Some((at, slot)) = self.leases.next_deadline()
                && at <= self.now
            {
                self.settle(slot, effects);
            } else {
                return;
            }
        }
    }

    /// Drops the oldest endings above their bounds.
    pub(super) fn bound_endings(&mut self) {
        let endings_max = usize::try_from(self.limits.endings_max).unwrap_or(usize::MAX);
        self.endings
            .prune_to(endings_max, ENDINGS_BYTES_MAX, PRUNE_RECORDS_MAX);
    }

    /// Forgets requests and endings whose time of memory is over.
    fn prune(&mut self) {
        self.bound_endings();
        self.sessions.prune(self.now, PRUNE_RECORDS_MAX);
        let Some(horizon) = self.now.as_millis().checked_sub(self.limits.request_memory_ms) else {
            return;
        };
        self.requests
            .prune(Timestamp::from_millis(horizon), PRUNE_RECORDS_MAX);
        self.endings
            .prune(Timestamp::from_millis(horizon), PRUNE_RECORDS_MAX);
    }
}

fn check_versions<'a>(commands: impl Iterator<Item = &'a Command>) -> Result<(), UnsupportedVersion> {
    for command in commands {
        if let Command::Activate { version } = command
            && *version > MachineVersion::LATEST
        {
            return Err(UnsupportedVersion {
                asked: *version,
                known: MachineVersion::LATEST,
            });
        }
    }
    Ok(())
}
