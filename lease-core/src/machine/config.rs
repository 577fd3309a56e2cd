//! The replicated settings of the machine: its version and its total bounds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which rules the machine follows. Raised only by a log entry, so that replicas of different builds cannot differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MachineVersion(u16);

impl MachineVersion {
    /// The rules of the first release.
    pub const FIRST: Self = Self(1);
    /// The latest rules that this build knows.
    pub const LATEST: Self = Self::FIRST;

    /// A version from its number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for MachineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The total bounds of one store. Past a bound the answer is `LIMIT`; nothing that exists is dropped for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Leases held at once. A caller that stands in a queue is admitted already, so at the worst a caller that comes
    /// back to its place is granted one more.
    pub leases_max: u64,
    /// Bytes of names, owners, metadata and ids, of leases, waits and remembered requests.
    pub bytes_max: u64,
    /// Callers in all queues together.
    pub waiters_max: u64,
    /// Callers in one queue.
    pub waiters_per_name_max: u64,
    /// Request ids remembered, live ones included.
    pub requests_max: u64,
    /// How long a request id, and why a token is over, is remembered after the end, in milliseconds of cluster time.
    /// A client must not retry a request later than this.
    pub request_memory_ms: u64,
    /// Reasons of endings remembered. This memory alone drops its oldest when full: the answer is then `unknown`.
    pub endings_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            leases_max: 4_000_000,
            bytes_max: 2 * 1_024 * 1_024 * 1_024,
            waiters_max: 100_000,
            waiters_per_name_max: 10_000,
            requests_max: 4_000_000,
            request_memory_ms: 60_000,
            endings_max: 1_000_000,
        }
    }
}
