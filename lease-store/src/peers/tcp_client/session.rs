//! One connection: calls go out, answers come back in any order, told apart by their ids.
//!
//! A late answer is known by its id and dropped, so a slow peer costs no connection. One that says nothing at all
//! while a call is overdue does: the other end may be gone without a word.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};

use super::ticket::{Answer, Call};
use crate::peers::frame::{ANSWERED, Frame, FrameError, FrameReader, FrameWriter};
use crate::peers::transport::{Lane, PeerError, Refusal};
use crate::runtime::{AsyncRuntime, Rt, Tokio};

/// How long a peer may say nothing at all while it owes an answer, before the connection is given up.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// A connection that nobody uses is closed after this time; the peer waits longer, so that no call meets its close.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long one write may take, before the connection is given up: the other end reads nothing.
const WRITE_WITHIN: Duration = Duration::from_secs(5);
/// Bytes that are gathered before they are written.
const GATHER_BYTES: usize = 64 * 1_024;
/// Calls without an answer, the given-up ones too. More than a lane's mailbox can bring within a second.
const UNANSWERED_MAX: usize = 4_096;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nobody calls any more.
    Stopped,
    /// It broke or was idle, after at least one answer.
    Useful,
    /// It broke before anything was answered.
    Useless,
}

type SessionInstant = <Tokio as AsyncRuntime>::Instant;

/// The calls of one connection.
pub(super) struct Session {
    to: u64,
    lane: Lane,
    overdue: Arc<Notify>,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    next_id: u64,
    unanswered: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Since when the peer owes an answer and has said nothing.
    silent_since: Option<SessionInstant>,
    answers: u64,
}

/// What ended a session.
enum End {
    Stopped,
    Idle,
    Broken,
}

impl Session {
    pub(super) fn new(to: u64, lane: Lane, overdue: Arc<Notify>) -> Self {
        let calls = Mutex::default();
        Self {
            to,
            lane,
            overdue,
            calls,
        }
    }

    /// Sends `first` and what follows, until the connection ends; then every call without an answer is told so.
    pub(super) async fn run(
        self,
        mut stream: TcpStream,
        first: Call,
        inbox: &mut mpsc::Receiver<Call>,
    ) -> Ended {
        let (read, write) = stream.split();
        let frames = FrameReader::new(read, self.lane.answer_bytes_max());
        let end = tokio::select! {
            biased;
            () = self.watch_silence() => End::Broken,
            read = self.read_answers(frames) => self.tell_read(read),
            end = self.write_calls(FrameWriter::new(write), first, inbox) => end,
        };
        let answered = self.lock().answers > 0;
        self.fail_all();
        match end {
            End::Stopped => Ended::Stopped,
            End::Idle => Ended::Useful,
            End::Broken if answered => Ended::Useful,
            End::Broken => Ended::Useless,
        }
    }

    fn tell_read(&self, read: Result<(), FrameError>) -> End {
        match read {
            Ok(()) => tracing::debug!(peer = self.to, lane = %self.lane, "the peer has hung up"),
            Err(error) => {
                tracing::warn!(peer = self.to, lane = %self.lane, %error, "a connection to a peer broke");
            }
        }
        End::Broken
    }

    /// Returns once an overdue call shows that the peer has said nothing for too long.
    async fn watch_silence(&self) {
        loop {
            self.overdue.notified().await;
            let since = self.lock().silent_since;
            if since.is_some_and(|since| since + SILENCE_MAX <= Tokio::now()) {
                tracing::warn!(peer = self.to, lane = %self.lane, "the peer says nothing: connecting anew");
                return;
            }
        }
    }

    async fn read_answers(
        &self,
        mut frames: FrameReader<impl AsyncRead + Unpin + Send>,
    ) -> Result<(), FrameError> {
        while let Some(frame) = frames.next().await? {
            let mut calls = self.lock();
            if frame.id >= calls.next_id {
                // Nobody asked: the two ends do not mean the same stream.
                return Err(FrameError::Damaged);
            }
            let reply = calls.unanswered.remove(&frame.id);
            calls.answers = calls.answers.saturating_add(1);
            calls.silent_since = (!calls.unanswered.is_empty()).then(Tokio::now);
            drop(calls);
            // None: it was forgotten long ago. A caller that has given up needs no answer either.
            let _ = reply.map(|reply| reply.send(self.answer(frame)));
        }
        Ok(())
    }

    fn answer(&self, frame: Frame) -> Answer {
        match frame.tag {
            ANSWERED => Ok(frame.body),
            code => Err(PeerError::Refused {
                to: self.to,
                refusal: Refusal::from_code(code),
            }),
        }
    }

    async fn write_calls(
        &self,
        mut frames: FrameWriter<impl AsyncWrite + Unpin + Send>,
        first: Call,
        inbox: &mut mpsc::Receiver<Call>,
    ) -> End {
        let mut next = Some(first);
        loop {
            let call = match next.take() {
                Some(call) => call,
                None => match Tokio::timeout(IDLE_MAX, inbox.recv()).await {
                    Ok(Some(call)) => call,
                    Ok(None) => return End::Stopped,
                    Err(_) if self.lock().unanswered.is_empty() => return End::Idle,
                    Err(_) => continue,
                },
            };
            let Some(frame) = self.register(call) else {
                continue;
            };
            let written = Tokio::timeout(WRITE_WITHIN, self.write(&mut frames, &frame, inbox));
            match written.await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return End::Broken,
            }
        }
    }

    /// Writes one call, and those that wait behind it, in one go.
    async fn write(
        &self,
        frames: &mut FrameWriter<impl AsyncWrite + Unpin + Send>,
        first: &Frame,
        inbox: &mut mpsc::Receiver<Call>,
    ) -> io::Result<()> {
        frames.put(first).await?;
        while frames.gathered_bytes() < GATHER_BYTES
            && let Ok(call) = inbox.try_recv()
        {
            if let Some(frame) = self.register(call) {
                frames.put(&frame).await?;
            }
        }
        frames.flush().await
    }

    /// Notes a call as sent; `None` if its caller has given it up.
    fn register(&self, call: Call) -> Option<Frame> {
        let mut calls = self.lock();
        if calls.unanswered.len() >= UNANSWERED_MAX {
            // Their answers may still come, and find nobody.
            calls.unanswered.retain(|_, reply| !reply.is_closed());
        }
        if !call.sends() {
            return None;
        }
        let id = calls.next_id;
        calls.next_id = id.saturating_add(1);
        calls.unanswered.insert(id, call.reply);
        calls.silent_since.get_or_insert_with(Tokio::now);
        drop(calls);
        Some(Frame {
            id,
            tag: call.kind.code(),
            body: call.body,
        })
    }

    fn fail_all(&self) {
        let unanswered = std::mem::take(&mut self.lock().unanswered);
        for reply in unanswered.into_values() {
            let _ = reply.send(Err(PeerError::Broken { to: self.to }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        // No code under this lock can panic half-way through a change.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
