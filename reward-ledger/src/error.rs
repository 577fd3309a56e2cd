//! Errors, an enum for each operation. Each says whether a retry can help and whether anything may have been applied.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::types::InvalidField;

/// Why a claim got no answer. A refusal is no error: see [`ClaimOutcome`](crate::ClaimOutcome).
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The claim shows no fence, and this ledger was not opened to allow that. Nothing was applied.
    #[error("this ledger takes no unfenced claims")]
    UnfencedNotAllowed,
    /// More claims than one batch may hold. Nothing was applied.
    #[error("a batch holds at most {max} claims, this one has {len}")]
    BatchTooLarge {
        /// Most claims allowed.
        max: usize,
        /// Claims found.
        len: usize,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClaimError {
    /// Whether the same claim may succeed when sent again to this ledger object.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnfencedNotAllowed | Self::BatchTooLarge { .. } => false,
            Self::Store(error) => error.is_retryable(),
        }
    }

    /// Whether the claim may have been granted all the same. Then send the same claim again, here or after a restart.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        match self {
            Self::UnfencedNotAllowed | Self::BatchTooLarge { .. } => false,
            Self::Store(error) => error.may_have_applied(),
        }
    }
}

/// Why a fence was not reset.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ResetError {
    /// Resource or reason break their rules. Nothing was applied.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ResetError {
    /// Whether the same call may succeed when made again on this ledger object.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Store(error) => error.is_retryable(),
        }
    }

    /// Whether the fence may have been reset all the same.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Store(error) => error.may_have_applied(),
        }
    }
}

/// Why a store could not answer.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The ledger was closed before it looked at the request. Nothing was applied.
    #[error("the ledger is closed")]
    Closed,
    /// The store met its first storage error, now or earlier, and answers nothing any more: what the memory holds
    /// may differ from what the disk holds. Stop the process; what was acknowledged is there after a restart.
    #[error(
        "the ledger stopped at a storage error ({certainty}); stop this process and open the ledger again"
    )]
    Stopped {
        /// Whether this request may have been applied.
        certainty: Certainty,
        /// The first storage error.
        #[source]
        failure: Arc<StorageFailure>,
    },
    /// The writer has made no step for longer than it is given. It may recover.
    #[error("the ledger's writer is stuck ({certainty})")]
    Stalled {
        /// Whether this request may have been applied.
        certainty: Certainty,
    },
    /// The database could not be reached, did not answer in time, or refused; or a row in it does not read back. It
    /// may recover, and every other request may succeed.
    #[error("the ledger's database did not do it ({certainty})")]
    Unavailable {
        /// Whether this request may have been applied.
        certainty: Certainty,
        /// The last error met.
        #[source]
        failure: Arc<StorageFailure>,
    },
    /// The store holds as many rows as it may. Nothing was applied.
    #[error("the ledger is full: it may hold {rows_max} rows")]
    Full {
        /// Most rows allowed.
        rows_max: usize,
    },
}

impl StoreError {
    /// Whether the same request may succeed when made again on this ledger object.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Stalled { .. } => true,
            Self::Unavailable { .. } => !self.is_corrupt_row(),
            Self::Closed | Self::Stopped { .. } | Self::Full { .. } => false,
        }
    }

    /// Whether the request may have been applied all the same.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        match self {
            Self::Stopped { certainty, .. }
            | Self::Stalled { certainty }
            | Self::Unavailable { certainty, .. } => {
                matches!(certainty, Certainty::Unknown)
            }
            Self::Closed | Self::Full { .. } => false,
        }
    }

    /// Whether it is one row that does not read back.
    pub(crate) fn is_corrupt_row(&self) -> bool {
        matches!(self, Self::Unavailable { failure, .. } if matches!(**failure, StorageFailure::CorruptRow { .. }))
    }

    /// Whether the process must stop: this ledger object will never answer again.
    #[must_use]
    pub const fn must_stop(&self) -> bool {
        matches!(self, Self::Stopped { .. })
    }
}

/// What is known of a request that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Nothing was applied.
    NotApplied,
    /// It may have been applied.
    Unknown,
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotApplied => "nothing was applied",
            Self::Unknown => "it may have been applied",
        })
    }
}

/// A cause that comes from a library or the system.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// A storage error. The first one stops the store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageFailure {
    /// The files could not be read, written or made durable.
    #[error("could not {action}")]
    Files {
        /// What was being done.
        action: &'static str,
        /// What the system or the library said.
        #[source]
        source: Cause,
    },
    /// A row does not read back as what was written.
    #[error("the stored {record} row {key} is corrupt")]
    CorruptRow {
        /// Its kind.
        record: &'static str,
        /// Its key, escaped.
        key: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// The database could not be reached, did not answer in time, or refused.
    #[error("could not {action} in the database")]
    Database {
        /// What was being done.
        action: &'static str,
        /// What the server or the driver said.
        #[source]
        source: Cause,
    },
    /// The database would acknowledge commits that a crash of its machine takes back.
    #[error("the database runs with {setting} off: what it acknowledges could be lost")]
    UnsafeSetting {
        /// The setting.
        setting: &'static str,
    },
    /// The thread that writes died.
    #[error("the ledger's writer thread died")]
    WriterDied,
}

/// A configuration that does not hold together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidConfig {
    /// The cache is too small to hold the pages of one claim.
    #[error("the cache must have at least {min} bytes, not {value}")]
    CacheBytes {
        /// Fewest bytes allowed.
        min: u64,
        /// Bytes configured.
        value: u64,
    },
    /// The policy of a publisher does not hold together.
    #[error("{problem}")]
    Publish {
        /// What does not fit, with its values.
        problem: String,
    },
    /// The outside server's address, or how it is to be reached, is not valid.
    #[error("{problem}")]
    Target {
        /// What is wrong.
        problem: String,
    },
    /// The database's URL does not parse.
    #[error("the database's URL: {problem}")]
    DatabaseUrl {
        /// What is wrong, without values: one of them may be a password.
        problem: String,
    },
    /// The certificate authorities that the database's certificate is to be checked by cannot be had.
    #[error("TLS to the database: {problem}")]
    DatabaseTls {
        /// What is wrong.
        problem: String,
    },
    /// The connections that write are out of their range.
    #[error("1 to {max} connections may write, not {value}")]
    DatabaseWriters {
        /// Most allowed.
        max: usize,
        /// Number configured.
        value: usize,
    },
    /// The time that the database is waited for is out of its range.
    #[error("the database may be waited for for {min:?} to {max:?}, not {value:?}")]
    DatabasePatience {
        /// Shortest time allowed.
        min: Duration,
        /// Longest time allowed.
        max: Duration,
        /// Time configured.
        value: Duration,
    },
    /// The time that the writer may be stuck is out of its range.
    #[error("the writer may be stuck for {min:?} to {max:?}, not {value:?}")]
    StuckAfter {
        /// Shortest time allowed.
        min: Duration,
        /// Longest time allowed.
        max: Duration,
        /// Time configured.
        value: Duration,
    },
}

/// Why a directory could not be opened as a ledger.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another ledger of this one, has it open.
    #[error("the ledger in {} is open elsewhere: one process at a time", dir.display())]
    InUse {
        /// The ledger's directory.
        dir: PathBuf,
    },
    /// The directory or a file in it could not be made, read or synced.
    #[error("could not {action} in {}", dir.display())]
    Files {
        /// The ledger's directory.
        dir: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        #[source]
        source: Cause,
    },
    /// The files do not read back as a ledger. No data was invented; the database may have cut its log at the damage. The
    /// way out: keep the directory aside, put back the newest copy of it that was taken while the ledger was
    /// closed, and send the claims since then again; event keys make that harmless.
    #[error("the ledger in {} is corrupt: keep it aside and put back a copy", dir.display())]
    Corrupt {
        /// The ledger's directory.
        dir: PathBuf,
        /// What was found.
        #[source]
        source: Cause,
    },
    /// The files read back well, and end before what had been acknowledged: a damaged log was cut at the damage, or
    /// an old copy of the data lies beside a newer witness. The way out is that of [`OpenError::Corrupt`]; to accept
    /// the loss knowingly, delete the file `witness`.
    #[error(
        "the ledger in {} lost acknowledged work: it ends at commit {found}, commit {acknowledged} was acknowledged",
        dir.display()
    )]
    LostCommits {
        /// The ledger's directory.
        dir: PathBuf,
        /// Last commit found.
        found: u64,
        /// Last commit that is known to have been acknowledged.
        acknowledged: u64,
    },
    /// It was written in a format that this version does not know.
    #[error("the ledger in {} has format {found}, this version knows {known}", dir.display())]
    Format {
        /// The ledger's directory.
        dir: PathBuf,
        /// Format found.
        found: u32,
        /// Format that this version reads and writes.
        known: u32,
    },
}

impl OpenError {
    /// Whether the same call may succeed later: once the other process has closed the ledger.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::InUse { .. })
    }

    /// Never: opening applies no claim.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        false
    }
}
