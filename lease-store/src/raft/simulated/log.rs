//! The simulated twin of the thread that owns the log on disk.
//!
//! Owns: the order in which records are synced. Asks: nobody. Asked by: the log store, over the same queue and with the
//! same messages as the thread. Stops: when told to, when its last handle is gone, or with its node.
//!
//! It keeps what the thread keeps: records are synced in their order, an answer is given only once its record is
//! synced, and the first error is the last operation that is tried.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::Duration;

use openraft::entry::RaftEntry as _;
use raft_log::Callback as _;
use tokio::sync::mpsc;

use super::super::failure::FirstFailure;
use super::super::log_store::twin::{Answer, Done, Ends, MAILBOX_DEPTH, MarkMember, Message, note};
use super::super::types::{Entry, LogId, size_of_payload};
use super::{LogState, Record, SimulatedDisk, Syncs};
use crate::runtime::Rt;

/// What fails when the disk does.
const OPERATION: &str = "syncing the simulated log";

struct Writer<R: Rt> {
    disk: SimulatedDisk,
    /// The log with all that is written, synced or not.
    written: LogState,
    failure: FirstFailure,
    poisoned: Option<(io::ErrorKind, String)>,
    mark_member: MarkMember,
    /// What waits for a sync, in order.
    waiting: VecDeque<Waiting>,
    /// The sync under way: until when, and for how many of those that wait.
    under_way: Option<(R::Instant, usize)>,
}

/// The records of one message, and whom to answer.
struct Waiting {
    records: usize,
    reply: Done,
}

/// Opens the log of a disk, and starts its writer as a task of the node.
pub(in crate::raft) fn spawn<R: Rt>(
    node: u64,
    disk: &SimulatedDisk,
    mark_member: MarkMember,
    failure: FirstFailure,
) -> (mpsc::Sender<Message>, Ends) {
    let written = disk.lock().synced.clone();
    let ends = Ends {
        last: written.last(),
        purged: written.purged,
        vote: written.vote,
        committed: written.committed,
    };
    let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
    let writer = Writer::<R> {
        disk: disk.clone(),
        written,
        failure,
        poisoned: None,
        mark_member,
        waiting: VecDeque::new(),
        under_way: None,
    };
    // It ends with its mailbox, and nobody joins it, as nobody joins the thread.
    drop(R::spawn_on(node, writer.run(inbox)));
    (mailbox, ends)
}

impl<R: Rt> Writer<R> {
    async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        loop {
            let synced_at = self.under_way.map(|(at, _)| at);
            tokio::select! {
                biased;
                () = sleep_until::<R>(synced_at) => self.on_synced(),
                message = inbox.recv() => match message {
                    Some(Message::Stop { committed, reply }) => return self.on_stop(committed, reply).await,
                    Some(message) => self.on_message(message),
                    None => return,
                },
            }
        }
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Append {
                entries,
                committed,
                reply,
            } => {
                let mut records: Vec<Record> = self.commit(committed).into_iter().collect();
                records.extend(entries.into_iter().map(Record::Entry));
                self.write(records, reply.watched(OPERATION, self.failure.clone()));
            }
            Message::SaveVote { vote, reply } => {
                let mark_member = self.mark_member.clone();
                let marked = Done::new(move |synced: io::Result<()>| {
                    // Whoever asked is gone if this fails to arrive.
                    let _ = reply.send(synced.and_then(|()| mark_member()));
                });
                self.write(
                    vec![Record::Vote(vote)],
                    marked.watched(OPERATION, self.failure.clone()),
                );
            }
            Message::TruncateAfter { keep, reply } => {
                let told = answer(reply).watched(OPERATION, self.failure.clone());
                self.write(vec![Record::TruncateAfter(keep)], told);
            }
            Message::Purge { upto } => {
                let told = Done::new(drop).watched(OPERATION, self.failure.clone());
                self.write(vec![Record::Purge(upto)], told);
            }
            Message::Read {
                start,
                end,
                bytes_max,
                reply,
            } => {
                // A reader that is gone needs no answer.
                let _ = reply.send(self.read(start, end, bytes_max));
            }
            Message::Stop { reply, .. } => {
                let _ = reply.send(Ok(()));
            }
        }
    }

    async fn on_stop(mut self, committed: Option<LogId>, reply: Answer<()>) {
        if let Some(commit) = self.commit(committed) {
            self.write(
                vec![commit],
                Done::new(drop).watched(OPERATION, self.failure.clone()),
            );
        }
        while let Some((at, _)) = self.under_way {
            R::sleep_until(at).await;
            self.on_synced();
        }
        let _ = reply.send(self.standing());
    }

    /// A commit past the end is one that a snapshot brought; it is written once the log got there.
    fn commit(&self, committed: Option<LogId>) -> Option<Record> {
        let committed = committed?;
        let news = Some(committed) > self.written.committed && Some(committed) <= self.written.last();
        news.then_some(Record::Commit(committed))
    }

    /// Writes records down, in memory as yet, and has them synced when it is their turn.
    fn write(&mut self, records: Vec<Record>, reply: Done) {
        if let Err(error) = self.standing() {
            return reply.send(Err(error));
        }
        let waiting = Waiting {
            records: records.len(),
            reply,
        };
        for record in &records {
            self.written.apply(record);
        }
        self.disk.lock().unsynced.extend(records);
        self.waiting.push_back(waiting);
        self.begin_sync();
    }

    fn begin_sync(&mut self) {
        if self.under_way.is_some() || self.waiting.is_empty() {
            return;
        }
        let behaviour = self.disk.lock().behaviour;
        let span = behaviour.sync_max.saturating_sub(behaviour.sync_min);
        let span_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
        let takes = behaviour.sync_min + Duration::from_micros(R::random_u64() % span_us);
        self.under_way = Some((R::now() + takes, self.waiting.len()));
    }

    fn on_synced(&mut self) {
        let Some((_, count)) = self.under_way.take() else {
            return;
        };
        let done: Vec<Waiting> = self.waiting.drain(..count).collect();
        let mut disk = self.disk.lock();
        if disk.behaviour.syncs == Syncs::Fail {
            disk.counts.failed = disk.counts.failed.saturating_add(1);
            drop(disk);
            let error = io::Error::other("the simulated disk failed");
            self.poisoned = Some((error.kind(), error.to_string()));
            drop(note(&self.failure, OPERATION, error));
        } else {
            disk.sync(done.iter().map(|waiting| waiting.records).sum());
            drop(disk);
        }
        let rest = match self.poisoned {
            Some(_) => std::mem::take(&mut self.waiting),
            None => VecDeque::new(),
        };
        for Waiting { reply, .. } in done.into_iter().chain(rest) {
            reply.send(self.standing());
        }
        self.begin_sync();
    }

    /// The error that came before, if any.
    fn standing(&self) -> io::Result<()> {
        match &self.poisoned {
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
            None => Ok(()),
        }
    }

    fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<Entry>> {
        self.standing()?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut bytes = 0_usize;
        for (index, entry) in self.written.entries.range(start..end.max(start)) {
            let follows = entries
                .last()
                .is_none_or(|last| last.index().saturating_add(1) == *index);
            bytes = bytes.saturating_add(size_of_payload(&entry.payload));
            if !follows || (bytes > bytes_max && !entries.is_empty()) {
                break;
            }
            entries.push(entry.clone());
        }
        Ok(entries)
    }
}

/// A disabled wait must still be an expression.
async fn sleep_until<R: Rt>(at: Option<R::Instant>) {
    match at {
        Some(at) => R::sleep_until(at).await,
        None => pending().await,
    }
}

fn answer(reply: Answer<()>) -> Done {
    Done::new(move |result| {
        let _ = reply.send(result);
    })
}
