//! Where a ledger is kept, as it is written on the command line.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::{BadArguments, Failure};
use crate::config::LedgerBuilder;
use crate::ledger::Ledger;
use crate::store::MemoryStore;
#[cfg(feature = "postgres")]
use crate::store::PostgresStore;
#[cfg(feature = "sled")]
use crate::store::SledStore;

/// Where a ledger is kept.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum StoreAddress {
    /// In a directory of this process.
    Sled(PathBuf),
    /// In the PostgreSQL database at this URL, beside other processes. The URL may hold a password.
    Postgres(String),
    /// Nowhere: it is forgotten with the process.
    Memory,
    /// It was mistyped. The text is not kept: it may hold a password.
    Unreadable,
}

impl FromStr for StoreAddress {
    type Err = Infallible;

    /// Takes every text, and says what is wrong with it when it is opened: the parser of arguments would show the text.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once(':') {
            Some(("sled", dir)) if !dir.is_empty() => Self::Sled(dir.into()),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Self::Postgres(text.to_owned())
            }
            Some(("memory", "")) => Self::Memory,
            _ => Self::Unreadable,
        })
    }
}

/// Without the password.
impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sled(dir) => f.debug_tuple("Sled").field(dir).finish(),
            Self::Postgres(_) => f.debug_tuple("Postgres").finish_non_exhaustive(),
            Self::Memory => f.write_str("Memory"),
            Self::Unreadable => f.write_str("Unreadable"),
        }
    }
}

impl StoreAddress {
    pub(super) async fn open(&self) -> Result<LedgerBuilder, Failure> {
        match self {
            #[cfg(feature = "sled")]
            Self::Sled(dir) => {
                let dir = dir.clone();
                // Recovery reads files.
                let store = tokio::task::spawn_blocking(move || SledStore::open(dir)).await??;
                Ok(Ledger::builder(store))
            }
            #[cfg(not(feature = "sled"))]
            Self::Sled(_) => Err("this build has no sled store".into()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Ok(Ledger::builder(PostgresStore::open(url).await?)),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(_) => Err("this build has no PostgreSQL store".into()),
            Self::Memory => {
                tracing::warn!("the ledger is kept in memory and forgotten with this process");
                Ok(Ledger::builder(MemoryStore::new()))
            }
            Self::Unreadable => {
                Err(BadArguments("--store: sled:DIR, postgres://.. or memory: is needed").into())
            }
        }
    }
}
