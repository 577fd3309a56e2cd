//! What a request asks for: something that the connection answers itself, a change, a read, or a wait.
//!
//! Changes that stand behind one another in a pipeline are proposed together, in order; a read waits for the changes
//! before it, so that it sees them; a wait holds up its connection, as Redis's `BLPOP` does.

use std::future::Future;
use std::pin::Pin;

use lease_core::machine::{LeaseKey, Watched};
use lease_core::wire::{Access, AcquireReply, ErrorWord, LeaseCommand, LeaseVerb, Protocol, Reply, Request};
use lease_core::{Database, LeaseName};

use super::answer::{Answer, Unclaimed};
use super::client::client;
use super::connection::Connection;
use super::hello::{auth, hello};
use super::info::{command, info};
use super::keyspace::Databases;
use super::scripts;
use super::session::Mark;
use super::verb::{Question, Verb};
use super::{keys, keyspace, questions};
use crate::service::CallError;
use crate::store::LeaseStore;

/// A call of the store on its way.
pub(super) type Call = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Keys on their way to be seen.
pub(super) type Sightings = Pin<Box<dyn Future<Output = Result<Vec<Watched>, CallError>> + Send>>;

/// What a request asks for.
pub(super) enum Plan {
    /// The connection has the answer.
    Now(Reply),
    /// The answer ends the connection.
    Last(Reply),
    /// A change: may be proposed together with its neighbours.
    Change(Call),
    /// A read: the changes before it come first.
    Read(Call),
    /// May stand in a queue.
    Wait(Call),
    /// The connection has several answers, or messages that are none.
    Told(Vec<Reply>),
    /// A transaction: what it did to the session is undone if it is not done.
    Exec { call: Call, before: Mark },
    /// A read that the session remembers.
    Watch(Sightings),
}

impl Connection {
    /// Reads a request. What concerns the session takes effect here, before the next request is read.
    pub(super) fn plan(&mut self, request: &Request) -> Plan {
        let verb = Verb::of(request);
        let needs_no_password = verb.as_ref().is_ok_and(|verb| verb.needs_no_password());
        if self.session.access == Access::Unauthenticated && verb.is_ok() && !needs_no_password {
            return Plan::Now(Reply::error(ErrorWord::NoAuth, "Authentication required."));
        }
        if let Some(plan) = self.queue(verb.as_ref().copied(), request) {
            return plan;
        }
        let verb = match verb {
            Ok(verb) => verb,
            Err(refused) => return Plan::Now(refused),
        };
        let mixes = self.session.protocol == Protocol::Resp2 && self.session.subscriptions() > 0;
        if mixes && !verb.goes_with_subscriptions() {
            let name = String::from_utf8_lossy(request.command()).to_ascii_lowercase();
            let text = format!(
                "Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
                 context"
            );
            return Plan::Now(Reply::error(ErrorWord::Err, text));
        }
        match verb {
            Verb::Subscribe => self.subscribe(request),
            Verb::Psubscribe => self.psubscribe(request),
            Verb::Unsubscribe => self.unsubscribe(request),
            Verb::Punsubscribe => self.punsubscribe(request),
            Verb::Multi => self.multi(),
            Verb::Exec => self.exec(),
            Verb::Discard => self.discard(),
            Verb::Watch => self.watch(request),
            Verb::Quit => Plan::Last(Reply::OK),
            Verb::Reset => {
                self.session.reset();
                Plan::Now(RESET)
            }
            Verb::Ask(Question::Ping) if mixes => {
                let said = Reply::bulk(request.arg(1).unwrap_or_default());
                Plan::Now(Reply::Array(vec![Reply::word("pong"), said]))
            }
            Verb::Lease(verb) => self.plan_lease(verb, request),
            Verb::Key(verb) => keys::plan(self, verb, request),
            Verb::Eval(naming, access) => scripts::eval(self, request, naming, access),
            Verb::Script => scripts::script(self, request),
            Verb::Keys => keyspace::keys(self, request),
            Verb::Scan => keyspace::scan(self, request),
            Verb::Dbsize => keyspace::size(self),
            Verb::Flushdb => keyspace::flush(self, Databases::Selected, request),
            Verb::Flushall => keyspace::flush(self, Databases::All, request),
            Verb::Ask(question) => Plan::Now(self.tell(question, request)),
        }
    }

    /// What the connection answers by itself, within a transaction too.
    pub(super) fn tell(&mut self, question: Question, request: &Request) -> Reply {
        match question {
            Question::Auth => auth(&mut self.session, request),
            Question::Hello => hello(&mut self.session, request),
            Question::Client => client(&mut self.session, request),
            Question::Cluster => questions::cluster(),
            Question::Command => command(request),
            Question::Config => questions::config(self.session.databases, request),
            Question::Function => questions::function(request),
            Question::Info => info(&self.store, self.facts(), request),
            Question::Echo => Reply::bulk(request.arg(1).unwrap_or_default()),
            Question::Ping => request.arg(1).map_or(PONG, Reply::bulk),
            Question::Pubsub => self.pubsub(request),
            Question::Select => {
                let selected = self.session.select(request.arg(1).unwrap_or_default());
                selected.map_or_else(|refused| refused, |()| Reply::OK)
            }
            Question::Time => questions::time(),
            Question::Unwatch => {
                self.session.watched.clear();
                Reply::OK
            }
            Question::Wait => questions::wait(request),
        }
    }

    fn plan_lease(&self, verb: LeaseVerb, request: &Request) -> Plan {
        let command = match LeaseCommand::parse(verb, request) {
            Ok(command) => command,
            Err(error) => return Plan::Now(error.to_reply()),
        };
        let (store, database) = (self.store.clone(), self.session.database);
        let waits = matches!(&command, LeaseCommand::Acquire(acquire) if acquire.wait_ms > 0);
        let call: Call = if let LeaseCommand::Acquire(acquire) = command {
            Box::pin(acquire_call(store, database, acquire))
        } else {
            Box::pin(async move { store.execute(database, command).await.into() })
        };
        match verb {
            LeaseVerb::Acquire if waits => Plan::Wait(call),
            LeaseVerb::Acquire
            | LeaseVerb::Renew
            | LeaseVerb::RenewMany
            | LeaseVerb::Release
            | LeaseVerb::Cancel
            | LeaseVerb::Force => Plan::Change(call),
            LeaseVerb::Get | LeaseVerb::List | LeaseVerb::Token | LeaseVerb::History | LeaseVerb::Leader => {
                Plan::Read(call)
            }
        }
    }
}

const PONG: Reply = Reply::Simple(lease_core::wire::Line::from_static("PONG"));
const RESET: Reply = Reply::Simple(lease_core::wire::Line::from_static("RESET"));

async fn acquire_call(
    store: LeaseStore,
    database: Database,
    acquire: lease_core::wire::AcquireCommand,
) -> Answer {
    let plain: Option<LeaseName> = acquire.request.is_none().then(|| acquire.name.clone());
    match store.acquire(database, acquire).await {
        Ok(reply) => {
            let unclaimed = match (&reply, plain) {
                (AcquireReply::Granted { token, .. }, Some(name)) => Some(Unclaimed {
                    key: LeaseKey::new(database, name),
                    token: *token,
                }),
                _ => None,
            };
            Answer {
                reply: reply.to_reply(),
                unclaimed,
            }
        }
        Err(error) => error.to_reply().into(),
    }
}
