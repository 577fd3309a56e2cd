//! The Raft log behind openraft's storage traits: on disk, or in memory.
//!
//! Reads of recent entries are answered from memory; everything else goes through the one thread in [`writer`], so
//! no runtime thread ever waits for a disk. Clones share one log.

pub(super) mod frames;
mod window;
mod writer;

/// What the simulated twin of the thread answers to.
#[cfg(any(test, feature = "test-util"))]
pub(super) mod twin {
    pub(in crate::raft) use super::window::Ends;
    pub(in crate::raft) use super::writer::{Answer, Done, MAILBOX_DEPTH, MarkMember, Message, note};
}

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{Stream, StreamExt as _, stream};
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use tokio::sync::{mpsc, oneshot};

use self::window::{Ends, Found, Window};
use self::writer::MarkMember;
pub use self::writer::OpenLogError;
use self::writer::{Done, Message};
use super::failure::FirstFailure;
use super::types::{Entry, LogId, Types, Vote, next_index};
use crate::runtime::Rt;

/// Bytes of the newest entries that a log on disk holds in memory. Entries are read back within milliseconds, and a
/// follower that lags is served from here too for a while.
const WINDOW_BYTES_MAX: usize = 32 * 1_024 * 1_024;

/// The same on a simulated disk: little, so that entries are read back from there too.
#[cfg(any(test, feature = "test-util"))]
const WINDOW_BYTES_SIMULATED: usize = 8 * 1_024;

/// Bytes of entries read at once where the reader may come again for the rest.
const READ_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// The log of one node.
#[derive(Debug, Clone)]
pub(super) struct LogStore {
    window: Arc<Mutex<Window>>,
    backing: Backing,
}

#[derive(Debug, Clone)]
enum Backing {
    /// The window is all there is.
    Memory,
    Disk(mpsc::Sender<Message>),
}

impl LogStore {
    /// A log that forgets everything at a restart.
    pub(super) fn in_memory() -> Self {
        Self {
            window: Arc::new(Mutex::new(Window::new(Ends::default(), usize::MAX))),
            backing: Backing::Memory,
        }
    }

    /// Opens the log in `dir`, which exists. `mark_member` is called, off the runtime, before a vote is given.
    ///
    /// # Errors
    /// It is damaged or cannot be opened.
    pub(super) async fn on_disk(
        dir: PathBuf,
        mark_member: MarkMember,
        failure: FirstFailure,
    ) -> Result<Self, OpenLogError> {
        let (mailbox, ends) = writer::spawn(dir, mark_member, failure).await?;
        Ok(Self {
            window: Arc::new(Mutex::new(Window::new(ends, WINDOW_BYTES_MAX))),
            backing: Backing::Disk(mailbox),
        })
    }

    /// Opens the log on a simulated disk, as a task of `node`.
    #[cfg(any(test, feature = "test-util"))]
    pub(super) fn simulated<R: Rt>(
        node: u64,
        disk: &super::simulated::SimulatedDisk,
        mark_member: MarkMember,
        failure: FirstFailure,
    ) -> Self {
        let (mailbox, ends) = super::simulated::log::spawn::<R>(node, disk, mark_member, failure);
        Self {
            window: Arc::new(Mutex::new(Window::new(ends, WINDOW_BYTES_SIMULATED))),
            backing: Backing::Disk(mailbox),
        }
    }

    /// The vote on disk at the last start or later.
    pub(super) fn vote(&self) -> Option<Vote> {
        self.window().vote
    }

    /// The last entry that is no longer in the log, since a snapshot holds it.
    pub(super) fn purged(&self) -> Option<LogId> {
        self.window().purged
    }

    /// Syncs and closes the log. Whatever is asked of it later fails.
    ///
    /// # Errors
    /// The last sync failed.
    pub(super) async fn close(&self) -> io::Result<()> {
        let committed = self.window().committed;
        match &self.backing {
            Backing::Memory => Ok(()),
            Backing::Disk(mailbox) => ask(mailbox, |reply| Message::Stop { committed, reply }).await,
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        // No code under this lock can panic half-way through a change.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts entries into the window and answers with the newest commit known.
    fn remember(&self, entries: impl IntoIterator<Item = Entry>) -> Option<LogId> {
        let mut window = self.window();
        for entry in entries {
            window.append(entry);
        }
        window.committed
    }

    async fn read(&self, range: &impl RangeBounds<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let (start, end) = bounds(range);
        let found = self.window().read(start, end, bytes_max);
        match (found, &self.backing) {
            (Found::Here(entries), _) => Ok(entries),
            (Found::Older { start, end }, Backing::Memory) => {
                Ok(self.window().read_all_there_is(start, end, bytes_max))
            }
            (Found::Older { start, end }, Backing::Disk(mailbox)) => {
                ask(mailbox, |reply| Message::Read {
                    start,
                    end,
                    bytes_max,
                    reply,
                })
                .await
            }
        }
    }
}

impl LogStore {
    /// A piece of what is to be applied, which must begin at `start` if the log reaches that far.
    async fn read_gapless(&self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let entries = self.read(&(start..end), READ_BYTES_MAX).await?;
        let reached = start < end.min(next_index(self.window().last.as_ref()));
        let found = entries.first().map(RaftEntry::index);
        if reached && found != Some(start) {
            let text = format!("entry {start} is not in the log, which goes on with {found:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(entries)
    }
}

impl<R: Rt, O: Send + Sync + 'static> RaftLogReader<Types<R, O>> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        self.read(
            &(range.start_bound().cloned(), range.end_bound().cloned()),
            usize::MAX,
        )
        .await
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read(&(start..end), READ_BYTES_MAX).await
    }

    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (start, end) = bounds(&range);
        let first = self.read_gapless(start, end).await;
        let next = after(&first, end);
        let log = self.clone();
        // What is applied is read in pieces, so that a long way behind does not become a large part of memory.
        let rest = stream::unfold(next, move |start| {
            let log = log.clone();
            async move {
                let start = start?;
                let piece = log.read_gapless(start, end).await;
                let next = after(&piece, end);
                Some((piece, next))
            }
        });
        flatten(first).chain(rest.map(flatten).flatten())
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.vote())
    }
}

impl<R: Rt, O: Send + Sync + 'static> RaftLogStorage<Types<R, O>> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types<R, O>>> {
        let window = self.window();
        Ok(LogState {
            last_purged_log_id: window.purged,
            last_log_id: window.last,
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let vote = *vote;
        if let Backing::Disk(mailbox) = &self.backing {
            ask(mailbox, |reply| Message::SaveVote { vote, reply }).await?;
        }
        self.window().vote = Some(vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        // Written with the next entries: a node that restarts waits for a leader before it answers anything, so an
        // older mark only means that the last few entries are applied a little later.
        let mut window = self.window();
        window.committed = window.committed.max(committed);
        Ok(())
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.window().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types<R, O>>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        match &self.backing {
            Backing::Memory => {
                self.remember(entries);
                callback.io_completed(Ok(()));
            }
            Backing::Disk(mailbox) => {
                let entries: Vec<Entry> = entries.into_iter().collect();
                let committed = self.remember(entries.iter().cloned());
                let message = Message::Append {
                    entries,
                    committed,
                    reply: Done::new(move |result| callback.io_completed(result)),
                };
                mailbox.send(message).await.map_err(|_| closed())?;
                self.window().evict();
            }
        }
        Ok(())
    }

    async fn truncate_after(&mut self, keep: Option<LogId>) -> io::Result<()> {
        if next_index(keep.as_ref()) >= next_index(self.window().last.as_ref()) {
            return Ok(());
        }
        self.window().truncate_after(keep);
        if let Backing::Disk(mailbox) = &self.backing {
            ask(mailbox, |reply| Message::TruncateAfter { keep, reply }).await?;
        }
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        self.window().purge(upto);
        if let Backing::Disk(mailbox) = &self.backing {
            mailbox
                .send(Message::Purge { upto })
                .await
                .map_err(|_| closed())?;
        }
        Ok(())
    }
}

/// The index after a piece, if the piece was good and the range is not read to its end.
fn after(piece: &io::Result<Vec<Entry>>, end: u64) -> Option<u64> {
    let next = piece.as_ref().ok()?.last()?.index().checked_add(1)?;
    (next < end).then_some(next)
}

fn flatten(piece: io::Result<Vec<Entry>>) -> impl Stream<Item = io::Result<Entry>> + Send {
    let (entries, error) = match piece {
        Ok(entries) => (entries, None),
        Err(error) => (Vec::new(), Some(Err(error))),
    };
    stream::iter(entries.into_iter().map(Ok).chain(error))
}

async fn ask<T>(
    mailbox: &mpsc::Sender<Message>,
    message: impl FnOnce(oneshot::Sender<io::Result<T>>) -> Message,
) -> io::Result<T> {
    let (reply, answer) = oneshot::channel();
    mailbox.send(message(reply)).await.map_err(|_| closed())?;
    answer.await.map_err(|_| closed())?
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the log is closed")
}

/// The start and the exclusive end of a range.
fn bounds(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(&index) => index,
        Bound::Excluded(&index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&index) => index.saturating_add(1),
        Bound::Excluded(&index) => index,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}
