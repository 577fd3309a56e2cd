use std::fmt;

use serde::{Deserialize, Serialize};

/// Ties a waiting caller to the process that will answer it.
///
/// A caller that comes back gets a new attachment and keeps its place in the queue; whatever still names the old
/// attachment (a late cancel) then touches nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attachment {
    /// The node that parks the caller.
    pub node: u64,
    /// Which life of that node: raised on disk before each start serves.
    pub incarnation: u64,
    /// Counts the callers parked in that life.
    pub number: u64,
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.node, self.incarnation, self.number)
    }
}
