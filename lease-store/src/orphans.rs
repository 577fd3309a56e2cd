//! Grants and waits whose caller is gone: what must be undone, soon and surely.
//!
//! A caller leaves in the middle of things (a future is dropped, a socket breaks), so whatever notices it cannot wait.
//! It leaves a command here, and the proposer takes these first into its next entry. The queue needs no bound of its
//! own: each entry in it stems from a caller that the store's own bounds admitted, and adds at most one command.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lease_core::machine::codec::EncodedCommand;
use lease_core::machine::{Command, LeaseKey, Once, Outcome, ReleaseCause};
use lease_core::{Attachment, FenceToken};
use tokio::sync::Notify;

/// The commands that undo what nobody waits for any more.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    commands: Mutex<VecDeque<Undoing>>,
    added: Notify,
    /// What was left here and is not undone yet, also while it is on its way.
    open: AtomicUsize,
}

/// One command that undoes something.
#[derive(Debug, Clone)]
pub(crate) struct Undoing {
    /// What to propose.
    pub(crate) command: EncodedCommand,
    /// The parked caller whose wait it ends.
    pub(crate) detaches: Option<Attachment>,
    /// The number of a forwarded command whose answer nobody waits for.
    pub(crate) withdraws: Option<u64>,
}

/// What becomes of a grant whose answer could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfUndelivered {
    /// It stays, for the retry of its request, or since it was no lock.
    Keep,
    /// It is released at once: nobody can ever use or release it.
    Release(LeaseKey),
}

impl Orphans {
    /// Undoes a grant if its caller can never learn of it.
    pub(crate) fn undelivered(&self, outcome: &Outcome, fate: &IfUndelivered) {
        let (IfUndelivered::Release(key), Some(token)) = (fate, granted_token(outcome)) else {
            return;
        };
        self.release(key.clone(), token);
    }

    /// Releases a grant whose answer could not be written to its caller.
    pub(crate) fn release(&self, key: LeaseKey, token: FenceToken) {
        tracing::debug!(lease = %key.name, %token, "releasing a grant whose caller is gone");
        let cause = ReleaseCause::Orphaned;
        self.add(&Command::Release { key, token, cause }, None, None);
    }

    /// Takes a wait out of its queue, since its caller is gone.
    pub(crate) fn detach(&self, attachment: Attachment) {
        self.add(&Command::Detach { attachment }, Some(attachment), None);
    }

    /// Undoes a forwarded command whose outcome nobody knows, and whose caller was told so.
    pub(crate) fn withdraw(&self, once: Once, key: LeaseKey) {
        tracing::debug!(lease = %key.name, number = once.number, "withdrawing a command without an answer");
        self.add(&Command::Withdraw { once, key }, None, Some(once.number));
    }

    /// The next command to propose.
    pub(crate) fn pop(&self) -> Option<Undoing> {
        self.lock().pop_front()
    }

    /// Takes back a command that was surely not applied, or may not have been: each of them may be applied twice. It
    /// wakes nobody: whatever hindered it is likely still there.
    pub(crate) fn again(&self, undoing: Undoing) {
        self.lock().push_back(undoing);
    }

    /// Whether there is a command.
    pub(crate) fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Waits until there may be a command.
    ///
    /// # Cancel safety
    /// Cancel safe: the next call returns at once if a command came meanwhile.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// One command was applied.
    pub(crate) fn undone(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// How many are not applied yet.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    fn add(&self, command: &Command, detaches: Option<Attachment>, withdraws: Option<u64>) {
        match EncodedCommand::new(command) {
            Ok(command) => {
                self.open.fetch_add(1, Ordering::AcqRel);
                self.again(Undoing {
                    command,
                    detaches,
                    withdraws,
                });
                self.added.notify_one();
            }
            // Its name came through the log before, so it fits an entry.
            Err(error) => tracing::error!(%error, "a command for an orphan cannot be encoded"),
        }
    }

    /// Nothing under this lock can panic half-way, so a poisoned one is as good as a sound one.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Undoing>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only these two carry a new token")]
const fn granted_token(outcome: &Outcome) -> Option<FenceToken> {
    match outcome {
        Outcome::Granted { token, .. } | Outcome::Stored { token, .. } => Some(*token),
        _ => None,
    }
}
