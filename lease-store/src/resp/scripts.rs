//! `EVAL`, `EVALSHA`, their read-only forms, and `SCRIPT`.

use lease_core::SharedBytes;
use lease_core::machine::ScriptAccess;
use lease_core::redis::read_integer;
use lease_core::script::ScriptDigest;
use lease_core::wire::{ErrorWord, Reply, Request};

use super::answer::Answer;
use super::connection::Connection;
use super::plan::Plan;
use super::verb::{unknown_subcommand, wrong_arity};
use crate::service::{Attempt, CallError, NamedScript, ScriptCall};
use crate::store::LeaseStore;

/// How a script is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// By its text.
    Text,
    /// By its digest.
    Digest,
}

/// `EVAL script numkeys [key ..] [argument ..]`, and the like.
pub(super) fn eval(connection: &Connection, request: &Request, naming: Naming, access: ScriptAccess) -> Plan {
    let call = match read_call(connection, request) {
        Ok(call) => call,
        Err(refused) => return Plan::Now(refused),
    };
    let name = request.arg(1).unwrap_or_default();
    let named = match naming {
        Naming::Text => NamedScript::Text(SharedBytes::from(name)),
        Naming::Digest => match ScriptDigest::parse(name) {
            Some(digest) => NamedScript::Digest(digest),
            None => return Plan::Now(CallError::NoScript.to_reply()),
        },
    };
    let (store, attempt) = (connection.store.clone(), Attempt::new(named, call, access));
    if store.would_change(&attempt) {
        return Plan::Change(Box::pin(
            async move { answer(store.propose_script(attempt).await) },
        ));
    }
    Plan::Read(Box::pin(async move { answer(store.attempt(attempt).await) }))
}

fn answer(replied: Result<lease_core::script::ScriptReply, CallError>) -> Answer {
    replied.map_or_else(|error| error.to_reply(), Reply::from).into()
}

fn read_call(connection: &Connection, request: &Request) -> Result<ScriptCall, Reply> {
    let refused = |text| Reply::error(ErrorWord::Err, text);
    let count = read_integer(request.arg(2).unwrap_or_default()).map_err(Reply::Error)?;
    let count = usize::try_from(count).map_err(|_| refused("Number of keys can't be negative"))?;
    let mut keys: Vec<SharedBytes> = request.args().skip(3).map(SharedBytes::from).collect();
    if count > keys.len() {
        return Err(refused("Number of keys can't be greater than number of args"));
    }
    let arguments = keys.split_off(count);
    Ok(ScriptCall {
        database: connection.session.database,
        databases: connection.session.databases,
        value_bytes_max: u32::try_from(connection.max_value).unwrap_or(u32::MAX),
        keys,
        arguments,
    })
}

/// `SCRIPT LOAD script`, `SCRIPT EXISTS digest ..`, `SCRIPT FLUSH [ASYNC | SYNC]`
pub(super) fn script(connection: &Connection, request: &Request) -> Plan {
    let store = connection.store.clone();
    let subcommand = request.arg(1).unwrap_or_default();
    let is = |name: &[u8]| subcommand.eq_ignore_ascii_case(name);
    let arguments = request.len().saturating_sub(2);
    if is(b"LOAD") && arguments == 1 {
        let text = SharedBytes::from(request.arg(2).unwrap_or_default());
        return Plan::Read(Box::pin(load(store, text)));
    }
    if is(b"EXISTS") && arguments >= 1 {
        let digests: Vec<_> = request.args().skip(2).map(ScriptDigest::parse).collect();
        return Plan::Read(Box::pin(exist(store, digests)));
    }
    if is(b"FLUSH") && arguments <= 1 {
        let mode = request.arg(2).unwrap_or(b"SYNC");
        if !mode.eq_ignore_ascii_case(b"SYNC") && !mode.eq_ignore_ascii_case(b"ASYNC") {
            let text = "SCRIPT FLUSH only support SYNC|ASYNC option";
            return Plan::Now(Reply::error(ErrorWord::Err, text));
        }
        return Plan::Change(Box::pin(flush(store)));
    }
    let known: [&[u8]; 2] = [b"LOAD", b"EXISTS"];
    if is(b"FLUSH") {
        return Plan::Now(Reply::error(
            ErrorWord::Err,
            "SCRIPT FLUSH only support SYNC|ASYNC option",
        ));
    }
    Plan::Now(if known.iter().any(|known| is(known)) {
        let name = String::from_utf8_lossy(subcommand).to_ascii_lowercase();
        wrong_arity(&format!("script|{name}"))
    } else {
        unknown_subcommand("script", subcommand)
    })
}

async fn load(store: LeaseStore, text: SharedBytes) -> Answer {
    let loaded = store.load_script(&text).await;
    loaded
        .map_or_else(|error| error.to_reply(), |digest| Reply::bulk(digest.to_string()))
        .into()
}

async fn exist(store: LeaseStore, digests: Vec<Option<ScriptDigest>>) -> Answer {
    let found = store.scripts_exist(&digests).await;
    let reply = |found: Vec<bool>| {
        let each = found.into_iter().map(|held| Reply::Integer(i64::from(held)));
        Reply::Array(each.collect())
    };
    found.map_or_else(|error| error.to_reply(), reply).into()
}

async fn flush(store: LeaseStore) -> Answer {
    let flushed = store.flush_scripts().await;
    flushed
        .map_or_else(|error| error.to_reply(), |()| Reply::OK)
        .into()
}
