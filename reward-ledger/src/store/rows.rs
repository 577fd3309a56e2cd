//! An ordered key space of rows, and the writes of one transaction laid over it.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::StorageFailure;

pub(crate) type Row = (Vec<u8>, Vec<u8>);
/// What a transaction writes: a value, or nothing for a row that goes.
pub(crate) type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Rows in the order of their keys.
pub(crate) trait Rows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageFailure>;

    /// The first `rows_max` rows whose keys begin with `prefix`; those after the key `after`, where one is given.
    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, rows_max: usize) -> Result<Vec<Row>, StorageFailure>;
}

/// Where a scan begins.
pub(crate) fn scan_start<'a>(prefix: &'a [u8], after: Option<&'a [u8]>) -> Bound<&'a [u8]> {
    match after {
        Some(after) => Bound::Excluded(after),
        None => Bound::Included(prefix),
    }
}

/// The rows as they will be once the writes are applied. Overlays may lie on overlays.
pub(crate) struct Overlay<'a> {
    base: &'a dyn Rows,
    writes: Writes,
}

impl<'a> Overlay<'a> {
    pub(crate) const fn new(base: &'a dyn Rows) -> Self {
        Self {
            base,
            writes: Writes::new(),
        }
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.writes.insert(key, Some(value));
    }

    pub(crate) fn remove(&mut self, key: Vec<u8>) {
        self.writes.insert(key, None);
    }

    /// Takes over what an overlay on this one wrote.
    pub(crate) fn absorb(&mut self, writes: Writes) {
        self.writes.extend(writes);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.writes.is_empty()
    }

    pub(crate) fn into_writes(self) -> Writes {
        self.writes
    }
}

impl Rows for Overlay<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageFailure> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.base.get(key),
        }
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, rows_max: usize) -> Result<Vec<Row>, StorageFailure> {
        let written: Vec<_> = self
            .writes
            .range::<[u8], _>((scan_start(prefix, after), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .collect();
        // Every written row may hide one of the base, so that many more are read.
        let base = self
            .base
            .scan(prefix, after, rows_max.saturating_add(written.len()))?;
        if written.is_empty() {
            return Ok(base);
        }
        let mut merged: BTreeMap<_, _> = base.into_iter().map(|(key, value)| (key, Some(value))).collect();
        for (key, value) in written {
            merged.insert(key.clone(), value.clone());
        }
        Ok(merged
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .take(rows_max)
            .collect())
    }
}
