//! The thread that owns the log on disk.
//!
//! Owns: raft-log, and through it the files. Asks: nobody. Asked by: [`super::LogStore`], over one queue, so that
//! votes, entries, truncations and reads happen in the order in which Raft asked for them.
//! Stops: when told to, or when its last handle is gone.
//!
//! An answer is given only once its record is synced. The first error is the last operation that is tried: all
//! later ones get the same error, and the node stops.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raft_log::api::raft_log_writer::RaftLogWriter as _;
use raft_log::{Callback, RaftLog};
use tokio::sync::{mpsc, oneshot};

use super::super::failure::{FirstFailure, NodeFailure};
use super::super::types::{Entry, LogId, Vote, next_index, size_of_payload};
use super::frames::{LogIdFrame, PayloadFrame, VoteFrame};
use super::window::Ends;

/// Operations that wait for the thread at the most. Raft waits for each but appends, and has few of those in flight.
pub(in crate::raft) const MAILBOX_DEPTH: usize = 256;

/// Bytes of one log file, after which the next is begun. Old entries are dropped in whole files, so this is also
/// about what is kept too long.
const FILE_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Bytes of entries that raft-log keeps in memory beside its newest file: next to nothing, since
/// [`super::window::Window`] is in front of it. (Its own default is 1 GiB.)
const CACHE_BYTES_MAX: usize = 1_024 * 1_024;

/// Bytes of the buffer that a file is read with at the start.
const READ_BUFFER_BYTES: usize = 1_024 * 1_024;

pub(in crate::raft) type Answer<T> = oneshot::Sender<io::Result<T>>;

/// An operation on the log.
pub(in crate::raft) enum Message {
    Append {
        entries: Vec<Entry>,
        /// The newest commit known, written along; it needs no sync of its own.
        committed: Option<LogId>,
        reply: Done,
    },
    SaveVote {
        vote: Vote,
        reply: Answer<()>,
    },
    TruncateAfter {
        keep: Option<LogId>,
        reply: Answer<()>,
    },
    /// Has no answer: what is purged is in a snapshot, and purging later loses nothing.
    Purge {
        upto: LogId,
    },
    Read {
        start: u64,
        end: u64,
        bytes_max: usize,
        reply: Answer<Vec<Entry>>,
    },
    Stop {
        committed: Option<LogId>,
        reply: Answer<()>,
    },
}

/// Calls back once a record is on disk, or failed. Dropping it unanswered is a failure too: raft-log drops what
/// is queued when its flush thread stops.
pub(in crate::raft) struct Done {
    call: Option<Box<dyn FnOnce(io::Result<()>) + Send>>,
}

impl Done {
    pub(in crate::raft) fn new(call: impl FnOnce(io::Result<()>) + Send + 'static) -> Self {
        Self {
            call: Some(Box::new(call)),
        }
    }

    /// Keeps an error as the node's failure before it is passed on.
    pub(in crate::raft) fn watched(self, operation: &'static str, failure: FirstFailure) -> Self {
        Self::new(move |result| {
            let result = result.map_err(|error| note(&failure, operation, error));
            self.send(result);
        })
    }
}

impl Callback for Done {
    fn send(mut self, result: io::Result<()>) {
        if let Some(call) = self.call.take() {
            call(result);
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call(Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the log's flush thread stopped",
            )));
        }
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LogTypes;

impl raft_log::Types for LogTypes {
    type LogId = LogIdFrame;
    type LogPayload = PayloadFrame;
    type Vote = VoteFrame;
    type Callback = Done;
    type UserData = ();

    fn log_index(log_id: &LogIdFrame) -> u64 {
        log_id.0.index
    }

    fn payload_size(payload: &PayloadFrame) -> u64 {
        size_of_payload(&payload.0) as u64
    }
}

/// Remembers outside of the log that this node has voted. It also keeps the folder locked for as long as the thread
/// lives.
pub(in crate::raft) type MarkMember = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenLogError {
    /// A record in the middle of the log is damaged, or a file is missing.
    #[error(
        "the Raft log in {} is damaged: nothing was changed. On a cluster, remove this node and join it again under a \
         new id; a single node is restored from a backup",
        dir.display()
    )]
    Damaged {
        /// The folder of the log.
        dir: PathBuf,
        /// What was found.
        #[source]
        source: io::Error,
    },
    /// The operating system refused.
    #[error("cannot open the Raft log in {}", dir.display())]
    Io {
        /// The folder of the log.
        dir: PathBuf,
        /// Its error.
        #[source]
        source: io::Error,
    },
}

/// Opens the log and starts its thread.
///
/// # Errors
/// The log is damaged or cannot be opened; nothing was changed but a torn tail that was never acknowledged.
pub(super) async fn spawn(
    dir: PathBuf,
    mark_member: MarkMember,
    failure: FirstFailure,
) -> Result<(mpsc::Sender<Message>, Ends), OpenLogError> {
    let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
    let (opened, ends) = oneshot::channel();
    let folder = dir.clone();
    let thread = std::thread::Builder::new().name("raft-log".to_owned());
    let started = thread.spawn(move || {
        let guard = PanicGuard {
            failure: failure.clone(),
        };
        match open(&folder) {
            Ok(log) => {
                let ends = ends_of(&log);
                let writer = Writer {
                    log,
                    failure,
                    poisoned: None,
                    mark_member,
                };
                if opened.send(Ok(ends)).is_ok() {
                    writer.run(inbox);
                }
            }
            Err(error) => {
                // Lets the folder go before the answer.
                drop(mark_member);
                drop(opened.send(Err(error)));
            }
        }
        drop(guard);
    });
    if let Err(source) = started {
        return Err(OpenLogError::Io { dir, source });
    }
    match ends.await {
        Ok(ends) => ends.map(|ends| (mailbox, ends)),
        Err(_) => Err(OpenLogError::Damaged {
            dir,
            source: io::Error::other("reading it panicked"),
        }),
    }
}

fn open(dir: &Path) -> Result<RaftLog<LogTypes>, OpenLogError> {
    let Some(text) = dir.to_str() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8");
        return Err(OpenLogError::Io {
            dir: dir.to_owned(),
            source,
        });
    };
    let mut config = raft_log::Config::new(text);
    config.log_cache_capacity = Some(CACHE_BYTES_MAX);
    config.wal.read_buffer_size = Some(READ_BUFFER_BYTES);
    config.wal.chunk_max_size = Some(FILE_BYTES_MAX);
    // Its default waits a millisecond for company; our batches are made before they come here.
    config.wal.flush_batch_wait = Some(std::time::Duration::ZERO);
    RaftLog::open(Arc::new(config)).map_err(|source| {
        let dir = dir.to_owned();
        let read_badly = matches!(
            source.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other
        );
        if read_badly {
            OpenLogError::Damaged { dir, source }
        } else {
            OpenLogError::Io { dir, source }
        }
    })
}

fn ends_of(log: &RaftLog<LogTypes>) -> Ends {
    let state = log.log_state();
    Ends {
        last: state.last().map(|id| id.0),
        purged: state.purged().map(|id| id.0),
        vote: state.vote().map(|vote| vote.0),
        committed: state.committed().map(|id| id.0),
    }
}

struct Writer {
    log: RaftLog<LogTypes>,
    failure: FirstFailure,
    poisoned: Option<(io::ErrorKind, String)>,
    /// After the log, so that the folder stays locked until that is closed.
    mark_member: MarkMember,
}

impl Writer {
    fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        while let Some(message) = inbox.blocking_recv() {
            match message {
                Message::Append {
                    entries,
                    committed,
                    reply,
                } => self.on_append(entries, committed, reply),
                Message::SaveVote { vote, reply } => self.on_save_vote(vote, reply),
                Message::TruncateAfter { keep, reply } => self.on_truncate_after(keep, reply),
                Message::Purge { upto } => self.on_purge(upto),
                Message::Read {
                    start,
                    end,
                    bytes_max,
                    reply,
                } => self.on_read(start, end, bytes_max, reply),
                Message::Stop { committed, reply } => {
                    self.on_stop(committed, reply);
                    return;
                }
            }
        }
    }

    fn on_append(&mut self, entries: Vec<Entry>, committed: Option<LogId>, reply: Done) {
        let reply = reply.watched("syncing entries", self.failure.clone());
        let written = self.attempt("writing entries", |log| {
            save_committed(log, committed)?;
            log.append(entries.into_iter().map(|entry| {
                let Entry { log_id, payload } = entry;
                (LogIdFrame(log_id), PayloadFrame(payload))
            }))?;
            Ok(())
        });
        self.sync(written, reply);
    }

    fn on_save_vote(&mut self, vote: Vote, reply: Answer<()>) {
        let mark_member = Arc::clone(&self.mark_member);
        let failure = self.failure.clone();
        let marked = Done::new(move |synced| {
            let marked = synced
                .and_then(|()| mark_member().map_err(|error| note(&failure, "marking a member", error)));
            // Whoever asked is gone if this fails to arrive.
            let _ = reply.send(marked);
        });
        let reply = marked.watched("syncing a vote", self.failure.clone());
        let written = self.attempt("writing a vote", |log| log.save_vote(VoteFrame(vote)).map(drop));
        self.sync(written, reply);
    }

    fn on_truncate_after(&mut self, keep: Option<LogId>, reply: Answer<()>) {
        let reply = answer(reply).watched("syncing a truncation", self.failure.clone());
        let index = next_index(keep.as_ref());
        let written = self.attempt("truncating the log", |log| log.truncate(index).map(drop));
        self.sync(written, reply);
    }

    fn on_purge(&mut self, upto: LogId) {
        let reply = Done::new(drop).watched("syncing a purge", self.failure.clone());
        let written = self.attempt("purging the log", |log| log.purge(LogIdFrame(upto)).map(drop));
        self.sync(written, reply);
    }

    fn on_read(&mut self, start: u64, end: u64, bytes_max: usize, reply: Answer<Vec<Entry>>) {
        let entries = self.attempt("reading entries", |log| {
            let mut entries = Vec::new();
            let mut bytes = 0_usize;
            for found in log.read(start, end) {
                let (LogIdFrame(log_id), PayloadFrame(payload)) = found?;
                let entry = Entry { log_id, payload };
                bytes = bytes.saturating_add(size_of_payload(&entry.payload));
                if bytes > bytes_max && !entries.is_empty() {
                    break;
                }
                entries.push(entry);
            }
            Ok(entries)
        });
        // A reader that is gone needs no answer.
        let _ = reply.send(entries);
    }

    fn on_stop(mut self, committed: Option<LogId>, reply: Answer<()>) {
        let stopped = self.attempt("closing the log", |log| {
            save_committed(log, committed)?;
            let (synced, wait) = std::sync::mpsc::sync_channel(1);
            log.flush(
                true,
                Some(Done::new(move |result| Callback::send(synced, result))),
            )?;
            wait.recv().map_err(io::Error::other)?
        });
        // The locks go with the log and the mark, so both must be gone before the answer.
        drop(self.log);
        drop(self.mark_member);
        let _ = reply.send(stopped);
    }

    fn sync(&mut self, written: io::Result<()>, reply: Done) {
        match written {
            // `attempt` keeps an error of the hand-over; one of the sync itself comes through `reply`.
            Ok(()) => {
                let _ = self.attempt("handing over a sync", |log| log.flush(true, Some(reply)));
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Does one thing with the log, unless something failed before.
    fn attempt<T>(
        &mut self,
        operation: &'static str,
        work: impl FnOnce(&mut RaftLog<LogTypes>) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some((kind, text)) = &self.poisoned {
            return Err(io::Error::new(*kind, text.clone()));
        }
        work(&mut self.log).map_err(|error| {
            self.poisoned = Some((error.kind(), error.to_string()));
            note(&self.failure, operation, error)
        })
    }
}

fn save_committed(log: &mut RaftLog<LogTypes>, committed: Option<LogId>) -> io::Result<()> {
    let state = log.log_state();
    let held = state.committed().map(|id| id.0);
    let last = state.last().map(|id| id.0);
    match committed {
        // A commit past the end is one that a snapshot brought; it is written once the log got there.
        Some(committed) if Some(committed) > held && Some(committed) <= last => {
            log.commit(LogIdFrame(committed)).map(drop)
        }
        _ => Ok(()),
    }
}

fn answer(reply: Answer<()>) -> Done {
    Done::new(move |result| {
        let _ = reply.send(result);
    })
}

/// Keeps `error` as the node's failure, and gives back an equal one.
pub(in crate::raft) fn note(failure: &FirstFailure, operation: &'static str, error: io::Error) -> io::Error {
    let again = io::Error::new(error.kind(), error.to_string());
    failure.set(NodeFailure::storage(operation, error));
    again
}

struct PanicGuard {
    failure: FirstFailure,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let source = io::Error::other("the log's thread panicked");
            self.failure.set(NodeFailure::storage("writing the log", source));
        }
    }
}
