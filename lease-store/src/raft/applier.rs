//! What Raft drives: the thing that applies entries, shows a view of itself, and is replaced by a snapshot.
//!
//! The rest of this folder is written against these traits and knows no lease.

use std::io::{self, Read, Write};

use bytes::Bytes;
use lease_core::Timestamp;

/// A deterministic state machine: the same entries give the same state and the same outcomes on every node.
pub trait Applier: Send + Sync + 'static {
    /// What the proposer of an entry gets back.
    type Outcome: Send + Sync + 'static;
    /// A consistent picture of the state, unchanged by entries applied later.
    type View: SnapshotView;
    /// A whole state, decoded from a snapshot and not in force yet.
    type State: Send + 'static;

    /// Applies one entry. It must never block, and a refusal is an outcome, not an error.
    ///
    /// # Errors
    /// This build cannot apply the entry: the node stops before it does anything that other nodes would not do.
    fn apply(&mut self, at: Timestamp, body: &Bytes) -> Result<Self::Outcome, CannotApply>;

    /// Takes a view. It is called between two entries and holds them up, so it must be cheap.
    fn view(&self) -> Self::View;

    /// Decodes a whole state. It is called where blocking is allowed, with bytes whose checksums were right.
    ///
    /// # Errors
    /// The bytes are no snapshot that this build knows.
    fn decode(from: &mut dyn Read) -> io::Result<Self::State>;

    /// Puts a decoded state in force and gives back the one before it, which is then freed where blocking is allowed.
    fn replace(&mut self, state: Self::State) -> Self::State;
}

/// A view that can be written down.
pub trait SnapshotView: Send + Sync + 'static {
    /// Writes the state in its canonical form. It is called where blocking is allowed.
    ///
    /// # Errors
    /// `out` failed.
    fn encode(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Why an entry cannot be applied by this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotApply {
    /// The bytes of the entry are no commands that this build knows.
    #[error("the entry is malformed: {reason}")]
    Malformed {
        /// What is wrong with them.
        reason: String,
    },
    /// The entry needs a newer version of the machine.
    #[error("the entry needs machine version {needed}, this build has {supported}: start a newer build")]
    UnsupportedVersion {
        /// The version that the entry activates.
        needed: u32,
        /// The highest version of this build.
        supported: u32,
    },
}
