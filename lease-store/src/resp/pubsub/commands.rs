//! `SUBSCRIBE`, `PSUBSCRIBE`, their opposites, and `PUBSUB`.

use std::sync::Arc;

use lease_core::SharedBytes;
use lease_core::redis::read_pattern;
use lease_core::wire::{ErrorWord, Reply, Request};

use super::topics::{TooMany, Topic};
use crate::resp::connection::Connection;
use crate::resp::plan::Plan;
use crate::resp::verb::{unknown_subcommand, wrong_arity};

impl Connection {
    /// `SUBSCRIBE channel [channel ..]`
    pub(in crate::resp) fn subscribe(&mut self, request: &Request) -> Plan {
        self.listen(Topic::Channel, "subscribe", request)
    }

    /// `PSUBSCRIBE pattern [pattern ..]`
    pub(in crate::resp) fn psubscribe(&mut self, request: &Request) -> Plan {
        self.listen(Topic::Pattern, "psubscribe", request)
    }

    /// `UNSUBSCRIBE [channel ..]`
    pub(in crate::resp) fn unsubscribe(&mut self, request: &Request) -> Plan {
        self.leave(Topic::Channel, "unsubscribe", request)
    }

    /// `PUNSUBSCRIBE [pattern ..]`
    pub(in crate::resp) fn punsubscribe(&mut self, request: &Request) -> Plan {
        self.leave(Topic::Pattern, "punsubscribe", request)
    }

    fn listen(&mut self, topic: Topic, word: &'static str, request: &Request) -> Plan {
        let (id, pubsub) = (self.session.id, &self.facts.pubsub);
        let subscriber = self
            .session
            .subscriber
            .get_or_insert_with(|| pubsub.subscriber(id));
        let replies = request.args().skip(1).map(|name| {
            if topic == Topic::Pattern
                && let Err(refused) = read_pattern(name)
            {
                return refused.into();
            }
            let name = SharedBytes::from(name);
            match subscriber.add(topic, &name) {
                Ok(()) => confirmation(word, Reply::bulk(name.as_slice()), subscriber.count()),
                Err(TooMany) => Reply::error(ErrorWord::Limit, "too many subscriptions"),
            }
        });
        let replies = replies.collect();
        self.forget_idle_subscriber();
        Plan::Told(replies)
    }

    fn leave(&mut self, topic: Topic, word: &'static str, request: &Request) -> Plan {
        let mut names: Vec<SharedBytes> = request.args().skip(1).map(SharedBytes::from).collect();
        let Some(subscriber) = &mut self.session.subscriber else {
            return Plan::Told(left_nothing(word, &names, 0));
        };
        if names.is_empty() {
            names = subscriber.names(topic);
        }
        if names.is_empty() {
            return Plan::Told(left_nothing(word, &names, subscriber.count()));
        }
        let replies = names.iter().map(|name| {
            subscriber.remove(topic, name);
            confirmation(word, Reply::bulk(name.as_slice()), subscriber.count())
        });
        let replies = replies.collect();
        self.forget_idle_subscriber();
        Plan::Told(replies)
    }

    fn forget_idle_subscriber(&mut self) {
        if self.session.subscriptions() == 0 {
            self.session.subscriber = None;
        }
    }

    /// `PUBSUB CHANNELS [pattern]`, `PUBSUB NUMSUB [channel ..]`, `PUBSUB NUMPAT`: of this node.
    pub(in crate::resp) fn pubsub(&self, request: &Request) -> Reply {
        let pubsub = Arc::clone(&self.facts.pubsub);
        let subcommand = request.arg(1).unwrap_or_default();
        let is = |name: &[u8]| subcommand.eq_ignore_ascii_case(name);
        if is(b"CHANNELS") {
            if request.len() > 3 {
                return wrong_arity("pubsub|channels");
            }
            return match read_pattern(request.arg(2).unwrap_or(b"*")) {
                Ok(pattern) => {
                    let channels = pubsub.channels(pattern);
                    Reply::Array(channels.iter().map(|name| Reply::bulk(name.as_slice())).collect())
                }
                Err(refused) => refused.into(),
            };
        }
        if is(b"NUMSUB") {
            let counted = request.args().skip(2).flat_map(|channel| {
                let listeners = pubsub.listeners(channel) as u64;
                [Reply::bulk(channel), Reply::count(listeners)]
            });
            return Reply::Array(counted.collect());
        }
        if is(b"NUMPAT") {
            if request.len() > 2 {
                return wrong_arity("pubsub|numpat");
            }
            return Reply::count(pubsub.patterns() as u64);
        }
        unknown_subcommand("pubsub", subcommand)
    }
}

fn confirmation(word: &'static str, name: Reply, count: usize) -> Reply {
    Reply::Push(vec![Reply::word(word), name, Reply::count(count as u64)])
}

/// Whoever listens to nothing is told so, by name or without one.
fn left_nothing(word: &'static str, names: &[SharedBytes], count: usize) -> Vec<Reply> {
    if names.is_empty() {
        return vec![confirmation(word, Reply::Nil, count)];
    }
    let names = names.iter().map(|name| Reply::bulk(name.as_slice()));
    names.map(|name| confirmation(word, name, count)).collect()
}
