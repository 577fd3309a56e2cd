use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FenceToken, LeaseName};

/// What a writer shows to the resource it writes to: under which lease, and with which token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// The exact name of the lease that issued the token. Tokens of different names do not compare.
    pub resource: LeaseName,
    /// The token of the grant.
    pub token: FenceToken,
}

impl Fence {
    /// The fence of `token` on `resource`.
    #[must_use]
    pub const fn new(resource: LeaseName, token: FenceToken) -> Self {
        Self { resource, token }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.resource, self.token)
    }
}
