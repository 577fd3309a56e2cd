//! What the rest of the store knows of a network: calls to a peer, and whoever serves them.
//!
//! The same Raft code runs over TCP and over the network in memory, since it knows these traits alone.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lease_core::limits::ENTRY_BYTES_MAX;
use thiserror::Error;

use super::handshake::HandshakeRefusal;

/// Bytes that surround the body of the largest entry or request at the most.
const ENVELOPE_BYTES_MAX: usize = 1_024 * 1_024;
/// Bytes of anything small: a vote, a heartbeat, a probe, and the answers to all of them.
const SMALL_BYTES_MAX: usize = 64 * 1_024;

/// A way to the peers of one node. Clones share it.
pub trait PeerTransport: Clone + Send + Sync + 'static {
    /// Calls `to` and waits for the answer, at most for `within`.
    ///
    /// # Errors
    /// [`PeerError::may_have_applied`] tells whether the call may have reached the peer.
    ///
    /// # Cancel safety
    /// A call that is dropped may or may not reach the peer.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a part of every call, and a struct of them would be taken apart at once"
    )]
    fn call(
        &self,
        to: u64,
        lane: Lane,
        kind: Kind,
        body: Bytes,
        within: Duration,
    ) -> impl Future<Output = Result<Bytes, PeerError>> + Send;

    /// Learns from the membership where a peer is. What the transport was told at its start stays in force.
    fn introduce(&self, _peer: u64, _address: &str) {}
}

/// Serves the calls of peers.
pub trait PeerHandler: Send + Sync + 'static {
    /// Answers one call.
    ///
    /// # Errors
    /// The peer is told the refusal.
    ///
    /// # Cancel safety
    /// It must be cancel safe: it is dropped when the connection ends, since nobody waits for the answer any more.
    fn handle(
        &self,
        from: u64,
        kind: Kind,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, Refusal>> + Send;
}

impl<H: PeerHandler> PeerHandler for Arc<H> {
    fn handle(
        &self,
        from: u64,
        kind: Kind,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, Refusal>> + Send {
        self.as_ref().handle(from, kind, body)
    }
}

/// Calls of one lane wait for each other; those of different lanes never do, so a snapshot delays no heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Log entries.
    Append,
    /// Whatever keeps a leadership or makes one: small, and never behind anything large.
    Heartbeat,
    /// Snapshots.
    Snapshot,
    /// Requests that one node forwards to another.
    Request,
    /// Probes before a cluster exists: the one lane that asks for no cluster id.
    Formation,
}

/// What is called. The numbers are sent and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Raft's AppendEntries, heartbeats too.
    Append = 1,
    /// Raft's RequestVote.
    Vote = 2,
    /// Whether a vote would be given.
    PreVote = 3,
    /// The leader asks another node to take over.
    TransferLeader = 4,
    /// A snapshot is announced.
    SnapshotBegin = 5,
    /// A piece of a snapshot.
    SnapshotChunk = 6,
    /// A snapshot is complete, and to be installed.
    SnapshotEnd = 7,
    /// A request of the application.
    Request = 8,
    /// Whether a cluster is there, or may be formed.
    FormationProbe = 9,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 5] = [
        Self::Append,
        Self::Heartbeat,
        Self::Snapshot,
        Self::Request,
        Self::Formation,
    ];

    /// Its number in a handshake; never reused.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Append => 1,
            Self::Heartbeat => 2,
            Self::Snapshot => 3,
            Self::Request => 4,
            Self::Formation => 5,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.code() == code)
    }

    /// Whether calls of this kind travel here.
    #[must_use]
    pub const fn carries(self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Append | Self::Heartbeat, Kind::Append)
                | (Self::Heartbeat, Kind::Vote | Kind::PreVote | Kind::TransferLeader)
                | (
                    Self::Snapshot,
                    Kind::SnapshotBegin | Kind::SnapshotChunk | Kind::SnapshotEnd
                )
                | (Self::Request, Kind::Request)
                | (Self::Formation, Kind::FormationProbe)
        )
    }

    /// Bytes of one call's body at the most.
    #[must_use]
    pub const fn call_bytes_max(self) -> usize {
        match self {
            Self::Append | Self::Request => ENTRY_BYTES_MAX + ENVELOPE_BYTES_MAX,
            // A chunk, or a membership.
            Self::Snapshot => 2 * 1_024 * 1_024,
            Self::Heartbeat | Self::Formation => SMALL_BYTES_MAX,
        }
    }

    /// Bytes of one answer's body at the most.
    #[must_use]
    pub const fn answer_bytes_max(self) -> usize {
        match self {
            Self::Request => ENTRY_BYTES_MAX + ENVELOPE_BYTES_MAX,
            Self::Append | Self::Heartbeat | Self::Snapshot | Self::Formation => SMALL_BYTES_MAX,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "append",
            Self::Heartbeat => "heartbeat",
            Self::Snapshot => "snapshot",
            Self::Request => "request",
            Self::Formation => "formation",
        })
    }
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Append,
        Self::Vote,
        Self::PreVote,
        Self::TransferLeader,
        Self::SnapshotBegin,
        Self::SnapshotChunk,
        Self::SnapshotEnd,
        Self::Request,
        Self::FormationProbe,
    ];

    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// Why a peer does not serve a call. The numbers are sent and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[repr(u8)]
#[non_exhaustive]
pub enum Refusal {
    /// It is starting, and does not serve this kind yet. Nothing was applied.
    #[error("it is starting")]
    NotReady = 1,
    /// Its build does not know this kind, or not on this lane. Nothing was applied.
    #[error("it does not serve calls of this kind")]
    Unserved = 2,
    /// The call makes no sense to it. Nothing was applied.
    #[error("it does not understand the call")]
    Malformed = 3,
    /// It has stopped; what the call asked for may have been applied.
    #[error("it has stopped")]
    Stopped = 4,
    /// It has worked on the call for too long; what the call asked for may have been applied.
    #[error("it has given the call up")]
    GivenUp = 5,
    /// A reason of a build that is newer than this one.
    #[error("it refuses, for a reason that this build does not know")]
    Other = 255,
}

impl Refusal {
    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    pub(super) const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::NotReady,
            2 => Self::Unserved,
            3 => Self::Malformed,
            4 => Self::Stopped,
            5 => Self::GivenUp,
            _ => Self::Other,
        }
    }

    /// Whether what the call asked for may have been applied all the same.
    #[must_use]
    pub const fn may_have_applied(self) -> bool {
        matches!(self, Self::Stopped | Self::GivenUp | Self::Other)
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// It never left this node.
    #[error("the call was not sent to node {to}: {reason}")]
    NotSent {
        /// Whom it was for.
        to: u64,
        /// Why not.
        reason: NotSent,
    },
    /// The peer refused it.
    #[error("node {to} refused the call: {refusal}")]
    Refused {
        /// Whom it was for.
        to: u64,
        /// What the peer said.
        refusal: Refusal,
    },
    /// It was sent, and the connection broke before the answer.
    #[error("the connection to node {to} broke before the answer")]
    Broken {
        /// Whom it was for.
        to: u64,
    },
    /// It was sent, and no answer came in time.
    #[error("node {to} did not answer within {within:?}")]
    NoAnswer {
        /// Whom it was for.
        to: u64,
        /// How long it was waited for.
        within: Duration,
    },
}

/// Why a call never left.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotSent {
    /// Nobody has told where the peer is.
    #[error("its address is not known")]
    UnknownPeer,
    /// No connection can be made.
    #[error("it cannot be reached: {reason}")]
    Unreachable {
        /// What the system said.
        reason: String,
    },
    /// It does not take this node for its peer, or this node it.
    #[error("the handshake failed: {refusal}")]
    Handshake {
        /// Why.
        refusal: HandshakeRefusal,
    },
    /// This node is in no cluster yet, and only probes travel without one.
    #[error("this node is in no cluster yet")]
    NoCluster,
    /// Too many calls wait for it already.
    #[error("too many calls wait for it")]
    QueueFull,
    /// The call is longer than its lane allows.
    #[error("{bytes} bytes are more than the {max} of one call")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// What is allowed.
        max: usize,
    },
    /// The time was over before there was a connection.
    #[error("there was no connection in time")]
    NoTime,
    /// This node stops.
    #[error("this node stops")]
    Stopped,
}

impl PeerError {
    pub(super) const fn not_sent(to: u64, reason: NotSent) -> Self {
        Self::NotSent { to, reason }
    }

    /// Whether the call may have reached the peer, and been applied there.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        match self {
            Self::NotSent { .. } => false,
            Self::Refused { refusal, .. } => refusal.may_have_applied(),
            Self::Broken { .. } | Self::NoAnswer { .. } => true,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::NotSent {
                reason: NotSent::TooLong { .. },
                ..
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_of_lanes_kinds_and_refusals_comes_back_as_it_was() {
        for lane in Lane::ALL {
            assert_eq!(Lane::from_code(lane.code()), Some(lane));
        }
        for kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
            assert!(Lane::ALL.iter().any(|lane| lane.carries(kind)), "{kind:?}");
        }
        for refusal in [
            Refusal::NotReady,
            Refusal::Unserved,
            Refusal::Malformed,
            Refusal::Stopped,
            Refusal::GivenUp,
        ] {
            assert_eq!(Refusal::from_code(refusal.code()), refusal);
        }
        assert_eq!(Refusal::from_code(77), Refusal::Other);
        assert_eq!((Lane::from_code(0), Kind::from_code(0)), (None, None));
    }

    #[test]
    fn before_a_cluster_exists_only_probes_travel() {
        for kind in Kind::ALL {
            assert_eq!(Lane::Formation.carries(kind), kind == Kind::FormationProbe);
        }
    }

    #[test]
    fn only_a_call_that_was_sent_may_have_been_applied() {
        let to = 2;
        assert!(!PeerError::not_sent(to, NotSent::NoTime).may_have_applied());
        let refused = |refusal| PeerError::Refused { to, refusal };
        assert!(!refused(Refusal::Malformed).may_have_applied());
        assert!(refused(Refusal::Stopped).may_have_applied());
        assert!(PeerError::Broken { to }.may_have_applied());
        let within = Duration::from_secs(1);
        assert!(PeerError::NoAnswer { to, within }.may_have_applied());
    }
}
