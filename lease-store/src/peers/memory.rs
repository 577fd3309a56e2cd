//! A network within one process, for tests and for the simulation: links that are cut one way or both, delay, loss.
//!
//! Everything by chance comes from the seam's generator and every wait from its clock, so that under the simulated
//! runtime the same seed gives the same run. Calls overtake each other where delays differ, as those of different
//! connections do.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, pending};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::transport::{Kind, Lane, NotSent, PeerError, PeerHandler, PeerTransport, Refusal};
use crate::runtime::Rt;

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
pub struct MemoryNet<R> {
    shared: Arc<Mutex<Shared>>,
    runtime: PhantomData<fn() -> R>,
}

#[derive(Default)]
struct Shared {
    nodes: BTreeMap<u64, Arc<dyn AnyHandler>>,
    links: BTreeMap<(u64, u64), Link>,
    every_link: Link,
    carried: u64,
    lost: u64,
}

/// One node's way into the network.
pub struct MemoryTransport<R> {
    net: MemoryNet<R>,
    node: u64,
}

impl<R: Rt> MemoryNet<R> {
    /// A network without nodes, all of whose links are open.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: Arc::default(),
            runtime: PhantomData,
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

    /// Takes `node` away: calls to it are refused, as by a machine whose process is gone.
    pub fn detach(&self, node: u64) {
        let gone = self.lock().nodes.remove(&node);
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

    /// How many messages have passed, and how many were lost.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let shared = self.lock();
        (shared.carried, shared.lost)
    }

    /// Takes one message over; never returns for one that is lost.
    async fn pass(&self, from: u64, to: u64) {
        let delay = self.lock().departs::<R>(from, to);
        let Some(delay) = delay else {
            return pending().await;
        };
        if !delay.is_zero() {
            R::sleep(delay).await;
        }
        let arrives = self.lock().arrives(from, to);
        if !arrives {
            pending().await
        }
    }

    async fn carry(&self, from: u64, to: u64, kind: Kind, body: Bytes) -> Result<Bytes, PeerError> {
        self.pass(from, to).await;
        let handler = self.lock().nodes.get(&to).cloned();
        let Some(handler) = handler else {
            self.pass(to, from).await;
            let reason = "connection refused".to_owned();
            return Err(PeerError::not_sent(to, NotSent::Unreachable { reason }));
        };
        let (tell, told) = oneshot::channel();
        // On the called node: it goes on when the caller has given up, and ends when that node crashes.
        drop(R::spawn_on(to, async move {
            // A caller that has given up needs no answer.
            let _ = tell.send(handler.handle(from, kind, body).await);
        }));
        let answer = told.await;
        self.pass(to, from).await;
        match answer {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(refusal)) => Err(PeerError::Refused { to, refusal }),
            Err(_) => Err(PeerError::Broken { to }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // No code under this lock can panic half-way through a change.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn link(&self, from: u64, to: u64) -> Link {
        self.links.get(&(from, to)).copied().unwrap_or(self.every_link)
    }

    /// How long a message takes; `None` if it is lost.
    fn departs<R: Rt>(&mut self, from: u64, to: u64) -> Option<Duration> {
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
        Some(link.delay_min.saturating_add(Duration::from_micros(extra_us)))
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
        let carried = self.net.carry(self.node, to, kind, body);
        match R::timeout(within, carried).await {
            Ok(answer) => answer,
            Err(_) => Err(PeerError::NoAnswer { to, within }),
        }
    }
}

impl<R: Rt> Default for MemoryNet<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Clone for MemoryNet<R> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            runtime: PhantomData,
        }
    }
}

impl<R> Clone for MemoryTransport<R> {
    fn clone(&self) -> Self {
        Self {
            net: self.net.clone(),
            node: self.node,
        }
    }
}

impl<R> fmt::Debug for MemoryNet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNet").finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for MemoryTransport<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransport")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}
