//! The whole state as bytes: versioned, and the same on every replica that applied the same log.
//!
//! A snapshot is a magic number, a format number, and then items: each its length as a little-endian `u32` and its
//! bytes, the header first and a closing item with the counts last. Whoever stores it adds a checksum.
//!
//! Items are ordered by what replicas agree on (sequence numbers, tokens), never by slots. Indexes are not stored:
//! they are made anew.

mod restore;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::codec::{self, CodecError};
use super::command::shared_program;
use super::endings::Ending;
use super::leases::{DeadlineSetBy, Record};
use super::requests::{Over, Request, RequestKey, RequestState};
use super::script::Scripts;
use super::sessions::{Session, Sessions};
use super::slab::{SlabView, Slot};
use super::token::TokenCounter;
use super::waits::{Presence, Wait, WaitId};
use super::{EndReason, LeaseKey, LeaseMachine, Limits, MachineVersion};
use crate::script::{Program, ScriptDigest};
use crate::types::{Attachment, FenceToken, Metadata, OwnerId, RequestId, Timestamp, Ttl};

/// What every snapshot starts with.
const MAGIC: [u8; 4] = *b"LSM\n";
/// The format that this build writes.
const FORMAT: u8 = 1;

/// Bytes that are no snapshot of this machine. The node must not serve from them.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Reading failed, or the snapshot is cut off.
    #[error("cannot read the snapshot")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error("this is no snapshot of a lease machine")]
    NotASnapshot,
    /// An item makes no sense, or comes from a newer build.
    #[error("a snapshot item cannot be read")]
    Item(#[source] CodecError),
    /// Items are missing or double.
    #[error("the snapshot is inconsistent: {detail}")]
    Inconsistent {
        /// What is wrong with it.
        detail: String,
    },
    /// It was written under rules that this build does not know.
    #[error(
        "the snapshot has machine version {found}, this build knows up to {known}: install a newer build"
    )]
    UnsupportedVersion {
        /// The version found.
        found: MachineVersion,
        /// The highest version known.
        known: MachineVersion,
    },
}

/// The state of a machine at one moment, which stays as it is while the machine goes on.
#[derive(Debug, Clone)]
pub struct View {
    header: Header,
    records: SlabView<Record>,
    waits: SlabView<Wait>,
    requests: SlabView<Request>,
    endings: SlabView<Ending>,
    sessions: Sessions,
    scripts: Arc<Scripts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    version: MachineVersion,
    limits: Limits,
    now: Timestamp,
    tokens: TokenCounter,
    last_wait: WaitId,
    last_over: u64,
    last_ending: u64,
    incarnations: BTreeMap<u64, u64>,
}

/// One item after the header. Only ever appended to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Item {
    Request(StoredRequest),
    Lease(StoredLease),
    Wait(StoredWait),
    Ending(Ending),
    Close { items: u64 },
    Session { node: u64, session: Session },
    Script(StoredScript),
}

impl Item {
    /// Where an item stands: the order of sections, and within one the number on which replicas agree.
    const fn place(&self) -> (u8, u64) {
        match self {
            Self::Request(request) => (0, request.sequence),
            Self::Lease(lease) => (1, lease.token.get()),
            Self::Wait(wait) => (2, wait.id.get()),
            Self::Ending(ending) => (3, ending.sequence),
            Self::Session { node, .. } => (4, *node),
            Self::Script(script) => (5, script.place),
            Self::Close { .. } => (u8::MAX, u64::MAX),
        }
    }
}

/// A request that is over; the others come with their lease or wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredRequest {
    key: LeaseKey,
    owner: OwnerId,
    id: RequestId,
    token: Option<FenceToken>,
    reason: EndReason,
    at: Timestamp,
    sequence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredLease {
    key: LeaseKey,
    owner: OwnerId,
    token: FenceToken,
    granted_at: Timestamp,
    deadline: Timestamp,
    ttl: Option<Ttl>,
    metadata: Option<Metadata>,
    request: Option<RequestId>,
    deadline_set_by: DeadlineSetBy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredWait {
    id: WaitId,
    key: LeaseKey,
    owner: OwnerId,
    ttl: Ttl,
    metadata: Option<Metadata>,
    request: Option<RequestId>,
    attachment: Attachment,
    attempt_at: Timestamp,
    deadline: Timestamp,
    presence: Presence,
}

/// A script that is held; the one that was used longest ago has the first place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredScript {
    place: u64,
    digest: ScriptDigest,
    #[serde(with = "shared_program")]
    program: Arc<Program>,
}

impl LeaseMachine {
    /// The state as it is now, in some hundred microseconds for a million leases: nothing is copied but pointers.
    #[must_use]
    pub fn view(&self) -> View {
        View {
            header: Header {
                version: self.version,
                limits: self.limits,
                now: self.now,
                tokens: self.tokens,
                last_wait: self.waits.last_id(),
                last_over: self.requests.last_sequence(),
                last_ending: self.endings.last_sequence(),
                incarnations: self.incarnations.clone(),
            },
            records: self.leases.view(),
            waits: self.waits.view(),
            requests: self.requests.view(),
            endings: self.endings.view(),
            sessions: self.sessions.clone(),
            scripts: Arc::clone(&self.scripts),
        }
    }
}

impl View {
    /// The time of the last entry.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.header.now
    }

    /// Writes the state. Replicas that applied the same log write the same bytes.
    ///
    /// Takes about a second for a million leases, so it belongs on a thread that serves nobody.
    ///
    /// # Errors
    /// Whatever `out` answers.
    pub fn encode(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&MAGIC)?;
        out.write_all(&[FORMAT])?;
        write_item(out, &self.header)?;
        let mut items: u64 = 0;
        let mut write = |item: Item| {
            items = items.saturating_add(1);
            write_item(out, &item)
        };
        for item in sorted(
            self.requests
                .iter()
                .filter_map(|(_, request)| stored_request(request)),
        ) {
            write(item)?;
        }
        for item in sorted(
            self.records
                .iter()
                .filter_map(|(_, record)| self.stored_lease(record)),
        ) {
            write(item)?;
        }
        for item in sorted(self.waits.iter().filter_map(|(_, wait)| self.stored_wait(wait))) {
            write(item)?;
        }
        let endings = self
            .endings
            .iter()
            .map(|(_, ending)| (ending.sequence, Item::Ending(ending.clone())));
        for item in sorted(endings) {
            write(item)?;
        }
        for (node, session) in self.sessions.iter() {
            let session = session.clone();
            write(Item::Session { node, session })?;
        }
        for (place, (digest, program)) in (0..).zip(self.scripts.in_order()) {
            let program = Arc::clone(program);
            write(Item::Script(StoredScript {
                place,
                digest,
                program,
            }))?;
        }
        write_item(out, &Item::Close { items })
    }

    fn stored_lease(&self, record: &Record) -> Option<(FenceToken, Item)> {
        let hold = record.hold.as_ref()?;
        let stored = StoredLease {
            key: record.key.clone(),
            owner: hold.owner.clone(),
            token: hold.token,
            granted_at: hold.granted_at,
            deadline: hold.deadline,
            ttl: hold.ttl,
            metadata: hold.metadata.clone(),
            request: self.request_id(hold.request),
            deadline_set_by: hold.deadline_set_by,
        };
        Some((hold.token, Item::Lease(stored)))
    }

    fn stored_wait(&self, wait: &Wait) -> Option<(WaitId, Item)> {
        let stored = StoredWait {
            id: wait.id,
            key: self.records.get(wait.record)?.key.clone(),
            owner: wait.owner.clone(),
            ttl: wait.ttl,
            metadata: wait.metadata.clone(),
            request: self.request_id(wait.request),
            attachment: wait.attachment,
            attempt_at: wait.attempt_at,
            deadline: wait.deadline,
            presence: wait.presence,
        };
        Some((wait.id, Item::Wait(stored)))
    }

    fn request_id(&self, request: Option<Slot>) -> Option<RequestId> {
        Some(self.requests.get(request?)?.key.id.clone())
    }
}

fn stored_request(request: &Request) -> Option<(u64, Item)> {
    let RequestState::Over(over) = &request.state else {
        return None;
    };
    let RequestKey { key, owner, id } = request.key.clone();
    let Over {
        token,
        reason,
        at,
        sequence,
    } = over.clone();
    Some((
        sequence,
        Item::Request(StoredRequest {
            key,
            owner,
            id,
            token,
            reason,
            at,
            sequence,
        }),
    ))
}

fn sorted<K: Ord + Copy>(items: impl Iterator<Item = (K, Item)>) -> impl Iterator<Item = Item> {
    let mut items: Vec<(K, Item)> = items.collect();
    items.sort_unstable_by_key(|(key, _)| *key);
    items.into_iter().map(|(_, item)| item)
}

fn write_item<T: Serialize>(out: &mut impl Write, item: &T) -> io::Result<()> {
    let bytes = codec::encode("snapshot item", item).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&bytes)
}
