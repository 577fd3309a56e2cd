//! What a request asks for: something that the connection answers itself, a change, a read, or a wait.
//!
//! Changes that stand behind one another in a pipeline are proposed together, in order; a read waits for the changes
//! before it, so that it sees them; a wait holds up its connection, as Redis's `BLPOP` does.

use std::future::Future;
use std::pin::Pin;

use lease_core::machine::LeaseKey;
use lease_core::wire::{AcquireReply, ErrorWord, LeaseCommand, LeaseVerb, Reply, Request};
use lease_core::{Database, LeaseName};

use super::answer::{Answer, Unclaimed};
use super::client::client;
use super::connection::Connection;
use super::hello::{auth, hello};
use super::info::{command, info};
use super::keys;
use super::verb::Verb;
use crate::store::LeaseStore;

/// A call of the store on its way.
pub(super) type Call = Pin<Box<dyn Future<Output = Answer> + Send>>;

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
}

impl Connection {
    /// Reads a request. What concerns the session takes effect here, before the next request is read.
    pub(super) fn plan(&mut self, request: &Request) -> Plan {
        let verb = match Verb::of(request) {
            Ok(verb) => verb,
            Err(refused) => return Plan::Now(refused),
        };
        if self.session.access == lease_core::wire::Access::Unauthenticated && !verb.needs_no_password() {
            return Plan::Now(Reply::error(ErrorWord::NoAuth, "Authentication required."));
        }
        match verb {
            Verb::Lease(verb) => self.plan_lease(verb, request),
            Verb::Key(verb) => keys::plan(self, verb, request),
            Verb::Auth => Plan::Now(auth(&mut self.session, request)),
            Verb::Hello => Plan::Now(hello(&mut self.session, request)),
            Verb::Client => Plan::Now(client(&mut self.session, request)),
            Verb::Command => Plan::Now(command(request)),
            Verb::Info => Plan::Now(info(&self.store, self.facts(), request)),
            Verb::Echo => Plan::Now(Reply::bulk(request.arg(1).unwrap_or_default())),
            Verb::Ping => Plan::Now(request.arg(1).map_or(PONG, Reply::bulk)),
            Verb::Select => {
                let selected = self.session.select(request.arg(1).unwrap_or_default());
                Plan::Now(selected.map_or_else(|refused| refused, |()| Reply::OK))
            }
            Verb::Reset => {
                self.session.reset();
                Plan::Now(RESET)
            }
            Verb::Quit => Plan::Last(Reply::OK),
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
