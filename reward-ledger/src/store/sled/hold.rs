//! The hold on sled's log: between two barriers nothing counts as stable, and nothing is written over.
//!
//! sled 0.34.7 takes what it wrote and `sync_file_range`d for durable, in two ways that a power cut can punish, since the
//! disk may have kept any part of that and lost any other:
//!
//! - The header of each segment of the log says up to where the log was stable, and recovery looks for tears only from the
//!   segment of the highest such place on. If that segment itself was lost, everything is.
//! - On the word of a header that it has written, sled frees old segments, to be written over. If the header is lost,
//!   recovery begins at an older place, meets a segment that was written over, and drops all that came after it.
//!
//! One group may fill any number of segments: leaves split, indexes are written anew at each split, what lies in segments to
//! be freed is moved. And reads write too: they finish the splits and merges that they meet. So from the first look of a
//! group until its barrier is passed two things are held:
//!
//! - *The peg*: a place in the log, claimed and not filled. sled counts nothing after it as stable until it is let go of, so
//!   every header names a place before it, which is where the last barrier was.
//! - *The inside*: a guard of the epochs that sled frees memory by. sled takes a header's word only when no thread is left
//!   inside that was inside when the header was written, so a header counts once a barrier has made it durable.

use std::mem;

use crate::core::{Protection, Protections};
use crate::error::StorageFailure;

/// The page number that sled gives to messages that belong to no page.
const NO_PAGE: ::sled::PageId = ::sled::PageId::MAX - 666;

/// sled does not name the type of a claimed place.
trait Claimed {}
impl<T> Claimed for T {}

pub(super) struct LogHold<'a> {
    db: &'a ::sled::Db,
    /// Off for negative controls alone.
    on: bool,
    peg: Option<Box<dyn Claimed + 'a>>,
    inside: Option<::sled::Guard>,
    /// The newest segment of the log at the last barrier.
    segment: ::sled::Lsn,
}

impl<'a> LogHold<'a> {
    /// For a database that a barrier has just made durable.
    pub(super) fn new(db: &'a ::sled::Db, protections: Protections) -> Self {
        Self {
            db,
            on: protections.are_with(Protection::LogHold),
            peg: None,
            inside: None,
            segment: newest_segment(db, 0),
        }
    }

    /// Holds the log, if it is not held.
    pub(super) fn begin(&mut self) -> Result<(), StorageFailure> {
        if !self.on {
            return Ok(());
        }
        let inside = self.inside.get_or_insert_with(::sled::pin);
        if self.peg.is_none() {
            let log = &self.db.context.pagecache.log;
            let claim = log.reserve(
                ::sled::LogKind::Skip,
                NO_PAGE,
                &::sled::BatchManifest::default(),
                inside,
            );
            self.peg = Some(Box::new(claim.map_err(unwritable)?));
            // Ends the buffer that the peg is in. What else would come into it could not be read again after it fell out of
            // the cache, since the buffer is written only once the peg is let go of.
            self.db
                .apply_batch(::sled::Batch::default())
                .map_err(unwritable)?;
        }
        Ok(())
    }

    /// Whether the log has begun a segment since the last barrier.
    pub(super) fn has_new_segment(&self) -> bool {
        self.on && newest_segment(self.db, self.segment) != self.segment
    }

    /// To be called before the database is flushed, which would else wait for ever.
    pub(super) fn let_go_of_peg(&mut self) {
        self.peg = None;
    }

    /// To be called when a barrier is passed.
    pub(super) fn passed(&mut self) {
        self.segment = newest_segment(self.db, self.segment);
    }

    /// Lets sled free memory, and segments on the word of what barriers have made durable. The peg stays.
    pub(super) fn leave(&mut self) {
        self.inside = None;
    }
}

impl Drop for LogHold<'_> {
    /// After a storage error or a panic nothing is written any more; letting go of the peg would.
    fn drop(&mut self) {
        mem::forget(self.peg.take());
    }
}

/// Where the newest segment begins; it is not before `known`.
fn newest_segment(db: &::sled::Db, known: ::sled::Lsn) -> ::sled::Lsn {
    let log = db.context.pagecache.log.iter_from(known);
    log.segments.into_keys().next_back().unwrap_or(known)
}

fn unwritable(source: ::sled::Error) -> StorageFailure {
    StorageFailure::Files {
        action: "hold the database's log",
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SEGMENT_BYTES: usize = 16 * 1_024;
    const SEGMENT: ::sled::Lsn = 16 * 1_024;
    const ROUNDS: u8 = 20;
    /// In each round, all rows anew so many times: several segments.
    const BATCHES: u8 = 10;
    const ROWS: u8 = 64;

    fn segments(db: &::sled::Db) -> BTreeSet<::sled::Lsn> {
        let log = db.context.pagecache.log.iter_from(0);
        log.segments.into_keys().collect()
    }

    fn write_all_anew(db: &::sled::Db, fill: u8) {
        for batch in 0..BATCHES {
            let value = vec![fill.wrapping_mul(BATCHES).wrapping_add(batch); 100];
            let mut batch = ::sled::Batch::default();
            for row in 0..ROWS {
                batch.insert(vec![row], value.clone());
            }
            db.apply_batch(batch).unwrap();
        }
    }

    #[test]
    fn while_it_is_held_nothing_counts_as_stable_and_nothing_is_freed_that_recovery_begins_with() {
        let dir = tempfile::tempdir().unwrap();
        let db = ::sled::Config::new()
            .path(dir.path())
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(None)
            .open()
            .unwrap();
        // Dropped while the peg stands, as where the test fails, it would wait for ever.
        let db = mem::ManuallyDrop::new(db);
        db.flush().unwrap();
        let mut hold = LogHold::new(&db, Protections::ALL);
        let mut seen = BTreeSet::new();
        // Where recovery would begin: the place that the newest durable header vouches for.
        let mut vouched = 0;
        for round in 0..ROUNDS {
            let stable = db.context.pagecache.log.stable_offset();
            hold.begin().unwrap();
            let before = segments(&db).split_off(&(vouched - vouched % SEGMENT));
            write_all_anew(&db, round);
            assert!(hold.has_new_segment());
            assert_eq!(db.context.pagecache.log.stable_offset(), stable);
            let after = segments(&db);
            assert!(before.is_subset(&after), "{before:?} {after:?}");
            hold.let_go_of_peg();
            db.flush().unwrap();
            hold.passed();
            assert!(!hold.has_new_segment());
            hold.leave();
            seen.extend(after);
            vouched = stable;
        }
        let left = segments(&db);
        assert!(left.len() < seen.len() / 2, "nothing was ever freed: {left:?}");
    }
}
