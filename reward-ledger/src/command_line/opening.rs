//! Where a ledger is kept, as it is written on the command line.

use std::path::PathBuf;
use std::str::FromStr;

use super::Failure;
use crate::config::LedgerBuilder;
use crate::ledger::Ledger;
use crate::store::MemoryStore;
#[cfg(feature = "sled")]
use crate::store::SledStore;

/// Where a ledger is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreAddress {
    /// In a directory of this process.
    Sled(PathBuf),
    /// Nowhere: it is forgotten with the process.
    Memory,
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sled", dir)) if !dir.is_empty() => Ok(Self::Sled(dir.into())),
            Some(("memory", "")) => Ok(Self::Memory),
            _ => Err("sled:DIR or memory: is needed".to_owned()),
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
            Self::Memory => {
                tracing::warn!("the ledger is kept in memory and forgotten with this process");
                Ok(Ledger::builder(MemoryStore::new()))
            }
        }
    }
}
