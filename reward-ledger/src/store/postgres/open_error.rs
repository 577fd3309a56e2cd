//! Why a database could not be opened as a ledger.

use thiserror::Error;

use crate::error::{Cause, InvalidConfig, StorageFailure};

/// Why a database could not be opened as a ledger. No claim was applied.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenPostgresError {
    /// The URL does not hold together.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The server could not be reached, or refused the session.
    #[error("could not connect to the database")]
    Connect {
        /// What the server or the system said.
        #[source]
        source: StorageFailure,
    },
    /// The server would acknowledge commits that a crash of its machine takes back.
    #[error("the server runs with {setting} off: what it acknowledges could be lost; switch it on")]
    UnsafeSetting {
        /// The setting.
        setting: &'static str,
    },
    /// The system gave no random bytes to name a connection with.
    #[error("the system has no random bytes")]
    NoRandomness,
    /// The tables are those of a newer version of this program.
    #[error("the database is at migration {found}, this version knows {known}: use the newer program")]
    Newer {
        /// Last migration of the database.
        found: i32,
        /// Last migration that this version knows.
        known: i32,
    },
    /// A migration could not be applied; the database is as it was before.
    #[error("migration {version} ({name}) could not be applied")]
    Migration {
        /// Its number.
        version: i32,
        /// Its name.
        name: &'static str,
        /// What the server said.
        #[source]
        source: Cause,
    },
}

impl OpenPostgresError {
    /// Whether the same call may succeed later without anybody changing anything: the server may come back.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::NoRandomness)
    }

    /// Never: opening applies no claim.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}
