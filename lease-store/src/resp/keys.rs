//! Redis's commands on keys, as the core reads and answers them.

use std::sync::Arc;

use lease_core::machine::{KeyCommand, Outcome, SetCondition};
use lease_core::redis::{Asked, Change, Context, KeyVerb, Look, ask};
use lease_core::wire::{Reply, Request};

use super::answer::{Answer, Unclaimed};
use super::connection::Connection;
use super::plan::Plan;
use super::pubsub::Pubsub;
use crate::runtime::{Tokio, unix_time};
use crate::service::changed;
use crate::store::LeaseStore;

/// What a command on keys asks for.
pub(super) fn plan(connection: &Connection, verb: KeyVerb, request: &Request) -> Plan {
    let args: Vec<&[u8]> = request.args().collect();
    let store = connection.store.clone();
    match ask(verb, &args, &context(connection)) {
        Err(refused) => Plan::Now(Reply::Error(refused)),
        Ok(Asked::Change(asked)) => Plan::Change(Box::pin(change(
            store,
            Arc::clone(&connection.facts.pubsub),
            asked,
        ))),
        Ok(Asked::Look(asked)) => Plan::Read(Box::pin(look(store, asked))),
    }
}

/// What surrounds a command of this connection now.
pub(super) fn context(connection: &Connection) -> Context {
    Context {
        database: connection.session.database,
        value_bytes_max: connection.max_value,
        wall_ms: Some(wall_ms()),
    }
}

/// Milliseconds since 1970 by the wall clock of this node, which nothing in the log rests on.
pub(super) fn wall_ms() -> i64 {
    i64::try_from(unix_time::<Tokio>().as_millis()).unwrap_or(i64::MAX)
}

async fn change(store: LeaseStore, pubsub: Arc<Pubsub>, asked: Change) -> Answer {
    let outcome = match store.change(asked.command.clone()).await {
        Ok(outcome) => outcome,
        Err(error) => return error.to_reply().into(),
    };
    let unclaimed = unclaimed(&asked.command, &outcome);
    Answer {
        reply: answered(&pubsub, &asked, outcome),
        unclaimed,
    }
}

/// The answer to a change. Who hears a message is known here alone: the log tells every node's subscribers.
pub(super) fn answered(pubsub: &Pubsub, asked: &Change, outcome: Outcome) -> Reply {
    if let KeyCommand::Publish { channel, .. } = &asked.command {
        return Reply::count(pubsub.receivers(channel.as_slice()));
    }
    changed(asked, outcome)
}

/// A lock that `SET NX` took is its caller's alone.
fn unclaimed(command: &KeyCommand, outcome: &Outcome) -> Option<Unclaimed> {
    match (command, outcome) {
        (KeyCommand::Set(set), Outcome::Stored { token, .. }) if set.condition == SetCondition::IfAbsent => {
            Some(Unclaimed {
                key: set.key.clone(),
                token: *token,
            })
        }
        _ => None,
    }
}

async fn look(store: LeaseStore, asked: Look) -> Answer {
    let seen = match store.look(&asked.keys).await {
        Ok(seen) => seen,
        Err(error) => return error.to_reply().into(),
    };
    asked.reply(&seen, wall_ms()).into()
}
