//! A command that a node forwarded to the leader, under a number of its own.

use serde::{Deserialize, Serialize};

use super::{Command, KeyCommand};

/// What a node calls a command that it forwards, so that it can forward it again when no answer came: it is applied once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Once {
    /// The node that forwards it.
    pub node: u64,
    /// Which life of that node.
    pub incarnation: u64,
    /// Its number among all that this life forwards.
    pub number: u64,
    /// The node has done with all numbers below: whatever of them still arrives is a late copy.
    pub settled_below: u64,
}

/// One command of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Its number, if applying it twice could do harm.
    pub once: Option<Once>,
    /// What to do.
    pub command: Command,
}

impl From<Command> for Submission {
    fn from(command: Command) -> Self {
        Self { once: None, command }
    }
}

/// Whether applying a command twice is as good as once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It is: it may be sent again as it is.
    Harmless,
    /// The second time could take, end or change what is somebody else's by then, or be answered otherwise.
    NeedsNumber,
}

impl Command {
    /// Whether applying it twice is as good as once.
    #[must_use]
    pub const fn repeat(&self) -> Repeat {
        match self {
            Self::Acquire(acquire) if acquire.request.is_some() => Repeat::Harmless,
            Self::Key(KeyCommand::Look { .. }) => Repeat::Harmless,
            Self::Acquire(_)
            | Self::Release { .. }
            | Self::ReleaseByOwner { .. }
            | Self::SetTtl { .. }
            | Self::Force { .. }
            | Self::Cancel { .. }
            | Self::Set(_)
            | Self::Delete { .. }
            | Self::Key(_)
            | Self::Transaction { .. }
            | Self::RunScript(_) => Repeat::NeedsNumber,
            Self::Tick
            | Self::Renew(_)
            | Self::RenewMany(_)
            | Self::Detach { .. }
            | Self::NodeStarted { .. }
            | Self::NodeLost { .. }
            | Self::RaiseTokenFloor { .. }
            | Self::Activate { .. }
            | Self::SetLimits(_)
            | Self::Touch { .. }
            | Self::Withdraw { .. }
            | Self::LoadScript { .. }
            | Self::FlushScripts => Repeat::Harmless,
        }
    }
}
