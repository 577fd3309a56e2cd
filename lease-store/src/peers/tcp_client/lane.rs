//! Holds the connection of one lane to one peer.
//!
//! Owns: the connection. Asks: the peer. Asked by: callers of the transport. Stops: when the transport does.
//!
//! It connects when it is called. While there is no connection and the last attempt was a moment ago, calls fail at
//! once: Raft has its own patience, and must not wait here for a peer that is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use super::AddressBook;
use super::session::{Ended, Session};
use super::ticket::Call;
use crate::peers::handshake::{self, HandshakeError, HandshakeRefusal};
use crate::peers::identity::PeerIdentity;
use crate::peers::transport::{Lane, NotSent, PeerError};
use crate::runtime::{AsyncRuntime, Rt, Tokio};

/// How long a connection and its handshake may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// Pause after the first failed attempt.
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// Longest pause while a peer cannot be reached: below an election timeout, so that a node that is back is heard
/// before it stands for election.
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// Pause after a refused handshake: somebody must change a configuration first.
const PAUSE_REFUSED: Duration = Duration::from_secs(2);

/// The task of one lane.
pub(super) struct LaneTask {
    identity: PeerIdentity,
    to: u64,
    lane: Lane,
    addresses: Arc<AddressBook>,
    overdue: Arc<Notify>,
    failed_in_a_row: u32,
    /// What was last said in the log, so that it is said once.
    told: Option<NotSent>,
}

impl LaneTask {
    pub(super) fn new(
        identity: PeerIdentity,
        (to, lane): (u64, Lane),
        addresses: Arc<AddressBook>,
        overdue: Arc<Notify>,
    ) -> Self {
        Self {
            identity,
            to,
            lane,
            addresses,
            overdue,
            failed_in_a_row: 0,
            told: None,
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Call>) {
        while let Some(first) = inbox.recv().await {
            match self.connect().await {
                Ok(stream) => {
                    self.tell_connected();
                    let session = Session::new(self.to, self.lane, Arc::clone(&self.overdue));
                    let ended = session.run(stream, first, &mut inbox).await;
                    tracing::debug!(peer = self.to, lane = %self.lane, ?ended, "a connection ended");
                    match ended {
                        Ended::Stopped => break,
                        Ended::Useful => self.failed_in_a_row = 0,
                        // It was taken and dropped at once: no better than none.
                        Ended::Useless => {
                            self.pause(&mut inbox, None, &NotSent::unreachable("it hangs up"))
                                .await
                        }
                    }
                }
                Err(reason) => {
                    self.tell_failed(&reason);
                    self.pause(&mut inbox, Some(first), &reason).await;
                }
            }
        }
    }

    async fn connect(&self) -> Result<TcpStream, NotSent> {
        if self.identity.cluster().is_none() && self.lane != Lane::Formation {
            return Err(NotSent::NoCluster);
        }
        let address = self.addresses.get(self.to).ok_or(NotSent::UnknownPeer)?;
        let attempt = async {
            let mut stream = TcpStream::connect(&address).await?;
            // Calls are whole messages; waiting to fill a packet would only delay them.
            stream.set_nodelay(true)?;
            handshake::call(&mut stream, &self.identity, self.to, self.lane).await?;
            Ok(stream)
        };
        match Tokio::timeout(CONNECT_WITHIN, attempt).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(HandshakeError::Refused(refusal))) => Err(NotSent::Handshake { refusal }),
            Ok(Err(HandshakeError::Io(error))) => Err(NotSent::unreachable(&error.to_string())),
            Err(_) => Err(NotSent::unreachable("nobody answers")),
        }
    }

    /// Fails `first` and all that come until it is time for the next attempt.
    async fn pause(&mut self, inbox: &mut mpsc::Receiver<Call>, first: Option<Call>, reason: &NotSent) {
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        if let Some(first) = first {
            self.fail(first, reason);
        }
        let until = Tokio::now() + pause_after(self.failed_in_a_row, reason, Tokio::random_u64());
        while let Ok(Some(call)) = Tokio::timeout_at(until, inbox.recv()).await {
            self.fail(call, reason);
        }
    }

    fn fail(&self, call: Call, reason: &NotSent) {
        if call.ticket.give_up() {
            // A caller that is gone needs no answer.
            let _ = call.reply.send(Err(PeerError::not_sent(self.to, reason.clone())));
        }
    }

    fn tell_connected(&mut self) {
        if self.told.take().is_some() {
            tracing::info!(peer = self.to, lane = %self.lane, "the peer can be reached again");
        }
    }

    fn tell_failed(&mut self, reason: &NotSent) {
        if self.told.as_ref() == Some(reason) {
            return;
        }
        match reason {
            // It passes by itself.
            NotSent::NoCluster
            | NotSent::Handshake {
                refusal: HandshakeRefusal::Busy,
            } => {
                tracing::debug!(peer = self.to, lane = %self.lane, %reason, "no connection");
            }
            NotSent::Handshake { .. } => {
                tracing::error!(peer = self.to, lane = %self.lane, %reason, "the peer is no peer of this node");
            }
            NotSent::UnknownPeer
            | NotSent::Unreachable { .. }
            | NotSent::QueueFull
            | NotSent::TooLong { .. }
            | NotSent::NoTime
            | NotSent::Stopped => {
                tracing::warn!(peer = self.to, lane = %self.lane, %reason, "the peer cannot be reached");
            }
        }
        self.told = Some(reason.clone());
    }
}

impl NotSent {
    fn unreachable(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::Unreachable { reason }
    }
}

/// Doubles from attempt to attempt up to a bound; between half and the whole of it, by chance, so that lanes and nodes
/// do not come all at once.
fn pause_after(failed_in_a_row: u32, reason: &NotSent, chance: u64) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << failed_in_a_row.saturating_sub(1).min(16));
    let misfit = matches!(reason, NotSent::Handshake { refusal } if *refusal != HandshakeRefusal::Busy);
    let whole = if misfit {
        PAUSE_REFUSED
    } else {
        doubled.min(PAUSE_MAX)
    };
    let half = whole / 2;
    let span_us = u64::try_from(half.as_micros()).unwrap_or(u64::MAX).max(1);
    half + Duration::from_micros(chance % span_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_bound_and_are_never_all_the_same() {
        let gone = NotSent::unreachable("gone");
        for failed in 1..40 {
            let doubled = (PAUSE_MIN * 2_u32.pow(failed.min(10) - 1)).min(PAUSE_MAX);
            for chance in [0, 1, u64::MAX / 2, u64::MAX] {
                let pause = pause_after(failed, &gone, chance);
                assert!(pause >= doubled / 2 && pause <= doubled, "{failed}: {pause:?}");
            }
        }
        assert_ne!(pause_after(9, &gone, 1), pause_after(9, &gone, 77_777));
    }

    #[test]
    fn whoever_is_refused_for_its_configuration_comes_less_often() {
        let refusal = HandshakeRefusal::NoPeer;
        assert!(pause_after(1, &NotSent::Handshake { refusal }, 0) >= PAUSE_REFUSED / 2);
        let refusal = HandshakeRefusal::Busy;
        assert!(pause_after(1, &NotSent::Handshake { refusal }, 0) < PAUSE_MAX);
    }
}
