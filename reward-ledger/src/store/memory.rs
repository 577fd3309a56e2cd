//! The store that forgets: for tests, and for trying things out.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::row_store::{RowStore, Scope};
use super::rows::{Row, Rows, scan_start};
use super::transaction::Transaction;
use super::{Health, Sealed, StoreFuture};
use crate::core::Protections;
use crate::error::{Certainty, StorageFailure, StoreError};
use crate::limits::MEMORY_ROWS_MAX;

/// Keeps claims in memory and loses them with the process. Every other rule holds as in the other stores.
#[derive(Debug)]
pub struct MemoryStore {
    rows: Mutex<MemoryRows>,
    rows_max: usize,
    protections: Protections,
    health: watch::Sender<Health>,
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Protections::ALL)
    }

    /// An empty one, for a negative control.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn with_protections(protections: Protections) -> Self {
        Self::with(protections)
    }

    /// It holds no more than this many rows, about ten a claim; 20 million unless said.
    ///
    /// Too small: claims are refused as full. Too large: the process runs out of memory first.
    #[must_use]
    pub const fn rows_max(mut self, rows_max: usize) -> Self {
        self.rows_max = rows_max;
        self
    }

    /// Changes rows behind everybody's back, to see an audit find it.
    #[cfg(test)]
    pub(crate) fn tamper(&self, change: impl FnOnce(&mut BTreeMap<Vec<u8>, Vec<u8>>)) {
        change(&mut self.rows.lock().unwrap().0);
    }

    fn with(protections: Protections) -> Self {
        Self {
            rows: Mutex::default(),
            rows_max: MEMORY_ROWS_MAX,
            protections,
            health: watch::Sender::new(Health::Serving),
        }
    }

    /// Runs one transaction. It does not wait, so a caller that goes away cannot cut it short.
    fn write<T>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StorageFailure>,
    ) -> Result<T, StoreError> {
        let mut rows = self.open_rows()?;
        let mut transaction = Transaction::begin(&*rows, self.protections).map_err(stopped)?;
        let answer = work(&mut transaction).map_err(stopped)?;
        let Some((writes, _)) = transaction.finish().map_err(stopped)? else {
            return Ok(answer);
        };
        if rows.0.len().saturating_add(writes.len()) > self.rows_max {
            return Err(StoreError::Full {
                rows_max: self.rows_max,
            });
        }
        for (key, value) in writes {
            match value {
                Some(value) => rows.0.insert(key, value),
                None => rows.0.remove(&key),
            };
        }
        Ok(answer)
    }

    fn open_rows(&self) -> Result<MutexGuard<'_, MemoryRows>, StoreError> {
        match *self.health.borrow() {
            Health::Closed => Err(StoreError::Closed),
            // Rows are changed only after everything that can panic.
            Health::Serving | Health::Stalled | Health::Stopped(_) => {
                Ok(self.rows.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

fn stopped(failure: StorageFailure) -> StoreError {
    StoreError::Stopped {
        certainty: Certainty::NotApplied,
        failure: failure.into(),
    }
}

fn ready<'a, T: Send + 'a>(answer: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Sealed for MemoryStore {}

impl RowStore for MemoryStore {
    fn run<T: Send + 'static>(
        &self,
        _scope: Scope,
        job: impl Fn(&mut Transaction<'_>) -> Result<T, StorageFailure> + Send + Sync + 'static,
    ) -> StoreFuture<'_, T> {
        ready(self.write(job))
    }

    fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = Health> + Send + '_>> {
        let mut health = self.health.subscribe();
        Box::pin(async move {
            match health.wait_for(|health| matches!(health, Health::Closed)).await {
                Ok(health) => health.clone(),
                Err(_) => Health::Closed,
            }
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.health.send_replace(Health::Closed);
        ready(Ok(()))
    }
}

#[derive(Debug, Default)]
struct MemoryRows(BTreeMap<Vec<u8>, Vec<u8>>);

impl Rows for MemoryRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageFailure> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, rows_max: usize) -> Result<Vec<Row>, StorageFailure> {
        Ok(self
            .0
            .range::<[u8], _>((scan_start(prefix, after), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(rows_max)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }
}
