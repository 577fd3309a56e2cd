//! One connection of a peer.
//!
//! Owns: its socket, and the calls of it that are being served. Asks: the handler. Stops: at the end of the stream, on
//! the first word that makes no sense, after a long silence, when a newer connection of the same peer and lane is
//! there, or with the server. Calls that are served then are dropped: nobody would hear the answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use super::Known;
use crate::peers::frame::{ANSWERED, Frame, FrameError, FrameReader, FrameWriter};
use crate::peers::handshake::{self, Caller, HandshakeError, HandshakeRefusal, Room};
use crate::peers::identity::PeerIdentity;
use crate::peers::transport::{Kind, Lane, PeerHandler, Refusal};
use crate::runtime::{AsyncRuntime, Tokio};

/// How long a caller may take to introduce itself.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(2);
/// How long nothing may come while nothing is served. Longer than a peer keeps an idle connection.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// How long one write may take: the other end reads nothing.
const WRITE_WITHIN: Duration = Duration::from_secs(5);
/// How long a call may be served: the longest is to install a snapshot. Without a bound, calls whose peer has gone
/// without a word would stay while there is no room to read that it has.
const SERVE_WITHIN: Duration = Duration::from_secs(60);
/// Calls served at once. More wait in the socket.
const CALLS_MAX: usize = 64;
/// Bytes of the calls served at once, unless one alone is longer. More wait in the socket.
const CALL_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// A connection that is to be served.
pub(super) struct Connection<H> {
    pub(super) identity: PeerIdentity,
    pub(super) handler: Arc<H>,
    pub(super) known: Arc<Known>,
    pub(super) address: SocketAddr,
}

/// A call that was served.
struct Served {
    bytes: usize,
    answer: Frame,
}

impl<H: PeerHandler> Connection<H> {
    pub(super) async fn run(self, mut stream: TcpStream, room: Room, mut stop: watch::Receiver<()>) {
        let introduced = tokio::select! {
            biased;
            _ = stop.changed() => return,
            introduced = Tokio::timeout(
                HANDSHAKE_WITHIN,
                handshake::answer(&mut stream, &self.identity, room),
            ) => introduced,
        };
        let caller = match introduced {
            Ok(Ok(caller)) => caller,
            Ok(Err(HandshakeError::Refused(refusal))) => return self.tell_refused(refusal),
            Ok(Err(HandshakeError::Io(error))) => {
                tracing::debug!(address = %self.address, %error, "a caller left during the handshake");
                return;
            }
            Err(_) => {
                tracing::warn!(address = %self.address, "a caller did not introduce itself");
                return;
            }
        };
        let Caller { from, lane, version } = caller;
        tracing::debug!(peer = from, %lane, version, "a peer has connected");
        let (number, replaced) = self.known.enter(from, lane);
        let ended = tokio::select! {
            biased;
            _ = stop.changed() => Ok(()),
            ended = self.serve(&mut stream, from, lane, replaced) => ended,
        };
        self.known.leave(from, lane, number);
        match ended {
            Ok(()) => tracing::debug!(peer = from, %lane, "a peer has disconnected"),
            Err(error) => tracing::warn!(peer = from, %lane, %error, "a connection of a peer broke"),
        }
    }

    async fn serve(
        &self,
        stream: &mut TcpStream,
        from: u64,
        lane: Lane,
        mut replaced: oneshot::Receiver<()>,
    ) -> Result<(), FrameError> {
        let (read, write) = stream.split();
        let mut calls = FrameReader::new(read, lane.call_bytes_max());
        let mut answers = FrameWriter::new(write);
        let mut served = FuturesUnordered::new();
        let mut served_bytes = 0_usize;
        loop {
            let has_room = served.len() < CALLS_MAX && served_bytes < CALL_BYTES_MAX;
            tokio::select! {
                biased;
                _ = &mut replaced => return Ok(()),
                Some(done) = served.next(), if !served.is_empty() => {
                    let done: Served = done;
                    served_bytes = served_bytes.saturating_sub(done.bytes);
                    let mut ready = vec![done.answer];
                    while let Some(Some(done)) = served.next().now_or_never() {
                        served_bytes = served_bytes.saturating_sub(done.bytes);
                        ready.push(done.answer);
                    }
                    write_all(&mut answers, &ready).await?;
                }
                call = Tokio::timeout(SILENCE_MAX, calls.next()), if has_room => match call {
                    Ok(call) => {
                        let Some(call) = call? else { return Ok(()) };
                        served_bytes = served_bytes.saturating_add(call.body.len());
                        served.push(self.serve_call(from, lane, call));
                    }
                    Err(_) if served.is_empty() => return Ok(()),
                    Err(_) => {}
                },
            }
        }
    }

    async fn serve_call(&self, from: u64, lane: Lane, call: Frame) -> Served {
        let Frame { id, tag, body } = call;
        let bytes = body.len();
        let kind = Kind::from_code(tag).filter(|kind| lane.carries(*kind));
        let result = match kind {
            Some(kind) => {
                let served = Tokio::timeout(SERVE_WITHIN, self.handler.handle(from, kind, body));
                served.await.unwrap_or_else(|_| {
                    tracing::error!(peer = from, ?kind, "a call of a peer takes too long");
                    Err(Refusal::GivenUp)
                })
            }
            None => Err(Refusal::Unserved),
        };
        let answer = match result {
            Ok(body) if body.len() <= lane.answer_bytes_max() => Frame {
                id,
                tag: ANSWERED,
                body,
            },
            Ok(body) => {
                tracing::error!(peer = from, %lane, bytes = body.len(), "an answer is too long to be sent");
                refused(id, Refusal::Other)
            }
            Err(refusal) => refused(id, refusal),
        };
        Served { bytes, answer }
    }

    fn tell_refused(&self, refusal: HandshakeRefusal) {
        let address = self.address;
        if refusal == HandshakeRefusal::Busy {
            tracing::warn!(%address, "too many connections of peers");
        } else {
            tracing::warn!(%address, %refusal, "a caller is no peer of this node");
        }
    }
}

fn refused(id: u64, refusal: Refusal) -> Frame {
    Frame {
        id,
        tag: refusal.code(),
        body: Bytes::new(),
    }
}

async fn write_all(
    answers: &mut FrameWriter<impl AsyncWrite + Unpin + Send>,
    ready: &[Frame],
) -> Result<(), FrameError> {
    let written = Tokio::timeout(WRITE_WITHIN, async {
        for answer in ready {
            answers.put(answer).await?;
        }
        answers.flush().await
    });
    match written.await {
        Ok(written) => Ok(written?),
        Err(_) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the peer reads nothing").into()),
    }
}
