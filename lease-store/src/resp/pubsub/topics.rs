//! Who listens to what.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lease_core::SharedBytes;
use lease_core::redis::matches;

use super::outlet::{Message, Outlet, Subscriber};
use crate::events::Listened;

/// Subscriptions of all connections at the most: at some 200 bytes each.
const SUBSCRIPTIONS_MAX: usize = 200_000;
/// Bytes of the names in them, at the most: a name may be a megabyte.
const NAMES_BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Different patterns at the most: every message is compared with all of them.
const PATTERNS_MAX: usize = 1_024;

/// What is subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// One channel.
    Channel,
    /// All channels that fit.
    Pattern,
}

/// A bound that a subscription would break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

type Listeners = BTreeMap<SharedBytes, BTreeMap<u64, Arc<Outlet>>>;

/// Who listens on this node.
#[derive(Debug)]
pub(in crate::resp) struct Pubsub {
    topics: Mutex<Topics>,
    listened: Listened,
}

#[derive(Debug, Default)]
struct Topics {
    channels: Listeners,
    patterns: Listeners,
    subscriptions: usize,
    bytes: usize,
}

impl Topics {
    const fn of(&mut self, topic: Topic) -> &mut Listeners {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
        }
    }

    fn admits(&self, topic: Topic, name: &SharedBytes) -> bool {
        let is_new = !self.patterns.contains_key(name);
        let pattern_fits = topic == Topic::Channel || !is_new || self.patterns.len() < PATTERNS_MAX;
        pattern_fits
            && self.subscriptions < SUBSCRIPTIONS_MAX
            && self.bytes.saturating_add(name.len()) <= NAMES_BYTES_MAX
    }
}

impl Pubsub {
    pub(in crate::resp) fn new(listened: Listened) -> Self {
        Self {
            topics: Mutex::new(Topics::default()),
            listened,
        }
    }

    /// A connection that may listen.
    pub(in crate::resp) fn subscriber(self: &Arc<Self>, id: u64) -> Subscriber {
        Subscriber::new(id, Arc::clone(self))
    }

    pub(super) fn add(
        &self,
        topic: Topic,
        name: &SharedBytes,
        id: u64,
        outlet: &Arc<Outlet>,
    ) -> Result<(), TooMany> {
        let mut topics = self.lock();
        if !topics.admits(topic, name) {
            return Err(TooMany);
        }
        topics.subscriptions = topics.subscriptions.saturating_add(1);
        topics.bytes = topics.bytes.saturating_add(name.len());
        let listeners = topics.of(topic).entry(name.clone()).or_default();
        listeners.insert(id, Arc::clone(outlet));
        self.listened.begin();
        Ok(())
    }

    pub(super) fn remove(&self, topic: Topic, name: &SharedBytes, id: u64) {
        let mut topics = self.lock();
        topics.subscriptions = topics.subscriptions.saturating_sub(1);
        topics.bytes = topics.bytes.saturating_sub(name.len());
        let all = topics.of(topic);
        if let Some(listeners) = all.get_mut(name) {
            listeners.remove(&id);
            if listeners.is_empty() {
                all.remove(name);
            }
        }
        if topics.subscriptions == 0 {
            self.listened.end();
        }
    }

    /// Tells everybody who listens, and waits for nobody.
    pub(super) fn tell(&self, channel: &SharedBytes, payload: &SharedBytes) {
        let topics = self.lock();
        let message = |pattern: Option<&SharedBytes>| Message {
            pattern: pattern.cloned(),
            channel: channel.clone(),
            payload: payload.clone(),
        };
        for outlet in topics
            .channels
            .get(channel)
            .into_iter()
            .flat_map(BTreeMap::values)
        {
            outlet.offer(message(None));
        }
        for (pattern, outlets) in &topics.patterns {
            if matches(pattern.as_slice(), channel.as_slice()) {
                for outlet in outlets.values() {
                    outlet.offer(message(Some(pattern)));
                }
            }
        }
    }

    /// Something was lost on the way here: everybody who listens has to begin anew.
    pub(super) fn cut_all(&self) {
        let topics = self.lock();
        let all = topics.channels.values().chain(topics.patterns.values());
        for outlet in all.flat_map(BTreeMap::values) {
            outlet.cut_off();
        }
    }

    /// How many a message on this channel reaches here, a connection once for each subscription that fits.
    pub(in crate::resp) fn receivers(&self, channel: &[u8]) -> u64 {
        let topics = self.lock();
        let exact = topics
            .channels
            .get(&SharedBytes::from(channel))
            .map_or(0, BTreeMap::len);
        let fitting = topics.patterns.iter();
        let fitting = fitting.filter(|(pattern, _)| matches(pattern.as_slice(), channel));
        fitting.fold(exact as u64, |sum, (_, outlets)| {
            sum.saturating_add(outlets.len() as u64)
        })
    }

    /// The channels that somebody listens to by their names, as far as they fit.
    pub(super) fn channels(&self, pattern: &[u8]) -> Vec<SharedBytes> {
        let topics = self.lock();
        let fitting = topics
            .channels
            .keys()
            .filter(|name| matches(pattern, name.as_slice()));
        fitting.cloned().collect()
    }

    /// How many listen to a channel by its name.
    pub(super) fn listeners(&self, channel: &[u8]) -> usize {
        let channel = SharedBytes::from(channel);
        self.lock().channels.get(&channel).map_or(0, BTreeMap::len)
    }

    /// How many different patterns are listened to.
    pub(super) fn patterns(&self) -> usize {
        self.lock().patterns.len()
    }

    /// Nothing under this lock can panic half-way, so a poisoned one is as good as a sound one.
    fn lock(&self) -> MutexGuard<'_, Topics> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
