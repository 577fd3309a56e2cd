//! The scripts that `EVALSHA` finds: a bounded memory, in the order of their last use.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::limits::{SCRIPTS_HELD_BYTES_MAX, SCRIPTS_HELD_MAX};
use crate::script::{Program, ScriptDigest};

/// One script.
#[derive(Debug, Clone)]
struct Held {
    program: Arc<Program>,
    bytes: usize,
    /// When it was used last, in uses. Local to this replica: replicas agree on the order alone.
    used: u64,
}

/// All scripts that are held.
#[derive(Debug, Clone, Default)]
pub(in crate::machine) struct Scripts {
    held: BTreeMap<ScriptDigest, Held>,
    by_use: BTreeMap<u64, ScriptDigest>,
    uses: u64,
    bytes: usize,
}

impl Scripts {
    pub(in crate::machine) fn len(&self) -> usize {
        self.held.len()
    }

    pub(in crate::machine) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::machine) fn get(&self, digest: ScriptDigest) -> Option<&Arc<Program>> {
        self.held.get(&digest).map(|held| &held.program)
    }

    /// Takes a script, in place of one with the same digest. Those that were used longest ago make room.
    pub(in crate::machine) fn load(&mut self, digest: ScriptDigest, program: Arc<Program>) {
        self.forget(digest);
        let bytes = program.to_bytes().len();
        while self.held.len() >= SCRIPTS_HELD_MAX || self.bytes.saturating_add(bytes) > SCRIPTS_HELD_BYTES_MAX
        {
            let Some((_, oldest)) = self.by_use.first_key_value() else {
                break;
            };
            self.forget(*oldest);
        }
        self.uses = self.uses.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_use.insert(self.uses, digest);
        let used = self.uses;
        self.held.insert(digest, Held { program, bytes, used });
    }

    /// Finds a script, which is then the one used last.
    pub(in crate::machine) fn take_up(&mut self, digest: ScriptDigest) -> Option<Arc<Program>> {
        let held = self.held.get_mut(&digest)?;
        if held.used != self.uses {
            self.uses = self.uses.saturating_add(1);
            self.by_use.remove(&held.used);
            held.used = self.uses;
            self.by_use.insert(held.used, digest);
        }
        Some(Arc::clone(&held.program))
    }

    fn forget(&mut self, digest: ScriptDigest) {
        if let Some(held) = self.held.remove(&digest) {
            self.by_use.remove(&held.used);
            self.bytes = self.bytes.saturating_sub(held.bytes);
        }
    }

    /// The scripts, the one used longest ago first.
    pub(in crate::machine) fn in_order(&self) -> impl Iterator<Item = (ScriptDigest, &Arc<Program>)> {
        let held = |digest: &ScriptDigest| self.get(*digest).map(|program| (*digest, program));
        self.by_use.values().filter_map(held)
    }

    /// Bytes and uses, counted anew.
    pub(in crate::machine) fn counted(&self) -> (usize, usize) {
        let bytes = self.held.values().map(|held| held.bytes);
        (bytes.fold(0, usize::saturating_add), self.by_use.len())
    }
}
