//! Serves one socket: reads all requests there are, asks for them, and writes all answers in one call.
//!
//! Owns: the socket and its session. Asks: the store. Asked by: nobody. Stops: when the client leaves, breaks the
//! protocol or does not read its answers, or the server stops.
//!
//! It reads no further while answers wait to be written, so a client that never reads costs one batch of answers.

use std::future::{pending, poll_fn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::stream::{FuturesOrdered, StreamExt};
use lease_core::wire::{ErrorWord, Reply, Request, RequestDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::answer::{Answer, Unclaimed};
use super::info::ServerFacts;
use super::listener::Flushing;
use super::plan::{Call, Plan};
use super::pubsub::{Message, Pubsub, Subscriber};
use super::session::Session;
use crate::runtime::{AsyncRuntime, Rt, Tokio};
use crate::store::LeaseStore;

/// Changes of one connection that are under way at once.
const PIPELINE_MAX: usize = 256;
/// Bytes of the changes of one connection that are under way at once, unless a single one is larger.
const PIPELINE_BYTES_MAX: usize = 32 * 1_024 * 1_024;
/// Answers are written once they are this long, in bytes, even if more requests are there.
const WRITE_BYTES: usize = 64 * 1_024;
/// How long a client may take to read a batch of answers before it is cut off.
const WRITE_WITHIN: Duration = Duration::from_secs(30);
/// Bytes that a client may send ahead while it waits in a queue.
const READ_AHEAD_BYTES_MAX: usize = 64 * 1_024;

/// One client's connection.
pub(super) struct Connection {
    pub(super) store: LeaseStore,
    pub(super) session: Session,
    pub(super) max_value: usize,
    pub(super) socket: TcpStream,
    pub(super) decoder: RequestDecoder,
    pub(super) facts: Facts,
    pub(super) out: BytesMut,
    /// Grants in `out` that their caller cannot ask for again, each with where its answer ends there.
    pub(super) unclaimed: Vec<(usize, Unclaimed)>,
    /// Answers in `out`, and how many of them are errors.
    pub(super) served: u64,
    pub(super) failed: u64,
}

/// What a connection knows of its server.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) port: u16,
    pub(super) started_at: <Tokio as AsyncRuntime>::Instant,
    pub(super) connections: Arc<AtomicUsize>,
    pub(super) pubsub: Arc<Pubsub>,
    pub(super) flushing: Flushing,
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The client left, or cannot be written to.
    Gone,
    /// The server ends it, with what is in `out` as its last words.
    Closing,
}

impl Connection {
    /// Serves the client until it leaves or `stop` is closed or set.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<()>) {
        let end = loop {
            tokio::select! {
                biased;
                // A change or a closed channel: the server stops.
                _ = stop.changed() => break End::Closing,
                read = read(&mut self.socket, &mut self.decoder) => match read {
                    Ok(0) | Err(_) => break End::Gone,
                    Ok(_) => if let Err(end) = self.serve_all(&mut stop).await { break end },
                },
                message = heard(self.session.subscriber.as_mut()) => {
                    if let Err(end) = self.pass_on(message).await {
                        break end;
                    }
                }
            }
        };
        if matches!(end, End::Closing) {
            let _ = self.flush().await;
            let _ = self.socket.shutdown().await;
        }
        for (_, Unclaimed { key, token }) in self.unclaimed.drain(..) {
            self.store.orphans().release(key, token);
        }
    }

    pub(super) fn facts(&self) -> ServerFacts {
        ServerFacts {
            port: self.facts.port,
            uptime_s: (Tokio::now() - self.facts.started_at).as_secs(),
            connections: self.facts.connections.load(Ordering::Relaxed) as u64,
        }
    }

    /// Serves all whole requests that were read.
    async fn serve_all(&mut self, stop: &mut watch::Receiver<()>) -> Result<(), End> {
        let mut changes: FuturesOrdered<Call> = FuturesOrdered::new();
        let mut bytes = 0_usize;
        loop {
            let request = match self.decoder.next_request() {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(error) => {
                    self.finish(&mut changes).await?;
                    self.answer(error.to_reply().into());
                    return Err(End::Closing);
                }
            };
            bytes = bytes.saturating_add(request.args().map(<[u8]>::len).sum());
            if bytes > PIPELINE_BYTES_MAX {
                self.finish(&mut changes).await?;
                bytes = 0;
            }
            self.serve(&request, &mut changes, stop).await?;
            self.decoder.set_access(self.session.access);
        }
        self.finish(&mut changes).await?;
        self.flush().await
    }

    async fn serve(
        &mut self,
        request: &Request,
        changes: &mut FuturesOrdered<Call>,
        stop: &mut watch::Receiver<()>,
    ) -> Result<(), End> {
        let protocol = self.session.protocol;
        let plan = self.plan(request);
        if self.session.protocol != protocol {
            // What was asked before is answered in the protocol of before.
            let new = std::mem::replace(&mut self.session.protocol, protocol);
            self.finish(changes).await?;
            self.session.protocol = new;
        }
        match plan {
            Plan::Now(reply) if changes.is_empty() => self.answer(reply.into()),
            Plan::Now(reply) => changes.push_back(Box::pin(std::future::ready(Answer::from(reply)))),
            Plan::Last(reply) => {
                self.finish(changes).await?;
                self.answer(reply.into());
                return Err(End::Closing);
            }
            Plan::Change(call) => changes.push_back(begin(call).await),
            Plan::Read(call) => {
                self.finish(changes).await?;
                let answer = call.await;
                self.answer(answer);
            }
            Plan::Told(replies) => {
                self.finish(changes).await?;
                for reply in replies {
                    self.answer(reply.into());
                }
            }
            Plan::Exec { call, before } => {
                self.finish(changes).await?;
                let answer = call.await;
                if !matches!(answer.reply, Reply::Array(_)) {
                    self.session.restore(before);
                }
                self.answer(answer);
            }
            Plan::Watch(sightings) => {
                self.finish(changes).await?;
                let answer = match sightings.await {
                    Ok(seen) => {
                        self.session.watched.extend(seen);
                        Reply::OK
                    }
                    Err(error) => error.to_reply(),
                };
                self.answer(answer.into());
            }
            Plan::Wait(call) => {
                self.finish(changes).await?;
                // Whoever waits long shall not withhold the answers before.
                self.flush().await?;
                let answer = self.wait(call, stop).await?;
                self.answer(answer);
            }
        }
        if changes.len() >= PIPELINE_MAX || self.out.len() >= WRITE_BYTES {
            self.finish(changes).await?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Waits for the changes under way, and puts their answers in order.
    async fn finish(&mut self, changes: &mut FuturesOrdered<Call>) -> Result<(), End> {
        while let Some(answer) = changes.next().await {
            self.answer(answer);
        }
        Ok(())
    }

    /// Waits in a queue. A client that leaves meanwhile gives its place up: the call is dropped.
    async fn wait(&mut self, mut call: Call, stop: &mut watch::Receiver<()>) -> Result<Answer, End> {
        let mut ahead = 0_usize;
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return Ok(answer),
                _ = stop.changed() => {
                    let text = "the server is stopping: try again with the same request id";
                    self.answer(Reply::error(ErrorWord::Unknown, text).into());
                    return Err(End::Closing);
                }
                read = read(&mut self.socket, &mut self.decoder), if ahead < READ_AHEAD_BYTES_MAX => {
                    match read {
                        Ok(0) | Err(_) => return Err(End::Gone),
                        Ok(bytes) => ahead = ahead.saturating_add(bytes),
                    }
                }
                message = heard(self.session.subscriber.as_mut()) => self.pass_on(message).await?,
            }
        }
    }

    /// Passes messages on; `None` is the end of whoever did not keep up.
    async fn pass_on(&mut self, message: Option<Message>) -> Result<(), End> {
        let mut next = Some(message.ok_or(End::Gone)?);
        while let Some(message) = next {
            message.to_reply().encode(self.session.protocol, &mut self.out);
            next = if self.out.len() < WRITE_BYTES {
                self.session.subscriber.as_mut().and_then(Subscriber::waiting)
            } else {
                None
            };
        }
        self.flush().await
    }

    fn answer(&mut self, answer: Answer) {
        self.served = self.served.saturating_add(1);
        if matches!(answer.reply, Reply::Error(_)) {
            self.failed = self.failed.saturating_add(1);
        }
        answer.reply.encode(self.session.protocol, &mut self.out);
        let end = self.out.len();
        self.unclaimed.extend(answer.unclaimed.map(|grant| (end, grant)));
    }

    /// Writes the answers. Once they are written, their grants are the caller's, who may disconnect and keep them.
    async fn flush(&mut self) -> Result<(), End> {
        if self.out.is_empty() {
            return Ok(());
        }
        let (served, failed) = (std::mem::take(&mut self.served), std::mem::take(&mut self.failed));
        self.store.metrics().requests_served(served, failed);
        let mut written = 0_usize;
        let writing = write_all(&mut self.socket, &self.out, &mut written);
        let ended = tokio::select! {
            biased;
            () = cut_off(self.session.subscriber.as_ref()) => Ok(Err(io::ErrorKind::ConnectionAborted.into())),
            ended = Tokio::timeout(WRITE_WITHIN, writing) => ended,
        };
        // Whatever was written is its reader's, also when the rest was not.
        self.unclaimed.retain(|(end, _)| *end > written);
        match ended {
            Ok(Ok(())) => {
                self.out.clear();
                Ok(())
            }
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => {
                tracing::info!(client = self.session.id, "cut off: it does not read its answers");
                Err(End::Gone)
            }
        }
    }
}

/// Asks for a change now, and gives the wait for its answer.
///
/// Changes must be asked for in the order in which they stand. A set of futures that is polled as a whole does not
/// promise that: once tokio's budget for one poll is spent, those that are left come in another order.
async fn begin(mut call: Call) -> Call {
    let asked = poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
    match tokio::task::unconstrained(asked).await {
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
        Poll::Pending => call,
    }
}

/// The next message, or that the connection was cut off; never, if it listens to nothing. Cancel safe.
async fn heard(subscriber: Option<&mut Subscriber>) -> Option<Message> {
    match subscriber {
        Some(subscriber) => subscriber.next().await,
        None => pending().await,
    }
}

async fn cut_off(subscriber: Option<&Subscriber>) {
    match subscriber {
        Some(subscriber) => subscriber.cut_off().await,
        None => pending().await,
    }
}

/// Writes all of it; `written` tells how much of it was, at any moment.
async fn write_all(socket: &mut TcpStream, out: &[u8], written: &mut usize) -> io::Result<()> {
    while let Some(rest) = out.get(*written..).filter(|rest| !rest.is_empty()) {
        match socket.write(rest).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            more => *written = written.saturating_add(more),
        }
    }
    Ok(())
}

/// Cancel safe, as the socket's own read.
async fn read(socket: &mut TcpStream, decoder: &mut RequestDecoder) -> io::Result<usize> {
    let mut space = decoder.space();
    socket.read_buf(&mut space).await
}
