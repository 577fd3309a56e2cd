//! Scripts: what they do to leases, what they keep and what not, and who is told.

use std::sync::Arc;

use super::words::{Lab, ask, caller, key, reloaded, snapshot_of, token};
use crate::limits::{BATCH_COMMANDS_MAX, SCRIPT_STEPS_MAX, SCRIPT_STEPS_PER_ENTRY_MAX, SCRIPTS_HELD_MAX};
use crate::machine::{
    Command, Effect, EndReason, LeaseKey, LimitKind, Limits, Outcome, Preview, Refusal, RunScript,
    ScriptAccess, ScriptSource,
};
use crate::script::{Program, ScriptDigest, ScriptReply};
use crate::types::{Database, SharedBytes, Timestamp};

fn program(text: &str) -> Arc<Program> {
    Arc::new(Program::parse(text.as_bytes()).unwrap())
}

fn digest(number: u16) -> ScriptDigest {
    let [high, low] = number.to_be_bytes();
    let mut bytes = [0; 20];
    bytes[0] = high;
    bytes[1] = low;
    ScriptDigest::new(bytes)
}

fn call(source: ScriptSource, keys: &[&str], arguments: &[&str]) -> RunScript {
    let texts = |all: &[&str]| all.iter().map(|text| SharedBytes::from(*text)).collect();
    RunScript {
        source,
        database: Database::ZERO,
        databases: 16,
        value_bytes_max: 1_000,
        keys: texts(keys),
        arguments: texts(arguments),
    }
}

pub(super) fn eval(text: &str, keys: &[&str], arguments: &[&str]) -> RunScript {
    let source = ScriptSource::Given {
        digest: digest(1),
        program: program(text),
    };
    call(source, keys, arguments)
}

fn evalsha(number: u16) -> RunScript {
    let source = ScriptSource::Held {
        digest: digest(number),
    };
    call(source, &[], &[])
}

impl From<RunScript> for Command {
    fn from(script: RunScript) -> Self {
        Self::RunScript(script)
    }
}

fn replied(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Replied(ScriptReply::Nil) => "nil".to_owned(),
        Outcome::Replied(ScriptReply::Integer(number)) => number.to_string(),
        Outcome::Replied(ScriptReply::Bulk(text) | ScriptReply::Status(text) | ScriptReply::Error(text)) => {
            text.to_string()
        }
        other => panic!("{other:?} is no simple reply"),
    }
}

/// How the leases ended in the last entry.
fn ends(lab: &Lab) -> Vec<(LeaseKey, EndReason)> {
    let end = |effect: &Effect| match effect {
        Effect::Ended { key, reason, .. } => Some((key.clone(), reason.clone())),
        _ => None,
    };
    lab.effects.iter().filter_map(end).collect()
}

const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

#[test]
fn a_script_releases_what_is_its_callers_own_and_the_head_of_the_queue_is_granted() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 1_000));
    lab.at(1, ask("a", "y", 1_000).waiting(500, caller(1)));
    assert_eq!(replied(&lab.at(2, eval(RELEASE, &["a"], &["someone"]))), "0");
    assert_eq!(lab.holder("a").as_deref(), Some("x"));
    assert_eq!(replied(&lab.at(3, eval(RELEASE, &["a"], &["x"]))), "1");
    assert_eq!(ends(&lab), [(key("a"), EndReason::Released)]);
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Granted { .. })));
    assert_eq!(lab.holder("a").as_deref(), Some("y"));
}

#[test]
fn a_script_that_deletes_without_a_proof_overrides() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 1_000));
    assert_eq!(
        replied(&lab.at(1, eval("return redis.call('del', KEYS[1])", &["a"], &[]))),
        "1"
    );
    assert_eq!(ends(&lab), [(key("a"), EndReason::Overridden)]);
}

#[test]
fn nobody_who_waits_is_granted_a_key_before_the_script_has_ended() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 1_000));
    lab.at(1, ask("a", "y", 1_000).waiting(500, caller(1)));
    let takes_over =
        "redis.call('del', 'a') redis.call('set', 'a', 'z', 'px', 100) return redis.call('get', 'a')";
    assert_eq!(replied(&lab.at(2, eval(takes_over, &[], &[]))), "z");
    assert_eq!(lab.told(caller(1)), None);
    lab.at(102, Command::Tick);
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Granted { .. })));
}

#[test]
fn set_of_the_value_that_is_stored_keeps_the_token_and_any_other_value_takes_a_new_one() {
    let mut lab = Lab::new();
    let set =
        "redis.call('set', KEYS[1], ARGV[1], 'px', 100) return redis.call('lease.token', KEYS[1], ARGV[1])";
    assert_eq!(replied(&lab.at(0, eval(set, &["a"], &["x"]))), "1");
    assert_eq!(replied(&lab.at(60, eval(set, &["a"], &["x"]))), "1");
    assert_eq!(lab.effects, [], "a renewal is no grant");
    assert_eq!(
        lab.machine.get(&key("a")).unwrap().deadline,
        Timestamp::from_millis(160)
    );
    assert_eq!(replied(&lab.at(70, eval(set, &["a"], &["y"]))), "2");
    assert_eq!(ends(&lab), [(key("a"), EndReason::Superseded)]);
    let other = "return redis.call('lease.token', 'a', 'x')";
    assert_eq!(replied(&lab.at(80, eval(other, &[], &[]))), "nil");
}

#[test]
fn an_error_in_the_middle_keeps_what_was_done_before_it() {
    let mut lab = Lab::new();
    let text = "redis.call('set', 'a', 'x')\nredis.call('expire', 'a', 'soon')\nredis.call('set', 'b', 'y')";
    let said = replied(&lab.at(0, eval(text, &[], &[])));
    let digest = digest(1);
    assert_eq!(
        said,
        format!("ERR value is not an integer or out of range script: {digest}, on @user_script:2.")
    );
    assert_eq!(lab.holder("a").as_deref(), Some("x"));
    assert_eq!(lab.holder("b"), None);
}

#[test]
fn a_script_that_reaches_a_bound_has_done_nothing() {
    let mut lab = Lab::new();
    lab.grant(0, ask("b", "y", 1_000));
    let before = lab.machine.stats();
    let text = "redis.call('set', 'a', 'x') redis.call('del', 'b') while true do end";
    let said = replied(&lab.at(1, eval(text, &[], &[])));
    assert!(
        said.starts_with("LIMIT the script takes more than 100000 steps; nothing of it was applied."),
        "{said}"
    );
    assert_eq!(lab.effects, []);
    assert_eq!(lab.holder("a"), None);
    assert_eq!(lab.machine.stats().leases, before.leases);
    let granted = lab.grant(2, ask("a", "x", 1_000));
    assert!(granted > token(before.last_token), "tokens only rise");
}

#[test]
fn greedy_scripts_of_one_entry_are_bounded_together_and_a_usual_one_among_them_is_done() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 1_000));
    let greedy = || Command::from(eval("while true do end", &[], &[]));
    let thousand_keys = "for i = 1, 1000 do redis.call('get', 'k' .. i) end return 'through'";
    let mut entry: Vec<Command> = (0..BATCH_COMMANDS_MAX - 2).map(|_| greedy()).collect();
    entry.push(eval(thousand_keys, &[], &[]).into());
    entry.push(eval(RELEASE, &["a"], &["x"]).into());
    let applied = lab.machine.apply(Timestamp::from_millis(1), &entry).unwrap();
    let said: Vec<String> = applied.outcomes.iter().map(replied).collect();
    let alone = "LIMIT the script takes more than 100000 steps";
    let in_full = said.iter().filter(|said| said.starts_with(alone)).count();
    assert_eq!(in_full, SCRIPT_STEPS_PER_ENTRY_MAX / SCRIPT_STEPS_MAX);
    let together = "LIMIT the scripts of this moment take too many steps together";
    let cut = said.iter().filter(|said| said.starts_with(together)).count();
    assert_eq!(cut, BATCH_COMMANDS_MAX - 1 - in_full);
    assert_eq!(said.last().unwrap(), "1");
    let next = lab
        .machine
        .apply(Timestamp::from_millis(2), &[eval(thousand_keys, &[], &[]).into()]);
    assert_eq!(replied(next.unwrap().outcomes.first().unwrap()), "through");
}

#[test]
fn a_bound_of_the_whole_store_refuses_the_whole_script() {
    let mut lab = Lab::new();
    let limits = Limits {
        leases_max: 2,
        ..Limits::default()
    };
    lab.at(0, Command::SetLimits(limits));
    let three = "return redis.call('mset', 'a', '1', 'b', '2', 'c', '3')";
    let refused = Outcome::Refused(Refusal::Limit {
        kind: LimitKind::Leases,
        max: 2,
    });
    assert_eq!(lab.at(1, eval(three, &[], &[])), refused);
    assert_eq!(lab.machine.stats().leases, 0);
    let makes_room =
        "redis.call('mset', 'a', '1', 'b', '2') redis.call('del', 'a') return redis.call('set', 'c', '3')";
    assert_eq!(replied(&lab.at(2, eval(makes_room, &[], &[]))), "OK");
    assert_eq!(lab.machine.stats().leases, 2);
}

#[test]
fn nothing_is_stored_before_a_floor() {
    let mut lab = Lab::before_any_floor();
    let outcome = lab.at(0, eval("return redis.call('set', 'a', 'x')", &[], &[]));
    assert_eq!(outcome, Outcome::Refused(Refusal::NoTokenFloor));
}

#[test]
fn a_key_that_is_due_ends_when_a_script_touches_it_and_its_waiter_is_seen() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 100));
    lab.at(1, ask("a", "y", 100).waiting(500, caller(1)));
    let get = "return redis.call('get', 'a')";
    assert_eq!(replied(&lab.at(100, eval(get, &[], &[]))), "y");
    assert_eq!(ends(&lab), [(key("a"), EndReason::Expired)]);
}

#[test]
fn time_stands_still_while_a_script_runs_and_databases_are_its_own() {
    let mut lab = Lab::new();
    let text = "redis.call('set', 'a', 'x', 'px', 100) redis.call('select', 3) redis.call('set', 'a', 'y') \
                return redis.call('pttl', 'a') + redis.call('exists', 'a') * 1000";
    assert_eq!(replied(&lab.at(0, eval(text, &[], &[]))), "999");
    assert_eq!(
        replied(&lab.at(0, eval("return redis.call('pttl', 'a')", &[], &[]))),
        "100"
    );
    let said = replied(&lab.at(0, eval("return redis.pcall('select', 16)", &[], &[])));
    assert_eq!(said, "ERR DB index is out of range");
    let said = replied(&lab.at(0, eval("return redis.pcall('select', 1e15)", &[], &[])));
    assert_eq!(
        said,
        "ERR value is out of range, value must between -2147483648 and 2147483647"
    );
}

#[test]
fn a_message_of_a_script_is_told_when_it_has_ended() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 100));
    let text = "if redis.call('get', 'a') == ARGV[1] and redis.call('unlink', 'a') == 1 then \
                redis.call('publish', ARGV[2], 'a') return true end return false";
    assert_eq!(replied(&lab.at(1, eval(text, &[], &["x", "channel"]))), "1");
    let said = Effect::Published {
        channel: SharedBytes::from("channel"),
        message: SharedBytes::from("a"),
    };
    assert_eq!(lab.effects.last(), Some(&said));
}

#[test]
fn a_preview_changes_nothing_and_says_what_running_would_do() {
    let mut lab = Lab::new();
    lab.grant(0, ask("a", "x", 100));
    let bytes = snapshot_of(&lab.machine);
    let preview =
        |at, script: &RunScript, access| lab.machine.preview(Timestamp::from_millis(at), script, access);
    let release = |who| eval(RELEASE, &["a"], &[who]);
    let both = ScriptAccess::ReadWrite;
    assert_eq!(
        preview(10, &release("y"), both),
        Preview::Replied(ScriptReply::Integer(0))
    );
    assert_eq!(preview(10, &release("x"), both), Preview::Changes);
    assert_eq!(preview(100, &release("y"), both), Preview::Due(key("a")));
    assert_eq!(preview(10, &evalsha(9), both), Preview::NotHeld);
    for nothing_to_do in [
        "return redis.call('del', 'none')",
        "return redis.call('set', 'a', 'y', 'nx')",
        "return redis.call('set', 'none', 'y', 'xx')",
        "return redis.call('pexpire', 'none', 10)",
        "return redis.call('msetnx', 'b', '1', 'a', '2')",
        "return redis.call('persist', 'none')",
        "return redis.call('delifeq', 'a', 'y')",
    ] {
        let found = preview(10, &eval(nothing_to_do, &[], &[]), both);
        assert!(matches!(found, Preview::Replied(_)), "{nothing_to_do}: {found:?}");
    }
    let write = eval("return redis.call('del', 'none')", &[], &[]);
    let Preview::Replied(ScriptReply::Error(said)) = preview(10, &write, ScriptAccess::ReadOnly) else {
        panic!("a read-only script may not write")
    };
    assert!(
        said.to_string()
            .starts_with("ERR Write commands are not allowed from read-only scripts.")
    );
    assert_eq!(snapshot_of(&lab.machine), bytes);
}

#[test]
fn a_script_is_found_by_its_digest_until_it_is_forgotten() {
    let mut lab = Lab::new();
    assert_eq!(lab.at(0, evalsha(1)), Outcome::NoScript);
    lab.at(1, eval("return 7", &[], &[]));
    assert_eq!(replied(&lab.at(2, evalsha(1))), "7");
    let load = Command::LoadScript {
        digest: digest(2),
        program: program("return 8"),
    };
    assert_eq!(lab.at(3, load), Outcome::Done);
    assert_eq!(replied(&lab.at(4, evalsha(2))), "8");
    assert_eq!(lab.machine.scripts_held(), 2);
    lab.at(5, Command::FlushScripts);
    assert_eq!(lab.at(6, evalsha(2)), Outcome::NoScript);
    assert_eq!(lab.machine.scripts_held(), 0);
}

#[test]
fn the_script_that_was_used_longest_ago_makes_room_on_every_replica_alike() {
    let mut lab = Lab::new();
    let most = u16::try_from(SCRIPTS_HELD_MAX).unwrap();
    let load = |number| Command::LoadScript {
        digest: digest(number),
        program: program("return 1"),
    };
    for number in 0..most {
        lab.at(1, load(number));
    }
    lab.at(2, evalsha(0));
    let mut other = reloaded(&lab.machine);
    assert_eq!(snapshot_of(&other), snapshot_of(&lab.machine));
    for number in most..most + 3 {
        lab.at(3, load(number));
        other.apply(Timestamp::from_millis(3), &[load(number)]).unwrap();
    }
    assert_eq!(lab.machine.scripts_held(), SCRIPTS_HELD_MAX);
    let gone: Vec<u16> = (0..most + 3)
        .filter(|number| !lab.machine.holds_script(digest(*number)))
        .collect();
    assert_eq!(gone, [1, 2, 3]);
    assert_eq!(snapshot_of(&other), snapshot_of(&lab.machine));
}
