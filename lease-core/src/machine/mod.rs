//! The lease machine: a pure, deterministic, total state machine over log entries.
//!
//! [`LeaseMachine::apply`] takes the time stamp that the leader put on an entry and the entry's commands, and gives
//! one [`Outcome`] a command and the [`Effect`]s that others must be told. It knows no clock: time moves only by the
//! stamps of entries, and never backwards. It leaves to others: when to propose a tick ([`LeaseMachine::next_due`]
//! says for when), whom an [`crate::Attachment`] belongs to, and how long a stamp lags behind real time.
//!
//! The rules, each held by a test in `tests/`:
//! - Only a grant takes a token from the one counter; tokens never repeat and never fall, for any name.
//! - A lease ends *at* its deadline. Touching a name first ends it if it is due and grants its head waiter; only then
//!   is the command looked at. A renewal at or after the deadline is refused, also when nobody else holds the lease.
//! - A wait that is due ends before anything is granted to it.
//! - The sweep of due records is bounded for each entry; what remains is due at once.
//! - A request id is granted at most once, and remembered for a stated time after its end.
//! - Attachments rise: a late call that names an earlier one, or comes from an earlier incarnation, takes no wait from
//!   its successor and grants nothing. Every caller that queues is told the end of it exactly once.
//! - A command that a node forwards under a number is applied once, however often it comes.
//! - A command that is refused leaves nothing behind; a bound that is lowered drops nothing that exists.

mod acquire;
mod apply;
mod check;
pub mod codec;
mod command;
mod config;
mod endings;
mod hold;
mod index;
mod key_command;
mod keys;
mod leases;
mod outcome;
mod queue;
mod read;
mod redis;
mod requests;
mod script;
mod sessions;
mod slab;
mod snapshot;
mod submission;
#[cfg(test)]
mod tests;
mod token;
mod transaction;
mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use check::Broken;
pub use command::{
    Acquire, Command, LeaseKey, ReleaseCause, Renewal, RunScript, ScriptSource, Set, SetCondition, SetExpiry,
    TtlCondition, Wait,
};
pub use config::{Limits, MachineVersion};
pub use key_command::{KeyCommand, ManyCondition, Sighting, Watched, digest};
pub use outcome::{Applied, Effect, EndReason, Holder, LimitKind, Outcome, Refusal, UnsupportedVersion};
pub use read::{LeaseInfo, LeasePage, Stats};
pub use script::{Preview, ScriptAccess};
pub use snapshot::{SnapshotError, View};
pub use submission::{Once, Repeat, Submission};

use crate::script::StepsLeft;
use crate::types::Timestamp;
use endings::Endings;
use leases::Leases;
use requests::Requests;
use script::Scripts;
use sessions::Sessions;
use token::TokenCounter;
use transaction::Serving;
use waits::Waits;

/// Every lease, queue and remembered request of one store, and the token counter.
#[derive(Debug, Clone)]
pub struct LeaseMachine {
    version: MachineVersion,
    limits: Limits,
    now: Timestamp,
    tokens: TokenCounter,
    leases: Leases,
    waits: Waits,
    requests: Requests,
    endings: Endings,
    sessions: Sessions,
    /// A view shares them until they change.
    scripts: Arc<Scripts>,
    /// The highest incarnation of each node that ever started.
    incarnations: BTreeMap<u64, u64>,
    /// Between entries always [`Serving::AtOnce`].
    serving: Serving,
    /// What the scripts of the entry that is being applied may still take.
    script_steps: StepsLeft,
}

impl LeaseMachine {
    /// A machine before its first entry: no lease, no token, and none to be issued before a floor is raised.
    #[must_use]
    pub fn new() -> Self {
        Self {
            version: MachineVersion::FIRST,
            limits: Limits::default(),
            now: Timestamp::ZERO,
            tokens: TokenCounter::Closed,
            leases: Leases::new(),
            waits: Waits::new(),
            requests: Requests::new(),
            endings: Endings::new(),
            sessions: Sessions::default(),
            scripts: Arc::default(),
            incarnations: BTreeMap::new(),
            serving: Serving::AtOnce,
            script_steps: StepsLeft::full(),
        }
    }
}

impl Default for LeaseMachine {
    fn default() -> Self {
        Self::new()
    }
}
