//! What the log holds. A command is a log format, not a promise to clients: servers convert requests by hand.
//!
//! Tags are the positions of the variants. They are never reused or reordered: new ones go to the end, and a
//! command that older nodes do not know is proposed only once [`Command::Activate`] has raised the machine version.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{KeyCommand, Limits, MachineVersion, Once, Watched};
use crate::script::{Program, ScriptDigest};
use crate::types::{
    Attachment, Database, FenceToken, LeaseName, Metadata, OwnerId, RequestId, SharedBytes, Ttl,
};

/// A name within its database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseKey {
    /// The database.
    pub database: Database,
    /// The name.
    pub name: LeaseName,
}

impl LeaseKey {
    /// The key of `name` in `database`.
    #[must_use]
    pub const fn new(database: Database, name: LeaseName) -> Self {
        Self { database, name }
    }
}

/// One change of the lease machine, as the log holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Nothing but the passing of time: ends what is due.
    Tick,
    /// Takes a lease, or waits for it.
    Acquire(Acquire),
    /// Extends a lease that still stands.
    Renew(Renewal),
    /// Extends several leases, each on its own: one may be lost while the others are renewed.
    RenewMany(Vec<Renewal>),
    /// Ends a lease by its token.
    Release {
        /// The lease.
        key: LeaseKey,
        /// The token of the grant to end. Any other grant of the name is untouched.
        token: FenceToken,
        /// On whose behalf.
        cause: ReleaseCause,
    },
    /// Ends a lease if `owner` holds it (compare-and-delete).
    ReleaseByOwner {
        /// The lease.
        key: LeaseKey,
        /// The owner that must hold it.
        owner: OwnerId,
    },
    /// Sets the time to live of a lease, whoever holds it (`PEXPIRE`, `PERSIST`).
    SetTtl {
        /// The lease.
        key: LeaseKey,
        /// From now on; `None` takes the deadline away.
        ttl: Option<Ttl>,
        /// When to do so.
        condition: TtlCondition,
    },
    /// Ends a lease against its holder's will, by an operator.
    Force {
        /// The lease.
        key: LeaseKey,
        /// Why, in the operator's words.
        reason: SharedBytes,
    },
    /// Gives a request up: ends its wait, or its lease if it was granted.
    Cancel {
        /// The lease.
        key: LeaseKey,
        /// The owner that the request named.
        owner: OwnerId,
        /// The request.
        request: RequestId,
    },
    /// The caller behind a wait is gone. With a request id the wait keeps its place for a while, for the retry.
    Detach {
        /// Which parked caller. A wait that was attached anew in the meantime is untouched.
        attachment: Attachment,
    },
    /// A node has begun a new life: callers parked in its earlier ones are gone.
    NodeStarted {
        /// The node.
        node: u64,
        /// Its new incarnation; a lower one than known is refused.
        incarnation: u64,
    },
    /// A node is lost: callers parked there are gone.
    NodeLost {
        /// The node.
        node: u64,
        /// Its last known incarnation; waits of a later one are untouched.
        incarnation: u64,
    },
    /// Lifts the token counter to at least `floor` and opens it: the next token lies above.
    RaiseTokenFloor {
        /// The floor; 0 lifts nothing.
        floor: u64,
    },
    /// Raises the machine version, once every node understands it.
    Activate {
        /// The new version; a lower one than active is refused.
        version: MachineVersion,
    },
    /// Replaces the total bounds.
    SetLimits(Limits),
    /// Stores a value under a key, as Redis's `SET` does: the value is the owner.
    Set(Set),
    /// Ends a lease, whoever holds it, as Redis's `DEL` does.
    Delete {
        /// The key.
        key: LeaseKey,
    },
    /// Brings one name up to date, for a read whose answer hangs on a deadline that has passed.
    Touch {
        /// The name.
        key: LeaseKey,
    },
    /// A command on Redis's keys that has no tag of its own above.
    Key(KeyCommand),
    /// Several commands on keys with nothing in between, if no watched key was changed (`EXEC`).
    Transaction {
        /// Keys as they were seen.
        watched: Vec<Watched>,
        /// The commands, in order.
        commands: Vec<KeyCommand>,
    },
    /// Nobody waits for the answer of a forwarded command any more: what it was granted is released, and it is not
    /// applied if it comes yet.
    Withdraw {
        /// The number it was forwarded under.
        once: Once,
        /// The lease that it asked for.
        key: LeaseKey,
    },
    /// Holds a script, for those who name it by its digest.
    LoadScript {
        /// Its name.
        digest: ScriptDigest,
        /// What it does.
        #[serde(with = "shared_program")]
        program: Arc<Program>,
    },
    /// Runs a script.
    RunScript(RunScript),
    /// Forgets all scripts that are held.
    FlushScripts,
}

/// A request for a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquire {
    /// The lease.
    pub key: LeaseKey,
    /// Who asks.
    pub owner: OwnerId,
    /// How long the lease lasts from its grant.
    pub ttl: Ttl,
    /// Whether to stand in the queue while it is held.
    pub wait: Option<Wait>,
    /// Makes a retry of this request get the same token.
    pub request: Option<RequestId>,
    /// What others shall see beside the lease.
    pub metadata: Option<Metadata>,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// How long at the most, in milliseconds from the entry that carries the request; 0 is no wait.
    pub for_ms: u64,
    /// Whom to tell.
    pub attachment: Attachment,
}

/// One lease to extend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The lease.
    pub key: LeaseKey,
    /// The token of the grant to extend.
    pub token: FenceToken,
    /// From now on; `None` takes the last one given.
    pub ttl: Option<Ttl>,
}

/// On whose behalf a lease is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseCause {
    /// Its holder is done.
    Holder,
    /// The serving node could not deliver the grant: its caller was gone before the answer could be written.
    Orphaned,
}

/// When a new time to live is taken over, as the options of Redis's `PEXPIRE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TtlCondition {
    /// In any case.
    Always,
    /// Only if there is no deadline yet (`NX`).
    IfPersistent,
    /// Only if there is a deadline (`XX`).
    IfExpiring,
    /// Only if it ends later than now set (`GT`; no deadline counts as infinitely late).
    IfLater,
    /// Only if it ends earlier than now set (`LT`).
    IfEarlier,
    /// Only if there is a deadline, and it ends earlier than that (`XX` and `LT`).
    IfExpiringAndEarlier,
}

/// Redis's `SET`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// The key.
    pub key: LeaseKey,
    /// The value, which names the owner.
    pub value: OwnerId,
    /// The deadline from now on.
    pub expiry: SetExpiry,
    /// When to store.
    pub condition: SetCondition,
}

/// What `SET` does to the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetExpiry {
    /// Takes it away: the key stays until somebody deletes it.
    Never,
    /// So long from now.
    In(Ttl),
    /// Leaves it as it is (`KEEPTTL`).
    Keep,
    /// It has passed already (`PXAT` with a time that is over): the key is stored, and ends at once.
    Over,
}

/// When `SET` stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetCondition {
    /// In any case: supersedes whoever holds the key.
    Always,
    /// Only if nobody holds it (`NX`).
    IfAbsent,
    /// Only if somebody holds it (`XX`).
    IfPresent,
    /// Only if this value is stored (`IFEQ`).
    IfEqual(OwnerId),
    /// Only if another value, or none, is stored (`IFNE`).
    IfNotEqual(OwnerId),
    /// Only if a value of this [`super::digest`] is stored (`IFDEQ`).
    IfDigestEqual(u64),
    /// Only if a value of another digest, or none, is stored (`IFDNE`).
    IfDigestNotEqual(u64),
}

/// A script and what it is called with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunScript {
    /// Which script.
    pub source: ScriptSource,
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

/// Which script is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptSource {
    /// One that is held.
    Held {
        /// Its name.
        digest: ScriptDigest,
    },
    /// This one, which is held from then on.
    Given {
        /// Its name.
        digest: ScriptDigest,
        /// What it does.
        #[serde(with = "shared_program")]
        program: Arc<Program>,
    },
}

impl ScriptSource {
    /// The script's name.
    #[must_use]
    pub const fn digest(&self) -> ScriptDigest {
        match self {
            Self::Held { digest } | Self::Given { digest, .. } => *digest,
        }
    }
}

/// A program that a machine shares with its snapshots.
pub(super) mod shared_program {
    use super::{Arc, Deserialize, Deserializer, Program, Serialize, Serializer};

    pub(in crate::machine) fn serialize<S: Serializer>(
        program: &Arc<Program>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        program.as_ref().serialize(serializer)
    }

    pub(in crate::machine) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Program>, D::Error> {
        Program::deserialize(deserializer).map(Arc::new)
    }
}
