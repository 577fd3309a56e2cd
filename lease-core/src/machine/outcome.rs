//! What the machine answers and what it tells others: plain data.
//!
//! A refusal is an answer, not an error. Servers convert these by hand into replies. Outcomes also travel between
//! nodes, so their variants are only appended to.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{LeaseKey, MachineVersion};
use crate::script::ScriptReply;
use crate::types::{Attachment, FenceToken, OwnerId, SharedBytes, Timestamp};

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Nothing to say: a tick, a floor, a limit.
    Done,
    /// The lease is the caller's.
    Granted {
        /// The token of this grant.
        token: FenceToken,
        /// Milliseconds left, as of this entry; `None` without a deadline.
        remaining_ms: Option<u64>,
        /// Milliseconds from the entry that carried the attempt being answered to the grant.
        waited_ms: u64,
    },
    /// Somebody holds the lease.
    Held(Holder),
    /// The lease that this request was granted is over; it is never granted again under this request id.
    Ended {
        /// Its token; `None` if the request was given up before any grant.
        token: Option<FenceToken>,
        /// Why it is over.
        reason: EndReason,
    },
    /// The caller stands in the queue; [`Effect::Woken`] will answer.
    Queued,
    /// The wait goes on elsewhere: the same request came again with another attachment.
    Moved,
    /// Nobody holds the lease, and the wait has ended without a grant: it was given up.
    WaitOver,
    /// The lease stands.
    Renewed {
        /// Milliseconds left, as of this entry; `None` without a deadline.
        remaining_ms: Option<u64>,
    },
    /// One answer for each renewal, in order.
    RenewedMany(Vec<Outcome>),
    /// The grant that was named is over.
    Lost {
        /// Why, as far as it is remembered.
        reason: EndReason,
    },
    /// The lease was ended by this command.
    Released {
        /// The token of the grant that ended.
        token: FenceToken,
    },
    /// The wait was ended by this command.
    Cancelled,
    /// Nobody holds the name, or no such wait is known: nothing was done.
    NotFound,
    /// The deadline was set.
    TtlSet,
    /// The condition did not hold: nothing was done.
    Unchanged,
    /// `SET` stored the value.
    Stored {
        /// The token under which the key is now held.
        token: FenceToken,
        /// The value before, if any.
        previous: Option<OwnerId>,
    },
    /// `SET` stored nothing, since its condition did not hold.
    NotStored {
        /// The value that stands, if any.
        current: Option<OwnerId>,
    },
    /// Refused before anything was done.
    Refused(Refusal),
    /// How many keys were stored or ended.
    Count(u64),
    /// The keys that were asked for, in order, as they stood.
    Looked(Vec<Option<Holder>>),
    /// One answer for each command of a transaction, in order.
    Transaction(Vec<Outcome>),
    /// A watched key was changed: nothing was done.
    WatchFailed,
    /// What a script answers.
    Replied(ScriptReply),
    /// No script of that digest is held: nothing was done.
    NoScript,
}

/// Who holds a lease, as of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The token of the grant.
    pub token: FenceToken,
    /// Who holds it.
    pub owner: OwnerId,
    /// Milliseconds left; `None` without a deadline.
    pub remaining_ms: Option<u64>,
    /// Milliseconds since the grant.
    pub held_for_ms: u64,
    /// How many stand in the queue.
    pub waiters: u64,
}

/// Why a grant is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// Its time ran out.
    Expired,
    /// Its holder released it.
    Released,
    /// An operator ended it.
    Forced {
        /// Why, in the operator's words.
        reason: SharedBytes,
    },
    /// Another `SET` took the key over.
    Superseded,
    /// `DEL` ended it, or it ran out after `PEXPIRE` had shortened it.
    Overridden,
    /// Its answer could not be delivered.
    Orphaned,
    /// Its request was given up.
    Cancelled,
    /// Not remembered, or never granted.
    Unknown,
}

/// Why a command was refused. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A total bound is reached.
    #[error("limit reached: {kind} (at most {max})")]
    Limit {
        /// Which bound.
        kind: LimitKind,
        /// Its value.
        max: u64,
    },
    /// No floor was raised since the machine began: no token may be issued yet.
    #[error("no token may be issued before this start's token floor is applied")]
    NoTokenFloor,
    /// All tokens below 2^53 are used up.
    #[error("all fencing tokens below 2^53 are used up")]
    TokensExhausted,
    /// The serving node's process is an earlier one than known.
    #[error("a later process of this node has started (incarnation {known})")]
    StaleIncarnation {
        /// The highest incarnation known.
        known: u64,
    },
    /// Another wait has this attachment.
    #[error("another wait has this attachment")]
    AttachmentInUse,
    /// One renewal of many names more leases than the machine takes.
    #[error("one renewal takes at most {max} leases")]
    TooManyRenewals {
        /// Most leases.
        max: u64,
    },
    /// A version below the active one was asked for.
    #[error("machine version {active} is active already")]
    VersionBelowActive {
        /// The active version.
        active: MachineVersion,
    },
    /// One command, or one transaction, names more keys than the machine takes.
    #[error("one command or transaction names at most {max} keys")]
    TooManyKeys {
        /// Most keys.
        max: u64,
    },
    /// A forwarded command that was done with before, or so long ago that its answer is forgotten. It may have been
    /// applied then.
    #[error("a late copy of a command: it may have been applied before")]
    NotRemembered,
}

/// The total bounds that a command can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LimitKind {
    /// Leases held at once.
    Leases,
    /// Bytes of names, owners, metadata and ids.
    Bytes,
    /// Callers in all queues.
    Waiters,
    /// Callers in one queue.
    WaitersPerName,
    /// Request ids remembered.
    Requests,
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Leases => "leases held at once",
            Self::Bytes => "bytes of names, owners, metadata and ids",
            Self::Waiters => "waiting callers",
            Self::WaitersPerName => "waiting callers of one name",
            Self::Requests => "request ids remembered",
        })
    }
}

/// What others must be told once an entry is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A parked caller has its answer. Every attachment that was queued is told exactly once, also one whose caller
    /// is gone.
    Woken {
        /// Which caller.
        attachment: Attachment,
        /// The answer.
        outcome: Outcome,
    },
    /// A lease was granted.
    Granted {
        /// The lease.
        key: LeaseKey,
        /// To whom.
        owner: OwnerId,
        /// Its token.
        token: FenceToken,
        /// When.
        at: Timestamp,
    },
    /// A lease is over.
    Ended {
        /// The lease.
        key: LeaseKey,
        /// Whose it was.
        owner: OwnerId,
        /// Its token.
        token: FenceToken,
        /// When.
        at: Timestamp,
        /// Why.
        reason: EndReason,
    },
    /// Something was said to the subscribers of a channel.
    Published {
        /// The channel.
        channel: SharedBytes,
        /// What was said.
        message: SharedBytes,
    },
}

/// What applying one entry gave.
#[derive(Debug, Default)]
pub struct Applied {
    /// One for each command, in order.
    pub outcomes: Vec<Outcome>,
    /// In the order in which they happened.
    pub effects: Vec<Effect>,
}

/// The log asks for a machine version that this build does not know. The node must stop: going on would make it
/// differ from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the log asks for machine version {asked}, this build knows up to {known}: install a newer build")]
pub struct UnsupportedVersion {
    /// The version asked for.
    pub asked: MachineVersion,
    /// The highest version of this build.
    pub known: MachineVersion,
}
