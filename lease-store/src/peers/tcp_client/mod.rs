//! Calls peers over TCP.
//!
//! Each peer and lane has a task of its own, started by the first call, which holds the connection. A call is bounded
//! in time by its caller, and the mailbox of a lane in length: a peer that is slow or gone fails calls, it never
//! gathers them.

mod lane;
mod session;
mod ticket;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot};

use self::lane::LaneTask;
use self::ticket::{Answer, Call, Ticket};
use super::identity::PeerIdentity;
use super::transport::{Kind, Lane, NotSent, PeerError, PeerTransport};
use crate::runtime::{AsyncRuntime, Rt, Tokio};

/// Calls that wait for one lane at the most. Raft has one or two under way; forwarded requests come in batches.
const MAILBOX_DEPTH: usize = 256;

/// The peers of one node. Clones share it; connections end with [`TcpPeers::stop`] or the last clone.
#[derive(Debug, Clone)]
pub struct TcpPeers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    identity: PeerIdentity,
    addresses: Arc<AddressBook>,
    lanes: Mutex<Lanes>,
}

#[derive(Debug)]
enum Lanes {
    Open(BTreeMap<(u64, Lane), LaneHandle>),
    Stopped,
}

/// The way to the task of one lane.
#[derive(Debug, Clone)]
struct LaneHandle {
    mailbox: mpsc::Sender<Call>,
    /// Woken when a call that was sent is overdue.
    overdue: Arc<Notify>,
}

/// A call that a lane has taken.
struct Handed {
    overdue: Arc<Notify>,
    ticket: Arc<Ticket>,
    answer: oneshot::Receiver<Answer>,
}

/// Where the peers are.
#[derive(Debug)]
struct AddressBook {
    addresses: Mutex<BTreeMap<u64, String>>,
}

impl AddressBook {
    fn get(&self, peer: u64) -> Option<String> {
        self.lock().get(&peer).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        // No code under this lock can panic half-way through a change.
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TcpPeers {
    /// The peers at these addresses (`host:port`), called as `identity`. Nothing is connected before the first call.
    #[must_use]
    pub fn new(identity: PeerIdentity, addresses: BTreeMap<u64, String>) -> Self {
        let addresses = Mutex::new(addresses);
        Self {
            shared: Arc::new(Shared {
                identity,
                addresses: Arc::new(AddressBook { addresses }),
                lanes: Mutex::new(Lanes::Open(BTreeMap::new())),
            }),
        }
    }

    /// Ends all connections; calls fail from now on.
    pub fn stop(&self) {
        *self.lanes() = Lanes::Stopped;
    }

    fn lane(&self, to: u64, lane: Lane) -> Result<LaneHandle, NotSent> {
        let mut lanes = self.lanes();
        let Lanes::Open(open) = &mut *lanes else {
            return Err(NotSent::Stopped);
        };
        if let Some(handle) = open.get(&(to, lane)) {
            return Ok(handle.clone());
        }
        if self.shared.addresses.get(to).is_none() {
            return Err(NotSent::UnknownPeer);
        }
        let (mailbox, inbox) = mpsc::channel(MAILBOX_DEPTH);
        let overdue = Arc::new(Notify::new());
        let handle = LaneHandle {
            mailbox,
            overdue: Arc::clone(&overdue),
        };
        let task = LaneTask::new(
            self.shared.identity.clone(),
            (to, lane),
            Arc::clone(&self.shared.addresses),
            overdue,
        );
        // It ends with its mailbox, and nobody waits for it: what it has not sent by then is not sent.
        drop(Tokio::spawn_on(self.shared.identity.node(), task.run(inbox)));
        open.insert((to, lane), handle.clone());
        Ok(handle)
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        // No code under this lock can panic half-way through a change.
        self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&self, to: u64, lane: Lane, kind: Kind, body: Bytes) -> Result<Handed, NotSent> {
        let (bytes, max) = (body.len(), lane.call_bytes_max());
        if bytes > max {
            return Err(NotSent::TooLong { bytes, max });
        }
        let handle = self.lane(to, lane)?;
        let (reply, answer) = oneshot::channel();
        let ticket = Arc::new(Ticket::default());
        let call = Call {
            kind,
            body,
            ticket: Arc::clone(&ticket),
            reply,
        };
        match handle.mailbox.try_send(call) {
            // The mailbox is not held while the answer is waited for: it closes when the transport stops.
            Ok(()) => Ok(Handed {
                overdue: handle.overdue,
                ticket,
                answer,
            }),
            Err(mpsc::error::TrySendError::Full(_)) => Err(NotSent::QueueFull),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(NotSent::Stopped),
        }
    }
}

impl PeerTransport for TcpPeers {
    async fn call(
        &self,
        to: u64,
        lane: Lane,
        kind: Kind,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, PeerError> {
        let not_sent = |reason| PeerError::not_sent(to, reason);
        let Handed {
            overdue,
            ticket,
            answer,
        } = self.hand_over(to, lane, kind, body).map_err(not_sent)?;
        match Tokio::timeout(within, answer).await {
            Ok(Ok(answer)) => answer,
            // The task of the lane is gone, and what it held.
            Ok(Err(_)) if ticket.give_up() => Err(not_sent(NotSent::Stopped)),
            Ok(Err(_)) => Err(PeerError::Broken { to }),
            Err(_) if ticket.give_up() => Err(not_sent(NotSent::NoTime)),
            Err(_) => {
                overdue.notify_one();
                Err(PeerError::NoAnswer { to, within })
            }
        }
    }

    fn introduce(&self, peer: u64, address: &str) {
        if !address.is_empty() {
            let mut addresses = self.shared.addresses.lock();
            addresses.entry(peer).or_insert_with(|| address.to_owned());
        }
    }
}
