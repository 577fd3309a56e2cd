use std::ops::Bound;

use crate::error::StorageFailure;
use crate::store::rows::{Row, Rows, Writes, scan_start};

/// The rows in sled's default tree: one tree, so that one batch is one transaction. For the writer's thread only: no scan
/// ever runs beside a write.
#[derive(Debug)]
pub(super) struct SledRows(::sled::Db);

impl SledRows {
    pub(super) const fn new(db: ::sled::Db) -> Self {
        Self(db)
    }

    pub(super) const fn db(&self) -> &::sled::Db {
        &self.0
    }

    pub(super) fn into_db(self) -> ::sled::Db {
        self.0
    }

    /// Applies all writes or none; they are visible at once, and not yet durable.
    pub(super) fn apply(&self, writes: Writes) -> Result<(), StorageFailure> {
        let mut batch = ::sled::Batch::default();
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        self.0.apply_batch(batch).map_err(|source| StorageFailure::Files {
            action: "write to the database",
            source: source.into(),
        })
    }
}

impl Rows for SledRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageFailure> {
        let value = self.0.get(key).map_err(unreadable)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, rows_max: usize) -> Result<Vec<Row>, StorageFailure> {
        let mut rows = Vec::new();
        for row in self
            .0
            .range::<&[u8], _>((scan_start(prefix, after), Bound::Unbounded))
            .take(rows_max)
        {
            let (key, value) = row.map_err(unreadable)?;
            if !key.starts_with(prefix) {
                break;
            }
            rows.push((key.to_vec(), value.to_vec()));
        }
        Ok(rows)
    }
}

fn unreadable(source: ::sled::Error) -> StorageFailure {
    StorageFailure::Files {
        action: "read from the database",
        source: source.into(),
    }
}
