//! The way from a channel to one connection: bounded, and closed to whoever does not keep up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lease_core::SharedBytes;
use lease_core::wire::Reply;
use tokio::sync::{Notify, mpsc};

use super::topics::{Pubsub, TooMany, Topic};

/// Messages that wait for one connection at the most: a busy second of a slow reader.
const WAITING_MAX: usize = 4_096;
/// Bytes of messages that wait for one connection at the most: as Redis's soft limit.
const WAITING_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// One message to one subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::resp) struct Message {
    /// The pattern that it fits, if it comes by one.
    pub(super) pattern: Option<SharedBytes>,
    pub(super) channel: SharedBytes,
    pub(super) payload: SharedBytes,
}

impl Message {
    fn bytes(&self) -> usize {
        self.channel.len().saturating_add(self.payload.len())
    }

    /// The message as it is sent.
    pub(in crate::resp) fn to_reply(&self) -> Reply {
        let bulk = |bytes: &SharedBytes| Reply::bulk(bytes.as_slice());
        let (channel, payload) = (bulk(&self.channel), bulk(&self.payload));
        Reply::Push(match &self.pattern {
            None => vec![Reply::word("message"), channel, payload],
            Some(pattern) => vec![Reply::word("pmessage"), bulk(pattern), channel, payload],
        })
    }
}

/// Where messages for one connection go.
#[derive(Debug)]
pub(super) struct Outlet {
    mailbox: mpsc::Sender<Message>,
    bytes: AtomicUsize,
    cut: Notify,
}

impl Outlet {
    /// Hands a message over, or cuts the connection off.
    pub(super) fn offer(&self, message: Message) {
        let size = message.bytes();
        let waiting = self.bytes.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if waiting > WAITING_BYTES_MAX || self.mailbox.try_send(message).is_err() {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            self.cut_off();
        }
    }

    /// Ends the connection: it may have missed something.
    pub(super) fn cut_off(&self) {
        self.cut.notify_one();
    }
}

/// A connection that listens. Dropping it gives all its subscriptions up.
#[derive(Debug)]
pub(in crate::resp) struct Subscriber {
    id: u64,
    pubsub: Arc<Pubsub>,
    outlet: Arc<Outlet>,
    inbox: mpsc::Receiver<Message>,
    channels: BTreeSet<SharedBytes>,
    patterns: BTreeSet<SharedBytes>,
}

impl Subscriber {
    pub(super) fn new(id: u64, pubsub: Arc<Pubsub>) -> Self {
        let (mailbox, inbox) = mpsc::channel(WAITING_MAX);
        let outlet = Outlet {
            mailbox,
            bytes: AtomicUsize::new(0),
            cut: Notify::new(),
        };
        Self {
            id,
            pubsub,
            outlet: Arc::new(outlet),
            inbox,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
        }
    }

    /// The next message; `None` if this connection was cut off.
    ///
    /// # Cancel safety
    /// Cancel safe: no message is lost.
    pub(in crate::resp) async fn next(&mut self) -> Option<Message> {
        tokio::select! {
            biased;
            () = self.outlet.cut.notified() => None,
            message = self.inbox.recv() => {
                let message = message?;
                self.taken(&message);
                Some(message)
            }
        }
    }

    /// A message that waits already.
    pub(in crate::resp) fn waiting(&mut self) -> Option<Message> {
        let message = self.inbox.try_recv().ok()?;
        self.taken(&message);
        Some(message)
    }

    /// Waits until this connection is cut off.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(in crate::resp) async fn cut_off(&self) {
        self.outlet.cut.notified().await;
        // Whoever looks next shall see it, too.
        self.outlet.cut.notify_one();
    }

    /// How many channels and patterns it listens to.
    pub(in crate::resp) fn count(&self) -> usize {
        self.channels.len().saturating_add(self.patterns.len())
    }

    pub(super) fn names(&self, topic: Topic) -> Vec<SharedBytes> {
        self.set(topic).iter().cloned().collect()
    }

    pub(super) fn add(&mut self, topic: Topic, name: &SharedBytes) -> Result<(), TooMany> {
        if self.set(topic).contains(name) {
            return Ok(());
        }
        self.pubsub.add(topic, name, self.id, &self.outlet)?;
        match topic {
            Topic::Channel => self.channels.insert(name.clone()),
            Topic::Pattern => self.patterns.insert(name.clone()),
        };
        Ok(())
    }

    pub(super) fn remove(&mut self, topic: Topic, name: &SharedBytes) {
        let had = match topic {
            Topic::Channel => self.channels.remove(name),
            Topic::Pattern => self.patterns.remove(name),
        };
        if had {
            self.pubsub.remove(topic, name, self.id);
        }
    }

    const fn set(&self, topic: Topic) -> &BTreeSet<SharedBytes> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
        }
    }

    fn taken(&self, message: &Message) {
        self.outlet.bytes.fetch_sub(message.bytes(), Ordering::Relaxed);
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        for topic in [Topic::Channel, Topic::Pattern] {
            for name in self.names(topic) {
                self.remove(topic, &name);
            }
        }
    }
}
