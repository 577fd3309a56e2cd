//! Commands on keys, one alone or several with nothing in between.

use super::key_command::{KeyCommand, Sighting, Watched};
use super::outcome::{Effect, Outcome, Refusal};
use super::slab::Slot;
use super::{LeaseKey, LeaseMachine};
use crate::limits::{KEYS_PER_CHANGE_MAX, TRANSACTION_COMMANDS_MAX};

/// When the queue of a name is looked at once nobody holds it.
#[derive(Debug, Clone)]
pub(super) enum Serving {
    /// At once.
    AtOnce,
    /// At the end of the commands that are being done together.
    Later(Vec<Slot>),
}

impl LeaseMachine {
    pub(super) fn key_command_alone(&mut self, command: &KeyCommand, effects: &mut Vec<Effect>) -> Outcome {
        if command.keys() > KEYS_PER_CHANGE_MAX {
            return too_many_keys();
        }
        self.touch_all(command, effects);
        self.together(effects, |machine, effects| machine.key_command(command, effects))
    }

    pub(super) fn transaction(
        &mut self,
        watched: &[Watched],
        commands: &[KeyCommand],
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let keys = commands
            .iter()
            .map(KeyCommand::keys)
            .fold(watched.len(), usize::saturating_add);
        if keys > KEYS_PER_CHANGE_MAX || commands.len() > TRANSACTION_COMMANDS_MAX {
            return too_many_keys();
        }
        for Watched { key, .. } in watched {
            self.touch(key, effects);
        }
        if !watched.iter().all(|watched| self.is_as_seen(watched)) {
            return Outcome::WatchFailed;
        }
        for command in commands {
            self.touch_all(command, effects);
        }
        self.together(effects, |machine, effects| {
            let outcomes = commands
                .iter()
                .map(|command| machine.key_command(command, effects));
            Outcome::Transaction(outcomes.collect())
        })
    }

    /// Does several changes before anybody who waits is granted a key that one of them has freed. Keys that are due
    /// have to be touched before, so that their queues come first.
    pub(super) fn together<T>(
        &mut self,
        effects: &mut Vec<Effect>,
        changes: impl FnOnce(&mut Self, &mut Vec<Effect>) -> T,
    ) -> T {
        self.serving = Serving::Later(Vec::new());
        let done = changes(self, effects);
        let freed = std::mem::replace(&mut self.serving, Serving::AtOnce);
        if let Serving::Later(slots) = freed {
            for slot in slots {
                self.serve_queue(slot, effects);
            }
        }
        done
    }

    fn is_as_seen(&self, watched: &Watched) -> bool {
        let hold = self
            .leases
            .find(&watched.key)
            .and_then(|slot| self.leases.hold(slot));
        let now = hold.map(|hold| Sighting {
            token: hold.token,
            deadline: hold.deadline,
        });
        now == watched.seen
    }

    /// Ends what is due of a command's keys, and grants their heads, before the first command is looked at.
    fn touch_all(&mut self, command: &KeyCommand, effects: &mut Vec<Effect>) {
        let mut touch = |key: &LeaseKey| {
            self.touch(key, effects);
        };
        match command {
            KeyCommand::Set(set) => touch(&set.key),
            KeyCommand::SetTtl { key, .. }
            | KeyCommand::DeleteIf { key, .. }
            | KeyCommand::Take { key }
            | KeyCommand::ExpireNow { key, .. } => touch(key),
            KeyCommand::Delete { keys } | KeyCommand::Look { keys } => keys.iter().for_each(touch),
            KeyCommand::SetMany { pairs, .. } => pairs.iter().for_each(|(key, _)| touch(key)),
            KeyCommand::Publish { .. } => {}
        }
    }
}

fn too_many_keys() -> Outcome {
    Outcome::Refused(Refusal::TooManyKeys {
        max: KEYS_PER_CHANGE_MAX as u64,
    })
}
