//! All keys of a database: counted, listed, ended.

use lease_core::Database;
use lease_core::limits::{KEYS_PER_CHANGE_MAX, LIST_COUNT_MAX};
use lease_core::machine::{KeyCommand, LeaseKey, LeasePage};

use super::CallError;
use crate::runtime::Rt;
use crate::store::Store;

/// Keys of one page where all are walked through.
const PAGE: usize = 1_000;

impl<R: Rt> Store<R> {
    /// How many keys a database has. Linearizable.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn count_keys(&self, database: Database) -> Result<u64, CallError> {
        Ok(self.survey(|machine, _| machine.held_in(database)).await?)
    }

    /// One page of the keys of a database, from `cursor` on, and the cursor of the next one.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn scan_keys(
        &self,
        database: Database,
        cursor: u32,
        count: u64,
    ) -> Result<LeasePage, CallError> {
        let count = usize::try_from(count.min(LIST_COUNT_MAX)).unwrap_or(PAGE);
        Ok(self
            .survey(|machine, _| machine.list(database, b"", cursor, count))
            .await?)
    }

    /// The keys of a database that `wanted` takes: at most `max`, or `None` if there are more.
    ///
    /// # Errors
    /// [`CallError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn find_keys(
        &self,
        database: Database,
        wanted: impl Fn(&[u8]) -> bool + Send,
        max: usize,
    ) -> Result<Option<Vec<LeaseKey>>, CallError> {
        let mut found = Vec::new();
        let mut page = self.scan_keys(database, 0, PAGE as u64).await?;
        loop {
            let names = page.leases.into_iter().map(|lease| lease.name);
            let names = names.filter(|name| wanted(name.as_bytes()));
            found.extend(names.map(|name| LeaseKey::new(database, name)));
            if found.len() > max {
                return Ok(None);
            }
            if page.next_cursor == 0 {
                return Ok(Some(found));
            }
            // Others come in between: one look at a time holds the machine.
            tokio::task::yield_now().await;
            page = self.look_at_page(database, page.next_cursor);
        }
    }

    /// Ends the keys of a database, some at a time: all that were there at the call, and of those that come meanwhile
    /// some may stay. Says how many it ended.
    ///
    /// # Errors
    /// [`CallError`] says whether some may have been ended.
    ///
    /// # Cancel safety
    /// Dropped, some keys are ended and others are not.
    pub async fn flush_database(&self, database: Database) -> Result<u64, CallError> {
        let mut ended = 0_u64;
        let mut page = self.scan_keys(database, 0, PAGE as u64).await?;
        loop {
            let names = page.leases.into_iter().map(|lease| lease.name);
            let keys: Vec<LeaseKey> = names.map(|name| LeaseKey::new(database, name)).collect();
            let some = u64::try_from(keys.len()).unwrap_or(u64::MAX);
            if some > 0 {
                self.change(KeyCommand::Delete { keys }).await?;
                ended = ended.saturating_add(some);
            }
            if page.next_cursor == 0 {
                return Ok(ended);
            }
            page = self.look_at_page(database, page.next_cursor);
        }
    }

    /// A page as this node holds it now, behind a read that was proven.
    fn look_at_page(&self, database: Database, cursor: u32) -> LeasePage {
        self.look_now(|machine| machine.list(database, b"", cursor, PAGE))
    }
}

const _: () = assert!(PAGE <= KEYS_PER_CHANGE_MAX);
