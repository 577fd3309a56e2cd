//! `MULTI`, `EXEC`, `WATCH`: commands that wait for each other, and are done with nothing in between.
//!
//! What is queued is read again at `EXEC`, as Redis does: a wrong argument is then an error among the answers.

use std::sync::Arc;

use lease_core::limits::TRANSACTION_COMMANDS_MAX;
use lease_core::machine::{KeyCommand, Outcome, Watched};
use lease_core::redis::{Asked, Change, Look, ask};
use lease_core::wire::{ErrorWord, Line, Reply, Request};

use super::answer::Answer;
use super::connection::Connection;
use super::keys::{answered, context, wall_ms};
use super::plan::Plan;
use super::pubsub::Pubsub;
use super::verb::{InTransaction, Part, Verb};
use crate::service::{Room, looked};
use crate::store::LeaseStore;

/// Bytes that one transaction holds until `EXEC`, at the most.
const QUEUED_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Keys that one connection watches at the most.
const WATCHED_MAX: usize = 1_024;

const QUEUED: Reply = Reply::Simple(Line::from_static("QUEUED"));

/// The transaction that a connection has begun.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    requests: Vec<(Part, Request)>,
    bytes: usize,
    /// Something was refused on the way: `EXEC` does nothing.
    spoilt: bool,
}

/// One command of a transaction, as `EXEC` finds it.
enum Step {
    Told(Reply),
    Change(Change),
    Look(Look),
}

impl Connection {
    /// What becomes of a request within a transaction; `None` outside one, or if it is to be served at once.
    pub(super) fn queue(&mut self, verb: Result<Verb, &Reply>, request: &Request) -> Option<Plan> {
        let transaction = self.session.transaction.as_mut()?;
        let verb = match verb {
            Ok(verb) => verb,
            Err(refused) => {
                transaction.spoilt = true;
                return Some(Plan::Now(refused.clone()));
            }
        };
        let bytes = transaction.bytes.saturating_add(request.arg_bytes());
        let refused = match verb.in_transaction() {
            InTransaction::AtOnce => return None,
            InTransaction::Refused => {
                Reply::error(ErrorWord::Err, "Command not allowed inside a transaction")
            }
            InTransaction::Queued(_)
                if transaction.requests.len() >= TRANSACTION_COMMANDS_MAX || bytes > QUEUED_BYTES_MAX =>
            {
                let text = format!(
                    "a transaction has at most {TRANSACTION_COMMANDS_MAX} commands and {QUEUED_BYTES_MAX} bytes"
                );
                Reply::error(ErrorWord::Limit, text)
            }
            InTransaction::Queued(part) => {
                transaction.bytes = bytes;
                transaction.requests.push((part, request.copied()));
                return Some(Plan::Now(QUEUED));
            }
        };
        transaction.spoilt = true;
        Some(Plan::Now(refused))
    }

    /// `MULTI`
    pub(super) fn multi(&mut self) -> Plan {
        if self.session.transaction.is_some() {
            return Plan::Now(Reply::error(ErrorWord::Err, "MULTI calls can not be nested"));
        }
        self.session.transaction = Some(Transaction::default());
        Plan::Now(Reply::OK)
    }

    /// `DISCARD`
    pub(super) fn discard(&mut self) -> Plan {
        if self.session.transaction.take().is_none() {
            return Plan::Now(Reply::error(ErrorWord::Err, "DISCARD without MULTI"));
        }
        self.session.watched.clear();
        Plan::Now(Reply::OK)
    }

    /// `WATCH key [key ..]`
    pub(super) fn watch(&self, request: &Request) -> Plan {
        if self.session.transaction.is_some() {
            return Plan::Now(Reply::error(ErrorWord::Err, "WATCH inside MULTI is not allowed"));
        }
        let names: Vec<&[u8]> = request.args().skip(1).collect();
        if names.len().saturating_add(self.session.watched.len()) > WATCHED_MAX {
            let text = format!("a connection watches at most {WATCHED_MAX} keys");
            return Plan::Now(Reply::error(ErrorWord::Limit, text));
        }
        match context(self).keys(&names) {
            Err(refused) => Plan::Now(refused.into()),
            Ok(keys) => {
                let store = self.store.clone();
                Plan::Watch(Box::pin(async move { store.sight(keys).await }))
            }
        }
    }

    /// `EXEC`
    pub(super) fn exec(&mut self) -> Plan {
        let Some(transaction) = self.session.transaction.take() else {
            return Plan::Now(Reply::error(ErrorWord::Err, "EXEC without MULTI"));
        };
        let watched = std::mem::take(&mut self.session.watched);
        if transaction.spoilt {
            let text = "Transaction discarded because of previous errors.";
            return Plan::Now(Reply::error(ErrorWord::ExecAbort, text));
        }
        let before = self.session.mark();
        let steps: Vec<Step> = transaction
            .requests
            .iter()
            .map(|(part, request)| self.step(*part, request))
            .collect();
        if watched.is_empty() && steps.iter().all(|step| matches!(step, Step::Told(_))) {
            let told = steps.into_iter().map(|step| match step {
                Step::Told(reply) => reply,
                Step::Change(_) | Step::Look(_) => Reply::Nil,
            });
            return Plan::Now(Reply::Array(told.collect()));
        }
        let (store, pubsub) = (self.store.clone(), Arc::clone(&self.facts.pubsub));
        Plan::Exec {
            call: Box::pin(execute(store, pubsub, watched, steps)),
            before,
        }
    }

    fn step(&mut self, part: Part, request: &Request) -> Step {
        let on_keys = match part {
            Part::Key(verb) => verb,
            Part::Ask(question) => return Step::Told(self.tell(question, request)),
        };
        let args: Vec<&[u8]> = request.args().collect();
        match ask(on_keys, &args, &context(self)) {
            Ok(Asked::Change(change)) => Step::Change(change),
            Ok(Asked::Look(look)) => Step::Look(look),
            Err(refused) => Step::Told(refused.into()),
        }
    }
}

async fn execute(store: LeaseStore, pubsub: Arc<Pubsub>, watched: Vec<Watched>, steps: Vec<Step>) -> Answer {
    let commands: Vec<KeyCommand> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Told(_) => None,
            Step::Change(change) => Some(change.command.clone()),
            Step::Look(look) => Some(look.command()),
        })
        .collect();
    let outcomes = match store.transaction(watched, commands).await {
        Ok(Some(outcomes)) => outcomes,
        Ok(None) => return Reply::NilArray.into(),
        Err(error) => return error.to_reply().into(),
    };
    let (mut outcomes, mut room) = (outcomes.into_iter(), Room::whole());
    let replies = steps.into_iter().map(|step| match step {
        Step::Told(reply) => reply,
        Step::Change(change) => answered(&pubsub, &change, outcomes.next().unwrap_or(Outcome::NotFound)),
        Step::Look(look) => {
            let outcome = outcomes.next().unwrap_or(Outcome::NotFound);
            looked(&look, outcome, wall_ms(), &mut room)
        }
    });
    Reply::Array(replies.collect()).into()
}
