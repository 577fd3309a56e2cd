//! The writer: the one thread that touches the database.
//!
//! Owns the database, its barrier, witness and lock. Asks nobody. Asked by [`WriterHandle`]s. It drains its mailbox
//! into one group, decides the requests one after another, each on top of those before it, writes the group as one batch,
//! passes one barrier, and only then answers, replays and reads too. It stops when the last handle is gone, when it is told to
//! close, and at the first storage error, after which nothing is answered any more.

use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, watch};

use super::directory::{Opened, panic_text};
use super::hold::LogHold;
use super::mailbox::{Answer, Job, MAILBOX_DEPTH, Message, Reply, WriterHandle};
use super::progress::Progress;
use super::watchdog::Leash;
use super::{SledConfig, Stage, watchdog};
use crate::core::{Protection, Protections};
use crate::error::{Certainty, OpenError, StorageFailure, StoreError};
use crate::limits::GROUP_REQUESTS_MAX;
use crate::store::Health;
use crate::store::hook::Hook;
use crate::store::transaction::Transaction;

struct Writer {
    database: Database,
    protections: Protections,
    progress: Arc<Progress>,
    hook: Hook<Stage>,
    health: LastWord,
    _watchdog: Leash,
}

/// The open directory; let go of only on purpose.
struct Database(Option<Opened>);

impl Drop for Database {
    /// After a storage error or a panic sled must not be dropped: it would flush and sync again.
    fn drop(&mut self) {
        mem::forget(self.0.take());
    }
}

/// Tells everybody when the writer ends in another way than it meant to.
struct LastWord(watch::Sender<Health>);

impl Drop for LastWord {
    fn drop(&mut self) {
        self.end(Health::Stopped(Arc::new(StorageFailure::WriterDied)));
    }
}

impl LastWord {
    /// The first end counts.
    fn end(&self, end: Health) {
        self.0.send_if_modified(|health| {
            let open = matches!(health, Health::Serving | Health::Stalled);
            if open {
                *health = end;
            }
            open
        });
    }
}

pub(super) fn spawn(opened: Opened, config: &SledConfig) -> Result<WriterHandle, OpenError> {
    let no_thread = |source: io::Error| OpenError::Files {
        dir: config.dir().to_owned(),
        action: "start a thread for the ledger",
        source: source.into(),
    };
    let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
    let (health, watched) = watch::channel(Health::Serving);
    let progress = Arc::new(Progress::new());
    let watchdog = watchdog::spawn(
        Arc::clone(&progress),
        health.clone(),
        opened.rows.db(),
        config.stuck_after(),
    )
    .map_err(no_thread)?;
    let writer = Writer {
        database: Database(Some(opened)),
        protections: config.protections(),
        progress,
        hook: config.hook(),
        health: LastWord(health),
        _watchdog: watchdog,
    };
    thread::Builder::new()
        .name("ledger-writer".to_owned())
        .spawn(move || writer.run(inbox))
        .map_err(no_thread)?;
    Ok(WriterHandle::new(mailbox, watched))
}

impl Writer {
    fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let ended = self.serve(&mut inbox);
        match ended {
            Ok(reply) => self.close(reply, inbox),
            Err(failure) => self.stop(failure, inbox),
        }
    }

    /// Serves until it shall close; with it, who waits for that.
    fn serve(&mut self, inbox: &mut mpsc::Receiver<Message>) -> Result<Option<Reply<()>>, StorageFailure> {
        let Some(opened) = &self.database.0 else {
            return Err(StorageFailure::WriterDied);
        };
        let db = opened.rows.db().clone();
        let mut hold = LogHold::new(&db, self.protections);
        loop {
            let (group, close) = collect(inbox);
            if !group.is_empty() {
                self.on_group(group, &mut hold)?;
            }
            match close {
                Close::No => continue,
                Close::Asked(reply) => {
                    hold.let_go_of_peg();
                    return Ok(Some(reply));
                }
                Close::Abandoned => {
                    hold.let_go_of_peg();
                    return Ok(None);
                }
            }
        }
    }

    /// Decides, writes, makes durable, answers. On an error the answers are dropped: what became of them is unknown.
    fn on_group(&mut self, group: Vec<Box<dyn Job>>, hold: &mut LogHold<'_>) -> Result<(), StorageFailure> {
        let (progress, hook) = (Arc::clone(&self.progress), self.hook.clone());
        let enter = |stage| {
            progress.enter(stage);
            hook.at(stage).map_err(|source| StorageFailure::Files {
                action: "pass a stage",
                source: source.into(),
            })
        };
        let Some(opened) = &mut self.database.0 else {
            return Err(StorageFailure::WriterDied);
        };
        enter(Stage::Deciding)?;
        hold.begin()?;
        let mut transaction = Transaction::begin(&opened.rows, self.protections)?;
        let mut answers: Vec<Answer> = Vec::with_capacity(group.len());
        for job in group {
            answers.extend(job.serve(&mut transaction)?);
        }
        let written = transaction.finish()?;
        let commit = match written {
            Some((writes, commit)) => {
                enter(Stage::Applying)?;
                opened.rows.apply(writes)?;
                Some(commit)
            }
            None => None,
        };
        if commit.is_some() || hold.has_new_segment() {
            hold.let_go_of_peg();
            if self.protections.are_with(Protection::DurabilityBarrier) {
                opened.barrier.wait(opened.rows.db(), &enter)?;
            }
            hold.passed();
        }
        hold.leave();
        if let Some(commit) = commit {
            enter(Stage::Answering)?;
            opened
                .witness
                .note(commit)
                .map_err(|source| StorageFailure::Files {
                    action: "write the witness",
                    source: source.into(),
                })?;
        }
        for answer in answers {
            answer();
        }
        progress.enter(Stage::Idle);
        Ok(())
    }

    /// The first storage error: nothing is answered any more, and no file is touched again.
    fn stop(self, failure: StorageFailure, mut inbox: mpsc::Receiver<Message>) {
        tracing::error!(error = ?failure, "the ledger stops at a storage error; stop this process");
        let failure = Arc::new(failure);
        self.health.end(Health::Stopped(Arc::clone(&failure)));
        inbox.close();
        while let Ok(message) = inbox.try_recv() {
            message.refuse(StoreError::Stopped {
                certainty: Certainty::NotApplied,
                failure: Arc::clone(&failure),
            });
        }
    }

    /// Lets go of the files, then says so.
    fn close(mut self, reply: Option<Reply<()>>, mut inbox: mpsc::Receiver<Message>) {
        self.progress.enter(Stage::Closing);
        inbox.close();
        let closed = match self.database.0.take() {
            Some(opened) => release(opened),
            None => Ok(()),
        };
        self.progress.enter(Stage::Idle);
        let answer = match closed {
            Ok(()) => {
                self.health.end(Health::Closed);
                Ok(())
            }
            Err(failure) => {
                tracing::error!(error = ?failure, "the ledger did not close cleanly");
                let failure = Arc::new(failure);
                self.health.end(Health::Stopped(Arc::clone(&failure)));
                Err(StoreError::Stopped {
                    certainty: Certainty::NotApplied,
                    failure,
                })
            }
        };
        while let Ok(message) = inbox.try_recv() {
            message.refuse(StoreError::Closed);
        }
        if let Some(reply) = reply {
            // The caller may have gone; the ledger is closed all the same.
            let _gone = reply.send(answer);
        }
    }
}

/// Closes the database; all of it was made durable before it was answered for. sled panics where its last sync fails.
fn release(opened: Opened) -> Result<(), StorageFailure> {
    let Opened {
        rows,
        barrier,
        witness,
        lock,
    } = opened;
    let synced = witness.sync();
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(rows.into_db())));
    drop(barrier);
    drop(lock);
    dropped.map_err(|panic| StorageFailure::Files {
        action: "close the database",
        source: panic_text(&*panic).into(),
    })?;
    synced.map_err(|source| StorageFailure::Files {
        action: "sync the witness",
        source: source.into(),
    })
}

/// Why the writer should close after a group.
enum Close {
    No,
    Asked(Reply<()>),
    /// The last handle is gone.
    Abandoned,
}

/// Waits for a first request and takes what else is there.
fn collect(inbox: &mut mpsc::Receiver<Message>) -> (Vec<Box<dyn Job>>, Close) {
    let mut group = Vec::new();
    let mut next = inbox.blocking_recv();
    loop {
        match next {
            None => return (group, Close::Abandoned),
            Some(Message::Close { reply }) => return (group, Close::Asked(reply)),
            Some(Message::Job(job)) => group.push(job),
        }
        if group.len() == GROUP_REQUESTS_MAX {
            return (group, Close::No);
        }
        next = match inbox.try_recv() {
            Ok(message) => Some(message),
            Err(_) => return (group, Close::No),
        };
    }
}
