//! Stories: what is asked of the machine, and everything that it answers.
//!
//! `#` starts a comment. `TIME COMMAND [; COMMAND ..]` is one entry; each `->` below is the answer to one of its
//! commands, each `*` an effect. `get NAME`, `due` and `stats` look without changing anything, `reload` writes a
//! snapshot and goes on from it.

use std::fmt::Write as _;

use lease_core::Timestamp;
use lease_core::machine::LeaseMachine;

use crate::{parse, record, say};

macro_rules! scripts {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { run(stringify!($name)); })*
    };
}

scripts! {
    grant_expire_regrant
    queue
    retries
    gone_callers
    forwarded
    redis_set
    redis_ttl
    operator
    token_floor
    limits
    databases
}

#[test]
fn every_script_is_run() {
    let mut found: Vec<String> = std::fs::read_dir(record::path("scripts"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut run: Vec<String> = NAMES.iter().map(|name| format!("{name}.txt")).collect();
    run.sort();
    assert_eq!(found, run);
}

fn run(name: &str) {
    let file = format!("scripts/{name}.txt");
    let recorded = record::read(&file).unwrap();
    let now = answer(&recorded);
    record::compare(
        &file,
        &now,
        "If the machine shall answer so from now on, record it with UPDATE=1 and review the diff.",
    );
}

/// The script with its answers as they are now.
fn answer(script: &str) -> String {
    let mut machine = LeaseMachine::new();
    let mut text = String::new();
    for line in script.lines() {
        if line.starts_with(' ') {
            continue;
        }
        writeln!(text, "{line}").unwrap();
        let words = line.split('#').next().unwrap().trim();
        if words.is_empty() {
            continue;
        }
        for said in answer_line(&mut machine, words) {
            writeln!(text, "    {said}").unwrap();
        }
        machine.check().unwrap();
    }
    text
}

fn answer_line(machine: &mut LeaseMachine, words: &str) -> Vec<String> {
    let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
    match first {
        "get" => vec![format!(
            "= {}",
            say::lease(machine.get(&parse::key(rest)).as_ref())
        )],
        "due" => vec![match machine.next_due() {
            Some(at) => format!("= {at}"),
            None => "= nothing is due".to_owned(),
        }],
        "stats" => {
            let stats = machine.stats();
            vec![format!(
                "= leases {}, waiters {}, requests {}, endings {}, bytes {}, last token {}",
                stats.leases, stats.waiters, stats.requests, stats.endings, stats.bytes, stats.last_token
            )]
        }
        "reload" => {
            let mut bytes = Vec::new();
            machine.view().encode(&mut bytes).unwrap();
            *machine = LeaseMachine::decode(&mut bytes.as_slice()).unwrap();
            Vec::new()
        }
        at => {
            let at = Timestamp::from_millis(at.parse().unwrap());
            let limits = machine.limits();
            let commands = rest.split(';').map(|text| parse::submission(text, limits));
            let applied = machine.apply_entry(at, &commands.collect::<Vec<_>>()).unwrap();
            let outcomes = applied
                .outcomes
                .iter()
                .map(|it| format!("-> {}", say::outcome(it)));
            let effects = applied.effects.iter().map(|it| format!("* {}", say::effect(it)));
            outcomes.chain(effects).collect()
        }
    }
}
