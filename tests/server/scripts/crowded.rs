//! The scripts of the corpus in log entries whose scripts take too many steps together: each is done all the same.

use std::sync::Arc;

use lease_core::machine::{
    Command, KeyCommand, LeaseKey, LeaseMachine, Outcome, RunScript, ScriptSource, Set, SetCondition,
    SetExpiry,
};
use lease_core::script::{Program, ScriptDigest};
use lease_core::{Database, LeaseName, OwnerId, SharedBytes, Timestamp, Ttl};

use super::corpus;

/// Keys of one lock: more than any lock library is used with.
const KEYS: usize = 12;
/// Scripts that take all they can get: more than enough to take all that an entry has.
const GREEDY: usize = 8;
const TOKEN: &str = "a token of thirty-six letters, a uuid";

fn names() -> Vec<String> {
    (0..KEYS)
        .map(|number| format!("lock:resource-{number}"))
        .collect()
}

fn script(number: u8, text: &str) -> Command {
    let program = Program::parse(text.as_bytes()).unwrap();
    let arguments = [TOKEN, "30000", "channel", "1"].map(SharedBytes::from);
    Command::RunScript(RunScript {
        source: ScriptSource::Given {
            digest: ScriptDigest::new([number; 20]),
            program: Arc::new(program),
        },
        database: Database::ZERO,
        databases: 16,
        value_bytes_max: 1_048_576,
        keys: names()
            .iter()
            .map(|name| SharedBytes::from(name.as_str()))
            .collect(),
        arguments: arguments.into(),
    })
}

/// A machine in which one value holds all keys, or nobody holds any.
fn machine(owner: Option<&str>) -> LeaseMachine {
    let mut commands = vec![Command::RaiseTokenFloor { floor: 0 }];
    for name in names() {
        let set = owner.map(|owner| Set {
            key: LeaseKey::new(Database::ZERO, LeaseName::redis_key(&name).unwrap()),
            value: OwnerId::redis_value(owner).unwrap(),
            expiry: SetExpiry::In(Ttl::from_millis(60_000).unwrap()),
            condition: SetCondition::Always,
        });
        commands.extend(set.map(|set| Command::Key(KeyCommand::Set(set))));
    }
    let mut machine = LeaseMachine::new();
    machine.apply(Timestamp::from_millis(1), &commands).unwrap();
    machine
}

/// What the last of these commands, in one entry, is answered.
fn last_outcome(owner: Option<&str>, commands: &[Command]) -> Outcome {
    let applied = machine(owner).apply(Timestamp::from_millis(2), commands).unwrap();
    applied.outcomes.last().unwrap().clone()
}

#[test]
fn scripts_of_lock_libraries_are_done_whatever_others_of_their_entry_take() {
    let greedy = || (0..GREEDY).map(|_| script(1, "while true do end"));
    for corpus::Script { name, text } in corpus::scripts() {
        for owner in [Some(TOKEN), None] {
            let alone = last_outcome(owner, &[script(2, &text)]);
            let crowded: Vec<Command> = greedy().chain([script(2, &text)]).collect();
            assert_eq!(last_outcome(owner, &crowded), alone, "{name}");
        }
    }
    // The greedy ones did take it all.
    let long = "for i = 1, 1000 do redis.call('get', KEYS[1]) end return 'through'";
    let crowded: Vec<Command> = greedy().chain([script(2, long)]).collect();
    let said = format!("{:?}", last_outcome(Some(TOKEN), &crowded));
    assert!(said.contains("too many steps together"), "{said}");
}
