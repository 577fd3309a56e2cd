//! What happened to leases on this node: a bounded ring, filled as entries are applied.
//!
//! It is a memory for people, local to one node and lost at its restart. What was forgotten is not invented.

mod feed;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lease_core::machine::{Effect, EndReason, LeaseKey};
use lease_core::{FenceToken, OwnerId, SharedBytes, Timestamp};

use self::feed::Source;
pub(crate) use self::feed::{Feed, Listened};

/// Events that the ring holds: some minutes of a busy store, at about 100 bytes each.
const EVENTS_MAX: usize = 65_536;
/// Bytes of names, owners and reasons that the ring holds: no bound for usual names, but the value of a `SET` is an
/// owner too, and its key a name, of a megabyte each.
const EVENTS_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// One thing that happened to a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseEvent {
    /// The lease.
    pub key: LeaseKey,
    /// Whose it is, or was.
    pub owner: OwnerId,
    /// The token of the grant.
    pub token: FenceToken,
    /// When, on the cluster's clock.
    pub at: Timestamp,
    /// What happened.
    pub kind: LeaseEventKind,
}

/// What happened to a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseEventKind {
    /// It was granted.
    Granted,
    /// It is over.
    Ended {
        /// Why.
        reason: EndReason,
    },
}

impl LeaseEvent {
    /// Bytes of the name, the owner and an operator's words.
    fn bytes(&self) -> usize {
        let words = match &self.kind {
            LeaseEventKind::Ended {
                reason: EndReason::Forced { reason },
            } => reason.len(),
            LeaseEventKind::Granted | LeaseEventKind::Ended { .. } => 0,
        };
        let named = self
            .key
            .name
            .as_bytes()
            .len()
            .saturating_add(self.owner.as_bytes().len());
        named.saturating_add(words)
    }
}

/// What an entry had to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// Something happened to a lease.
    Lease(LeaseEvent),
    /// Somebody said something on a channel.
    Said {
        /// The channel.
        channel: SharedBytes,
        /// What was said.
        message: SharedBytes,
    },
}

impl News {
    fn bytes(&self) -> usize {
        match self {
            Self::Lease(event) => event.bytes(),
            Self::Said { channel, message } => channel.len().saturating_add(message.len()),
        }
    }
}

/// The ring, and the feed of whoever tells others.
#[derive(Debug, Default)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
    source: Source,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<LeaseEvent>,
    bytes: usize,
}

impl Ring {
    /// Takes an event in, and drops the oldest past either bound.
    fn push(&mut self, event: LeaseEvent) {
        self.bytes = self.bytes.saturating_add(event.bytes());
        self.events.push_back(event);
        while (self.events.len() > EVENTS_MAX || self.bytes > EVENTS_BYTES_MAX)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

impl Events {
    /// Takes note of what an entry did. Never waits for anything but a reader's copy.
    pub(crate) fn record(&self, effects: &[Effect]) {
        let mut ring = self.lock();
        effects
            .iter()
            .filter_map(event)
            .for_each(|event| ring.push(event));
        drop(ring);
        self.source.send(effects);
    }

    /// Entries were left out here: a snapshot took their place.
    pub(crate) fn skip(&self) {
        self.source.lose();
    }

    /// The feed of what entries do from now on, while somebody listens; the one before ends.
    pub(crate) fn feed(&self) -> (Feed, Listened) {
        self.source.feed()
    }

    /// The events of one lease, newest first, at most `count`.
    pub(crate) fn of(&self, key: &LeaseKey, count: usize) -> Vec<LeaseEvent> {
        self.lock()
            .events
            .iter()
            .rev()
            .filter(|event| event.key == *key)
            .take(count)
            .cloned()
            .collect()
    }

    /// Nothing under this lock can panic half-way, so a poisoned one is as good as a sound one.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn event(effect: &Effect) -> Option<LeaseEvent> {
    match effect {
        Effect::Woken { .. } | Effect::Published { .. } => None,
        Effect::Granted {
            key,
            owner,
            token,
            at,
        } => Some(LeaseEvent {
            key: key.clone(),
            owner: owner.clone(),
            token: *token,
            at: *at,
            kind: LeaseEventKind::Granted,
        }),
        Effect::Ended {
            key,
            owner,
            token,
            at,
            reason,
        } => Some(LeaseEvent {
            key: key.clone(),
            owner: owner.clone(),
            token: *token,
            at: *at,
            kind: LeaseEventKind::Ended {
                reason: reason.clone(),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lease_core::{Database, LeaseName};

    fn granted(name: &str, token: u64) -> Effect {
        Effect::Granted {
            key: LeaseKey::new(Database::ZERO, LeaseName::new(name).unwrap()),
            owner: OwnerId::new("a").unwrap(),
            token: FenceToken::new(token).unwrap(),
            at: Timestamp::from_millis(token),
        }
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_are_forgotten() {
        let events = Events::default();
        let effects: Vec<Effect> = (1..=EVENTS_MAX as u64 + 10)
            .map(|token| granted("a", token))
            .collect();
        events.record(&effects);
        events.record(&[granted("b", 9_000_000)]);
        let key = LeaseKey::new(Database::ZERO, LeaseName::new("a").unwrap());
        let of_a = events.of(&key, usize::MAX);
        assert_eq!(of_a.len(), EVENTS_MAX - 1);
        assert_eq!(of_a[0].token.get(), EVENTS_MAX as u64 + 10);
        assert_eq!(of_a.last().unwrap().token.get(), 12);
        assert_eq!(events.of(&key, 2).len(), 2);
    }

    #[test]
    fn large_values_do_not_fill_the_memory() {
        const VALUE_BYTES: usize = 1_024 * 1_024;
        let events = Events::default();
        let key = LeaseKey::new(Database::ZERO, LeaseName::new("a").unwrap());
        // One value in all of them: what is counted here is what each would take if they differed.
        let owner = OwnerId::redis_value(vec![b'v'; VALUE_BYTES]).unwrap();
        let grants: Vec<Effect> = (1..=200)
            .map(|token| Effect::Granted {
                key: key.clone(),
                owner: owner.clone(),
                token: FenceToken::new(token).unwrap(),
                at: Timestamp::from_millis(token),
            })
            .collect();
        events.record(&grants);
        let kept = events.of(&key, usize::MAX);
        assert_eq!(kept.len(), EVENTS_BYTES_MAX / (VALUE_BYTES + 1));
        assert_eq!(kept[0].token.get(), 200, "the newest stay");
    }
}
