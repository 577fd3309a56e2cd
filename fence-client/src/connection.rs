//! One socket: sends requests as they come, many before the first answer, and hands each its answer in order.
//!
//! Owns: the socket, and who waits for which answer. Asks: nobody. Asked by: [`crate::link`] and [`crate::tcp`].
//! Stops: when the socket breaks, when an answer is overdue, or when its last handle is dropped. Then the socket is
//! closed, and all who wait are told what became of their request.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use lease_core::wire::{Reply, ReplyDecodeError, ReplyDecoder};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::info_span;

use crate::call_error::CallError;
use crate::clock::{Clock, Moment, timer_now};
use crate::tasks;
use crate::transport::{Answered, Request};

/// Requests on their way to the socket: callers past this wait for their turn.
const MAILBOX_DEPTH: usize = 64;
/// Requests that were sent and not answered yet: past this the server is behind, and more would only queue there.
const PIPELINE_MAX: usize = 1_024;
/// Bytes that wait for the socket: past this no further request is taken.
const UNSENT_BYTES_MAX: usize = 1_024 * 1_024;

struct Envelope {
    request: Request,
    expires: Instant,
    reply: oneshot::Sender<Result<Answered, CallError>>,
}

/// A handle on one socket.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    mailbox: mpsc::Sender<Envelope>,
}

impl Connection {
    /// Takes a socket over whose greeting is done; `decoder` stands at the start of the next answer.
    pub(crate) fn open<S>(stream: S, decoder: ReplyDecoder, clock: Clock) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let (reader, writer) = tokio::io::split(stream);
        let socket = Socket {
            reader,
            writer,
            decoder,
            clock,
            unsent: BytesMut::new(),
            taken: 0,
            written: 0,
            waiting: VecDeque::new(),
        };
        tasks::spawn(info_span!("connection"), socket.run(inbox));
        Self { mailbox }
    }

    /// Whether the socket is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    /// Sends a request and waits for its answer, at most until `expires`.
    pub(crate) async fn call(&self, request: Request, expires: Instant) -> Result<Answered, CallError> {
        let patience = request.patience;
        if expires <= timer_now() {
            return Err(CallError::NotSent { patience });
        }
        let (reply, answer) = oneshot::channel();
        let envelope = Envelope {
            request,
            expires,
            reply,
        };
        match tokio::time::timeout_at(expires, self.mailbox.send(envelope)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Err(CallError::NotSent { patience }),
        }
        match tokio::time::timeout_at(expires, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(CallError::Stopped),
            Err(_) => Err(CallError::NoAnswer { patience }),
        }
    }
}

/// A request that waits for its answer.
struct Waiting {
    /// Where its first byte stands in the stream.
    starts_at: u64,
    sent: Moment,
    expires: Instant,
    patience: Duration,
    reply: oneshot::Sender<Result<Answered, CallError>>,
}

struct Socket<S> {
    reader: ReadHalf<S>,
    writer: WriteHalf<S>,
    decoder: ReplyDecoder,
    clock: Clock,
    unsent: BytesMut,
    /// Bytes of requests so far, written or not.
    taken: u64,
    /// Bytes that the socket took.
    written: u64,
    waiting: VecDeque<Waiting>,
}

/// Why a socket is closed.
enum End {
    NotWanted,
    Overdue,
    Broken(io::ErrorKind),
    Garbled(ReplyDecodeError),
}

enum Event {
    Asked(Option<Envelope>),
    Wrote(io::Result<usize>),
    Read(io::Result<usize>),
    Overdue,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Socket<S> {
    async fn run(mut self, mut inbox: mpsc::Receiver<Envelope>) {
        let end = loop {
            let end = match self.next_event(&mut inbox).await {
                Event::Asked(Some(envelope)) => self.on_asked(envelope),
                Event::Asked(None) => Err(End::NotWanted),
                Event::Wrote(wrote) => self.on_wrote(wrote),
                Event::Read(read) => self.on_read(read),
                Event::Overdue => Err(End::Overdue),
            };
            if let Err(end) = end {
                break end;
            }
        };
        inbox.close();
        self.tell_all(&end);
        // Those who came meanwhile: nothing of theirs was sent.
        while let Some(envelope) = inbox.recv().await {
            let patience = envelope.request.patience;
            let _ = envelope.reply.send(Err(CallError::NotSent { patience }));
        }
    }

    async fn next_event(&mut self, inbox: &mut mpsc::Receiver<Envelope>) -> Event {
        let overdue = self.waiting.iter().map(|waiting| waiting.expires).min();
        let has_room = self.waiting.len() < PIPELINE_MAX && self.unsent.len() < UNSENT_BYTES_MAX;
        let has_unsent = !self.unsent.is_empty();
        let mut space = self.decoder.space();
        tokio::select! {
            biased;
            () = sleep_until(overdue) => Event::Overdue,
            envelope = inbox.recv(), if has_room => Event::Asked(envelope),
            wrote = self.writer.write_buf(&mut self.unsent), if has_unsent => Event::Wrote(wrote),
            read = self.reader.read_buf(&mut space) => Event::Read(read),
        }
    }

    fn on_asked(&mut self, envelope: Envelope) -> Result<(), End> {
        let Envelope {
            request,
            expires,
            reply,
        } = envelope;
        if reply.is_closed() || expires <= timer_now() {
            return Ok(());
        }
        let patience = request.patience;
        let sent = self.clock.now();
        let Some(command) = request.into_command() else {
            let _ = reply.send(Err(CallError::Withdrawn));
            return Ok(());
        };
        let before = self.unsent.len();
        command.encode(&mut self.unsent);
        let added = self.unsent.len().saturating_sub(before);
        let starts_at = self.taken;
        self.taken = self.taken.saturating_add(added as u64);
        self.waiting.push_back(Waiting {
            starts_at,
            sent,
            expires,
            patience,
            reply,
        });
        Ok(())
    }

    fn on_wrote(&mut self, wrote: io::Result<usize>) -> Result<(), End> {
        match wrote {
            Ok(0) => Err(End::Broken(io::ErrorKind::WriteZero)),
            Ok(wrote) => {
                self.written = self.written.saturating_add(wrote as u64);
                Ok(())
            }
            Err(error) => Err(End::Broken(error.kind())),
        }
    }

    fn on_read(&mut self, read: io::Result<usize>) -> Result<(), End> {
        match read {
            Ok(0) => return Err(End::Broken(io::ErrorKind::UnexpectedEof)),
            Ok(_) => {}
            Err(error) => return Err(End::Broken(error.kind())),
        }
        while let Some(reply) = self.decoder.next_reply().map_err(End::Garbled)? {
            if matches!(reply, Reply::Push(_)) {
                continue;
            }
            // An answer to nothing: the peer and we no longer agree on what answers what.
            let Some(waiting) = self.waiting.pop_front() else {
                return Err(End::Broken(io::ErrorKind::InvalidData));
            };
            let _ = waiting.reply.send(Ok(Answered {
                reply,
                sent: waiting.sent,
            }));
        }
        Ok(())
    }

    /// Tells all who wait what became of their requests: those of which no byte was written were not sent.
    fn tell_all(&mut self, end: &End) {
        for waiting in self.waiting.drain(..) {
            let patience = waiting.patience;
            let error = match end {
                _ if waiting.starts_at >= self.written => CallError::NotSent { patience },
                End::Overdue => CallError::NoAnswer { patience },
                End::Broken(kind) => CallError::Broken { kind: *kind },
                End::Garbled(source) => CallError::Garbled { source: *source },
                End::NotWanted => CallError::Stopped,
            };
            let _ = waiting.reply.send(Err(error));
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
