//! A network within one process, for tests and for the simulation: links that are cut one way or both, delay, loss.
//!
//! Everything by chance comes from the seam's generator and every wait from its clock, so that under the simulated
//! runtime the same seed gives the same run. What travels one way on one lane keeps its order, as on a connection;
//! lanes overtake each other. What was sent arrives although its sender stops meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::transport::{Kind, Lane, NotSent, PeerError, PeerHandler, PeerTransport, Refusal};
use crate::runtime::{Instant, Rt};

/// The process that messages travel in under a simulation: the wires belong to no node. Node ids start at 1.
pub const WIRES: u64 = 0;

/// How messages travel one way between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Whether anything passes at all.
    pub passage: Passage,
    /// Shortest time that a message takes.
    pub delay_min: Duration,
    /// Longest time that a message takes.
    pub delay_max: Duration,
    /// How many of a thousand messages are lost.
    pub lost_per_mille: u16,
}

/// Whether a link lets messages pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It does.
    Open,
    /// All are lost without a word, as packets are that somebody drops.
    Cut,
}

impl Default for Link {
    /// Open, at once, nothing is lost.
    fn default() -> Self {
        Self {
            passage: Passage::Open,
            delay_min: Duration::ZERO,
            delay_max: Duration::ZERO,
            lost_per_mille: 0,
        }
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Bytes, Refusal>> + Send + 'a>>;

/// [`PeerHandler`] behind a pointer.
trait AnyHandler: Send + Sync {
    fn handle(&self, from: u64, kind: Kind, body: Bytes) -> Answering<'_>;
}

impl<H: PeerHandler> AnyHandler for H {
    fn handle(&self, from: u64, kind: Kind, body: Bytes) -> Answering<'_> {
        Box::pin(PeerHandler::handle(self, from, kind, body))
    }
}

/// The network. Clones share it.
pub struct MemoryNet<R: Rt> {
    shared: Arc<Mutex<Shared<R::Instant>>>,
}

struct Shared<I> {
    nodes: BTreeMap<u64, Arc<dyn AnyHandler>>,
    links: BTreeMap<(u64, u64), Link>,
    every_link: Link,
    /// When the last message of a way arrives: the next one does not overtake it.
    ways: BTreeMap<Way, I>,
    carried: u64,
    lost: u64,
    /// Calls that each node has answered well, by kind.
    served: BTreeMap<(u64, u8), u64>,
}

/// One direction of one connection: the sender, the receiver, the lane, and whether calls or answers travel.
type Way = (u64, u64, Lane, Leg);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leg {
    Call,
    Answer,
}

/// One node's way into the network.
pub struct MemoryTransport<R: Rt> {
    net: MemoryNet<R>,
    node: u64,
}

impl<R: Rt> MemoryNet<R> {
    /// A network without nodes, all of whose links are open.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            every_link: Link::default(),
            ways: BTreeMap::new(),
            carried: 0,
            lost: 0,
            served: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// The way of `node` to the others. It may call whether or not it is attached.
    #[must_use]
    pub fn transport(&self, node: u64) -> MemoryTransport<R> {
        let net = self.clone();
        MemoryTransport { net, node }
    }

    /// Has `handler` serve the calls to `node` from now on.
    pub fn attach<H: PeerHandler>(&self, node: u64, handler: Arc<H>) {
        self.lock().nodes.insert(node, handler);
    }

    /// Takes `node` away: calls to it are refused, as by a machine whose process is gone. Its connections are gone too.
    pub fn detach(&self, node: u64) {
        let mut shared = self.lock();
        let gone = shared.nodes.remove(&node);
        shared
            .ways
            .retain(|(from, to, ..), _| *from != node && *to != node);
        drop(shared);
        drop(gone);
    }

    /// Sets how messages travel where nothing else is set.
    pub fn set_every_link(&self, link: Link) {
        let mut shared = self.lock();
        shared.every_link = link;
        shared.links.clear();
    }

    /// Sets how messages travel from one node to another; the way back stays as it is.
    pub fn set_link(&self, from: u64, to: u64, link: Link) {
        self.lock().links.insert((from, to), link);
    }

    /// How messages travel from one node to another.
    #[must_use]
    pub fn link(&self, from: u64, to: u64) -> Link {
        self.lock().link(from, to)
    }

    /// Cuts one direction. What is under way is lost too.
    pub fn cut(&self, from: u64, to: u64) {
        let mut shared = self.lock();
        let link = Link {
            passage: Passage::Cut,
            ..shared.link(from, to)
        };
        shared.links.insert((from, to), link);
    }

    /// Opens one direction again.
    pub fn mend(&self, from: u64, to: u64) {
        let mut shared = self.lock();
        let link = Link {
            passage: Passage::Open,
            ..shared.link(from, to)
        };
        shared.links.insert((from, to), link);
    }

    /// How many calls of a kind a node has answered with anything but a refusal.
    #[must_use]
    pub fn served(&self, node: u64, kind: Kind) -> u64 {
        let served = self.lock().served.get(&(node, kind.code())).copied();
        served.unwrap_or(0)
    }

    /// How many messages have passed, and how many were lost.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let shared = self.lock();
        (shared.carried, shared.lost)
    }

    /// Takes one message over; `None` if it is lost.
    async fn pass(&self, way: Way) -> Option<()> {
        let arrives_at = self.lock().departs::<R>(way)?;
        if arrives_at > R::now() {
            R::sleep_until(arrives_at).await;
        }
        let (from, to, ..) = way;
        self.lock().arrives(from, to).then_some(())
    }

    /// Takes a call there and its answer back; `None` if one of them is lost.
    async fn carry(
        self,
        from: u64,
        to: u64,
        lane: Lane,
        (kind, body): (Kind, Bytes),
    ) -> Option<Result<Bytes, PeerError>> {
        self.pass((from, to, lane, Leg::Call)).await?;
        let handler = self.lock().nodes.get(&to).cloned();
        let Some(handler) = handler else {
            self.pass((to, from, lane, Leg::Answer)).await?;
            let reason = "connection refused".to_owned();
            return Some(Err(PeerError::not_sent(to, NotSent::Unreachable { reason })));
        };
        let (tell, told) = oneshot::channel();
        // On the called node: it goes on when the caller has given up, and ends when that node crashes.
        drop(R::spawn_on(to, async move {
            // A caller that has given up needs no answer.
            let _ = tell.send(handler.handle(from, kind, body).await);
        }));
        let answer = told.await;
        if matches!(answer, Ok(Ok(_))) {
            let mut shared = self.lock();
            let served = shared.served.entry((to, kind.code())).or_default();
            *served = served.saturating_add(1);
        }
        self.pass((to, from, lane, Leg::Answer)).await?;
        Some(match answer {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(refusal)) => Err(PeerError::Refused { to, refusal }),
            Err(_) => Err(PeerError::Broken { to }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Shared<R::Instant>> {
        // No code under this lock can panic half-way through a change.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Instant> Shared<I> {
    fn link(&self, from: u64, to: u64) -> Link {
        self.links.get(&(from, to)).copied().unwrap_or(self.every_link)
    }

    /// When a message arrives; `None` if it is lost.
    fn departs<R: Rt<Instant = I>>(&mut self, way: Way) -> Option<I> {
        let (from, to, ..) = way;
        let link = self.link(from, to);
        let lost = link.lost_per_mille > 0 && R::random_u64() % 1_000 < u64::from(link.lost_per_mille);
        if lost || link.passage == Passage::Cut {
            self.lost = self.lost.saturating_add(1);
            return None;
        }
        let span = link.delay_max.saturating_sub(link.delay_min);
        let span_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let extra_us = match span_us {
            0 => 0,
            span_us => R::random_u64() % span_us.saturating_add(1),
        };
        let delay = link.delay_min.saturating_add(Duration::from_micros(extra_us));
        let arrives_at = R::now() + delay;
        let after = self.ways.entry(way).or_insert(arrives_at);
        *after = arrives_at.max(*after);
        Some(*after)
    }

    fn arrives(&mut self, from: u64, to: u64) -> bool {
        let arrives = self.link(from, to).passage == Passage::Open;
        if arrives {
            self.carried = self.carried.saturating_add(1);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
        arrives
    }
}

impl<R: Rt> PeerTransport for MemoryTransport<R> {
    async fn call(
        &self,
        to: u64,
        lane: Lane,
        kind: Kind,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, PeerError> {
        let (bytes, max) = (body.len(), lane.call_bytes_max());
        if bytes > max {
            return Err(PeerError::not_sent(to, NotSent::TooLong { bytes, max }));
        }
        let carried = self.net.clone().carry(self.node, to, lane, (kind, body));
        let (tell, told) = oneshot::channel();
        drop(R::spawn_on(WIRES, async move {
            let mut tell = tell;
            match carried.await {
                // A caller that has given up needs no answer.
                Some(answer) => drop(tell.send(answer)),
                // Nobody tells the caller of the loss.
                None => tell.closed().await,
            }
        }));
        match R::timeout(within, told).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(PeerError::Broken { to }),
            Err(_) => Err(PeerError::NoAnswer { to, within }),
        }
    }
}

impl<R: Rt> Default for MemoryNet<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Rt> Clone for MemoryNet<R> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared }
    }
}

impl<R: Rt> Clone for MemoryTransport<R> {
    fn clone(&self) -> Self {
        Self {
            net: self.net.clone(),
            node: self.node,
        }
    }
}

impl<R: Rt> fmt::Debug for MemoryNet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNet").finish_non_exhaustive()
    }
}

impl<R: Rt> fmt::Debug for MemoryTransport<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransport")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}
