//! The first words on a connection: who calls, whom, in which cluster, and which version both speak.
//!
//! ```text
//! magic (8)  length (u16)  checksum of the fields (u32)  fields
//! hello:     version min, max (u16, u16)  lane (u8)  in a cluster (u8)  cluster  from  to (u64 each)
//! welcome:   verdict (u8)  version (u16)  version min, max (u16, u16)  node (u64)  in a cluster (u8)  cluster (u64)
//! ```
//! Numbers are little-endian. This layout never changes: later versions append fields, which earlier ones skip. So two
//! builds always understand each other's refusal.
//!
//! Reaching the wrong node, or oneself, would break Raft; both ends check, and both say why.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use bytes::{Buf, BufMut as _};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::identity::PeerIdentity;
use super::transport::Lane;

const MAGIC: [u8; 8] = *b"LSPEERS\n";
/// Fields of later versions fit too.
const FIELDS_BYTES_MAX: usize = 1_024;

/// Versions of the frames and of what is in them that this build speaks.
pub(super) const SPOKEN: Versions = Versions { min: 1, max: 1 };

/// The versions from the lowest to the highest that a build speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The lowest.
    pub min: u16,
    /// The highest.
    pub max: u16,
}

impl Versions {
    /// The highest that both speak.
    fn agree(self, other: Self) -> Option<u16> {
        let highest = self.max.min(other.max);
        (highest >= self.min.max(other.min)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)
    }
}

/// Why two ends do not take each other for peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeRefusal {
    /// The other end is no node of a lease store, or its bytes were damaged.
    #[error("the other end does not speak the protocol of lease-store peers")]
    NoPeer,
    /// The builds have no version in common.
    #[error("this build speaks versions {ours}, the other end {theirs}: upgrade one of them step by step")]
    Version {
        /// Of this end.
        ours: Versions,
        /// Of the other end.
        theirs: Versions,
    },
    /// The other end is in another cluster.
    #[error("this node is in cluster {}, the other end in {}", cluster(*ours), cluster(*theirs))]
    OtherCluster {
        /// Of this end.
        ours: Option<u64>,
        /// Of the other end.
        theirs: Option<u64>,
    },
    /// Another node answers at the address than the one that was called.
    #[error("node {asked} was called, and node {found} is there: check the addresses of the peers")]
    OtherNode {
        /// Which was called.
        asked: u64,
        /// Which is there.
        found: u64,
    },
    /// A node has called itself, or another one has its id.
    #[error("both ends are node {node}: an address is wrong, or an id is used twice")]
    Oneself {
        /// The id of both.
        node: u64,
    },
    /// The other end has too many connections.
    #[error("the other end has too many connections")]
    Busy,
    /// The other end refuses for a reason that this build does not know.
    #[error("the other end refuses, for the reason {code} of a newer build")]
    Other {
        /// The number of the reason.
        code: u8,
    },
}

fn cluster(id: Option<u64>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| format!("{id:016x}"))
}

/// What was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) from: u64,
    pub(super) lane: Lane,
    pub(super) version: u16,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum HandshakeError {
    #[error("{0}")]
    Refused(HandshakeRefusal),
    #[error("the stream failed")]
    Io(#[from] io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hello {
    spoken: Versions,
    lane: u8,
    cluster: Option<u64>,
    from: u64,
    to: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Welcome {
    verdict: u8,
    version: u16,
    spoken: Versions,
    node: u64,
    cluster: Option<u64>,
}

const ACCEPTED: u8 = 0;
const VERSION: u8 = 1;
const OTHER_CLUSTER: u8 = 2;
const OTHER_NODE: u8 = 3;
const ONESELF: u8 = 4;
const BUSY: u8 = 5;
const NO_PEER: u8 = 6;

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        fields.put_u16_le(self.spoken.min);
        fields.put_u16_le(self.spoken.max);
        fields.put_u8(self.lane);
        put_cluster(&mut fields, self.cluster);
        fields.put_u64_le(self.from);
        fields.put_u64_le(self.to);
        envelope(&fields)
    }

    fn decode(mut fields: &[u8]) -> Option<Self> {
        Some(Self {
            spoken: take_versions(&mut fields)?,
            lane: fields.try_get_u8().ok()?,
            cluster: take_cluster(&mut fields)?,
            from: fields.try_get_u64_le().ok()?,
            to: fields.try_get_u64_le().ok()?,
        })
    }

    /// What the called node says to it.
    fn judge(&self, identity: &PeerIdentity, room: Room) -> Result<Caller, HandshakeRefusal> {
        let (ours, theirs) = (SPOKEN, self.spoken);
        let version = ours
            .agree(theirs)
            .ok_or(HandshakeRefusal::Version { ours, theirs })?;
        let node = identity.node();
        if self.from == node {
            return Err(HandshakeRefusal::Oneself { node });
        }
        if self.to != node {
            let asked = self.to;
            return Err(HandshakeRefusal::OtherNode { asked, found: node });
        }
        let lane = Lane::from_code(self.lane).ok_or(HandshakeRefusal::NoPeer)?;
        same_cluster(lane, identity.cluster(), self.cluster)?;
        match room {
            Room::There => Ok(Caller {
                from: self.from,
                lane,
                version,
            }),
            Room::None => Err(HandshakeRefusal::Busy),
        }
    }
}

impl Welcome {
    fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        fields.put_u8(self.verdict);
        fields.put_u16_le(self.version);
        fields.put_u16_le(self.spoken.min);
        fields.put_u16_le(self.spoken.max);
        fields.put_u64_le(self.node);
        put_cluster(&mut fields, self.cluster);
        envelope(&fields)
    }

    fn decode(mut fields: &[u8]) -> Option<Self> {
        Some(Self {
            verdict: fields.try_get_u8().ok()?,
            version: fields.try_get_u16_le().ok()?,
            spoken: take_versions(&mut fields)?,
            node: fields.try_get_u64_le().ok()?,
            cluster: take_cluster(&mut fields)?,
        })
    }

    /// What the caller makes of it: the version agreed on. The called node's word is checked, not trusted.
    fn judge(&self, identity: &PeerIdentity, hello: &Hello, lane: Lane) -> Result<u16, HandshakeRefusal> {
        let (ours, theirs) = (SPOKEN, self.spoken);
        match self.verdict {
            NO_PEER => return Err(HandshakeRefusal::NoPeer),
            BUSY => return Err(HandshakeRefusal::Busy),
            VERSION => return Err(HandshakeRefusal::Version { ours, theirs }),
            _ => {}
        }
        if self.node == identity.node() {
            let node = self.node;
            return Err(HandshakeRefusal::Oneself { node });
        }
        if self.node != hello.to {
            let (asked, found) = (hello.to, self.node);
            return Err(HandshakeRefusal::OtherNode { asked, found });
        }
        same_cluster(lane, hello.cluster, self.cluster)?;
        match self.verdict {
            ACCEPTED if ours.agree(theirs) == Some(self.version) => Ok(self.version),
            ACCEPTED => Err(HandshakeRefusal::Version { ours, theirs }),
            code => Err(HandshakeRefusal::Other { code }),
        }
    }
}

fn same_cluster(lane: Lane, ours: Option<u64>, theirs: Option<u64>) -> Result<(), HandshakeRefusal> {
    // A probe asks whether there is a cluster.
    if lane == Lane::Formation || (ours.is_some() && ours == theirs) {
        Ok(())
    } else {
        Err(HandshakeRefusal::OtherCluster { ours, theirs })
    }
}

/// Whether the called node takes one more connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    There,
    None,
}

/// Introduces this node as the caller; answers with the version agreed on.
///
/// Not cancel safe: the stream is useless then.
pub(super) async fn call<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    identity: &PeerIdentity,
    to: u64,
    lane: Lane,
) -> Result<u16, HandshakeError> {
    let hello = Hello {
        spoken: SPOKEN,
        lane: lane.code(),
        cluster: identity.cluster(),
        from: identity.node(),
        to,
    };
    stream.write_all(&hello.encode()).await?;
    stream.flush().await?;
    let fields = read_fields(stream).await?;
    let judged = match Welcome::decode(&fields) {
        Some(welcome) => welcome.judge(identity, &hello, lane),
        None => Err(HandshakeRefusal::NoPeer),
    };
    judged.map_err(HandshakeError::Refused)
}

/// Hears who calls, and says whether it is welcome.
///
/// Not cancel safe: the stream is useless then.
pub(super) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    identity: &PeerIdentity,
    room: Room,
) -> Result<Caller, HandshakeError> {
    let heard = read_fields(stream).await;
    let judged = match heard {
        Ok(fields) => match Hello::decode(&fields) {
            Some(hello) => hello.judge(identity, room),
            None => Err(HandshakeRefusal::NoPeer),
        },
        // Whoever does not even begin right is told nothing.
        Err(error) => return Err(error),
    };
    let (verdict, version) = match &judged {
        Ok(caller) => (ACCEPTED, caller.version),
        Err(refusal) => (verdict(*refusal), 0),
    };
    let welcome = Welcome {
        verdict,
        version,
        spoken: SPOKEN,
        node: identity.node(),
        cluster: identity.cluster(),
    };
    stream.write_all(&welcome.encode()).await?;
    stream.flush().await?;
    judged.map_err(HandshakeError::Refused)
}

const fn verdict(refusal: HandshakeRefusal) -> u8 {
    match refusal {
        HandshakeRefusal::Version { .. } => VERSION,
        HandshakeRefusal::OtherCluster { .. } => OTHER_CLUSTER,
        HandshakeRefusal::OtherNode { .. } => OTHER_NODE,
        HandshakeRefusal::Oneself { .. } => ONESELF,
        HandshakeRefusal::Busy => BUSY,
        HandshakeRefusal::NoPeer => NO_PEER,
        HandshakeRefusal::Other { code } => code,
    }
}

fn envelope(fields: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let length = u16::try_from(fields.len()).unwrap_or(u16::MAX);
    out.put_u16_le(length);
    out.put_u32_le(crc32fast::hash(fields));
    out.put_slice(fields);
    out
}

async fn read_fields<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Vec<u8>, HandshakeError> {
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic).await?;
    if magic != MAGIC {
        return Err(HandshakeError::Refused(HandshakeRefusal::NoPeer));
    }
    let length = usize::from(stream.read_u16_le().await?);
    let sum = stream.read_u32_le().await?;
    if length > FIELDS_BYTES_MAX {
        return Err(HandshakeError::Refused(HandshakeRefusal::NoPeer));
    }
    let mut fields = vec![0; length];
    stream.read_exact(&mut fields).await?;
    if crc32fast::hash(&fields) != sum {
        return Err(HandshakeError::Refused(HandshakeRefusal::NoPeer));
    }
    Ok(fields)
}

fn put_cluster(fields: &mut Vec<u8>, cluster: Option<u64>) {
    fields.put_u8(u8::from(cluster.is_some()));
    fields.put_u64_le(cluster.unwrap_or(0));
}

fn take_cluster(fields: &mut &[u8]) -> Option<Option<u64>> {
    let known = fields.try_get_u8().ok()?;
    let cluster = fields.try_get_u64_le().ok()?;
    match known {
        0 => Some(None),
        1 => Some(Some(cluster)),
        _ => None,
    }
}

fn take_versions(fields: &mut &[u8]) -> Option<Versions> {
    let min = fields.try_get_u16_le().ok()?;
    let max = fields.try_get_u16_le().ok()?;
    Some(Versions { min, max })
}
