//! What scripts mean, what is refused, and that nothing whatever makes the loader or a run panic or go on for ever.

mod hostile;
mod loading;
mod meaning;

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::{Ended, Host, Invocation, Program, ScriptDigest, ScriptReply, StepsLeft, Verb, run};
use crate::redis::KeyVerb;
use crate::types::SharedBytes;

const DIGEST: ScriptDigest = ScriptDigest::new([0xAB; 20]);

/// Knows `GET`, `SET` and `DEL`, and answers everything else with its name.
#[derive(Debug, Default)]
struct Shelf(BTreeMap<SharedBytes, SharedBytes>);

impl Host for Shelf {
    type Stop = Infallible;

    fn call(&mut self, verb: Verb, arguments: &[SharedBytes]) -> Result<ScriptReply, Infallible> {
        Ok(match (verb, arguments) {
            (Verb::Key(KeyVerb::Get), [key]) => self
                .0
                .get(key)
                .cloned()
                .map_or(ScriptReply::Nil, ScriptReply::Bulk),
            (Verb::Key(KeyVerb::Set), [key, value, ..]) => {
                self.0.insert(key.clone(), value.clone());
                ScriptReply::Status(SharedBytes::from("OK"))
            }
            (Verb::Key(KeyVerb::Mget), keys) => {
                let value = |key| {
                    self.0
                        .get(key)
                        .cloned()
                        .map_or(ScriptReply::Nil, ScriptReply::Bulk)
                };
                ScriptReply::Array(keys.iter().map(value).collect())
            }
            (Verb::Key(KeyVerb::Persist), _) => ScriptReply::error("WRONGTYPE it is of no use"),
            (verb, _) => ScriptReply::Bulk(SharedBytes::from(verb.name())),
        })
    }
}

fn texts(all: &[&str]) -> Vec<SharedBytes> {
    all.iter().map(|text| SharedBytes::from(*text)).collect()
}

/// The reply to a script with the keys `k1`, `k2` and the arguments `a1`, `10`.
fn answer(text: &str) -> Result<ScriptReply, Ended<Infallible>> {
    let program = Program::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let read = Program::from_bytes(&program.to_bytes()).unwrap();
    assert_eq!(read, program, "{text}");
    run_on_shelf(&read)
}

/// Runs a program with the same keys and arguments on an empty shelf.
fn run_on_shelf(program: &Program) -> Result<ScriptReply, Ended<Infallible>> {
    let (keys, arguments) = (texts(&["k1", "k2"]), texts(&["a1", "10"]));
    let invocation = Invocation {
        program,
        digest: DIGEST,
        keys: &keys,
        arguments: &arguments,
    };
    run(&invocation, &mut StepsLeft::full(), &mut Shelf::default())
}

/// The reply as one line.
fn say(text: &str) -> String {
    fn shown(reply: &ScriptReply) -> String {
        match reply {
            ScriptReply::Nil => "nil".to_owned(),
            ScriptReply::Integer(number) => number.to_string(),
            ScriptReply::Bulk(text) => format!("{text:?}"),
            ScriptReply::Status(text) => format!("+{text}"),
            ScriptReply::Error(text) => format!("-{text}"),
            ScriptReply::Array(items) => {
                let items: Vec<String> = items.iter().map(shown).collect();
                format!("[{}]", items.join(" "))
            }
        }
    }
    match answer(text) {
        Ok(reply) => shown(&reply),
        Err(Ended::Bound(bound)) => format!("bound: {bound}"),
        Err(Ended::Stopped(never)) => match never {},
    }
}
