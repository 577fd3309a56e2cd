//! The embedded store: one process, one directory, one writer.
//!
//! ```text
//! Ledger clones ──claim, read──▶ writer (a thread; a mailbox is one group, one batch, one barrier) ──▶ files
//!        ▲                         │ progress                 ▲
//!        └──────── health ─────────┴──────▶ watchdog (a thread)│
//! ```
//! The writer is the only one who touches the database, reads included: a row is visible to readers before it is
//! durable, and what readers are told must be durable.

mod barrier;
mod config;
#[cfg(test)]
mod crash_tests;
mod directory;
mod hold;
mod mailbox;
#[cfg(test)]
mod power_tests;
mod progress;
#[cfg(test)]
mod recovery_tests;
mod rows;
#[cfg(test)]
mod tests;
mod watchdog;
mod witness;
mod writer;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

pub use config::{SledConfig, SledConfigBuilder};
pub use progress::Stage;

use super::row_store::{RowStore, Scope};
use super::transaction::Transaction;
use super::{Health, Sealed, StoreFuture};
use crate::error::{OpenError, StorageFailure};
use mailbox::WriterHandle;

/// Keeps claims in a directory of this process, on sled, behind a durability barrier of its own.
///
/// The directory holds `sled/` (the database), `lock` (who has it open) and `witness` (how far it had come, to notice a
/// log that was cut short).
#[derive(Debug)]
pub struct SledStore {
    writer: WriterHandle,
}

impl SledStore {
    /// Opens the ledger in `dir`, making it if there is none. Blocks while it recovers.
    ///
    /// # Errors
    /// [`OpenError`]: open elsewhere, not readable, corrupt, cut short, of another format. No claim was applied.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, OpenError> {
        Self::open_with(SledConfig::of(dir.into()))
    }

    /// As [`SledStore::open`], configured otherwise.
    ///
    /// # Errors
    /// As [`SledStore::open`].
    pub fn open_with(config: SledConfig) -> Result<Self, OpenError> {
        let opened = directory::open(&config)?;
        let writer = writer::spawn(opened, &config)?;
        Ok(Self { writer })
    }
}

impl Sealed for SledStore {}

impl RowStore for SledStore {
    fn run<T: Send + 'static>(
        &self,
        _scope: Scope,
        job: impl Fn(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + Sync + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.writer.ask(job))
    }

    fn health(&self) -> Health {
        self.writer.health()
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = Health> + Send + '_>> {
        Box::pin(self.writer.ended())
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.close())
    }
}
