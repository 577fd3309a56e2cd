//! A script against the commands that it calls, done as one transaction: those are compared with the naive model elsewhere.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;

use super::properties::{cases, run};
use super::scripts::eval;
use super::steps::{all_keys, any_key, beginning, steps};
use super::words::{owner, snapshot_of};
use crate::machine::{
    Command, KeyCommand, LeaseKey, LeaseMachine, Limits, ManyCondition, Outcome, Preview, RunScript,
    ScriptAccess, Set, SetCondition, SetExpiry, TtlCondition,
};
use crate::script::ScriptReply;
use crate::types::{Database, OwnerId, Timestamp, Ttl};

/// Commands that mean the same in a script and in a transaction: a bare `SET` of the value that is stored does not, and a
/// message is told later by a script.
fn key_command() -> impl Strategy<Value = KeyCommand> {
    let keys = || prop::collection::vec(any_key(), 1..4);
    let any_owner = || select(vec!["x", "yy", "zzz"]).prop_map(owner);
    let expiry = prop_oneof![
        Just(SetExpiry::Never),
        Just(SetExpiry::Keep),
        select(vec![1_u64, 10, 5_000]).prop_map(|millis| SetExpiry::In(Ttl::from_millis(millis).unwrap())),
    ];
    let set = (any_key(), any_owner(), expiry, 0..4_u8).prop_map(|(key, value, expiry, which)| {
        let condition = match which {
            0 => SetCondition::IfAbsent,
            1 => SetCondition::IfPresent,
            2 => SetCondition::IfEqual(value.clone()),
            _ => SetCondition::IfNotEqual(value.clone()),
        };
        Set {
            key,
            value,
            expiry,
            condition,
        }
    });
    let condition = select(vec![
        TtlCondition::Always,
        TtlCondition::IfPersistent,
        TtlCondition::IfExpiring,
        TtlCondition::IfLater,
        TtlCondition::IfEarlier,
        TtlCondition::IfExpiringAndEarlier,
    ]);
    // Of a key that is named twice, with one value, a script renews what it has just stored.
    let pairs = prop::collection::btree_map(any_key(), any_owner(), 1..4);
    prop_oneof![
        4 => set.prop_map(KeyCommand::Set),
        2 => (any_key(), select(vec![1_u64, 10, 5_000]), condition.clone()).prop_map(|(key, millis, condition)| {
            KeyCommand::SetTtl { key, ttl: Some(Ttl::from_millis(millis).unwrap()), condition }
        }),
        1 => any_key().prop_map(|key| KeyCommand::SetTtl { key, ttl: None, condition: TtlCondition::IfExpiring }),
        2 => keys().prop_map(|keys| KeyCommand::Delete { keys }),
        1 => (any_key(), any_owner())
            .prop_map(|(key, value)| KeyCommand::DeleteIf { key, condition: SetCondition::IfEqual(value) }),
        1 => any_key().prop_map(|key| KeyCommand::Take { key }),
        1 => pairs.prop_map(|pairs| KeyCommand::SetMany { pairs: pairs.into_iter().collect(), condition: ManyCondition::IfNoneHeld }),
        1 => (any_key(), condition).prop_map(|(key, condition)| KeyCommand::ExpireNow { key, condition }),
        1 => keys().prop_map(|keys| KeyCommand::Look { keys }),
    ]
}

/// The call of a command within a script, in the database of its key.
fn script_of(commands: &[KeyCommand]) -> String {
    let name = |key: &LeaseKey| format!("'{}'", key.name);
    let names = |keys: &[LeaseKey]| keys.iter().map(name).collect::<Vec<_>>().join(", ");
    let value = |value: &OwnerId| format!("'{value}'");
    let when = |condition: TtlCondition| match condition {
        TtlCondition::Always => "",
        TtlCondition::IfPersistent => ", 'nx'",
        TtlCondition::IfExpiring => ", 'xx'",
        TtlCondition::IfLater => ", 'gt'",
        TtlCondition::IfEarlier => ", 'lt'",
        TtlCondition::IfExpiringAndEarlier => ", 'xx', 'lt'",
    };
    let mut text = String::new();
    for command in commands {
        let call = match command {
            KeyCommand::Set(set) => {
                let expiry = match set.expiry {
                    SetExpiry::In(ttl) => format!(", 'px', {}", ttl.as_millis()),
                    SetExpiry::Keep => ", 'keepttl'".to_owned(),
                    SetExpiry::Never | SetExpiry::Over => String::new(),
                };
                let condition = match &set.condition {
                    SetCondition::IfAbsent => ", 'nx'".to_owned(),
                    SetCondition::IfPresent => ", 'xx'".to_owned(),
                    SetCondition::IfEqual(other) => format!(", 'ifeq', {}", value(other)),
                    SetCondition::IfNotEqual(other) => format!(", 'ifne', {}", value(other)),
                    _ => String::new(),
                };
                format!(
                    "'set', {}, {}{expiry}{condition}",
                    name(&set.key),
                    value(&set.value)
                )
            }
            KeyCommand::SetTtl {
                key,
                ttl: Some(ttl),
                condition,
            } => {
                format!(
                    "'pexpire', {}, {}{}",
                    name(key),
                    ttl.as_millis(),
                    when(*condition)
                )
            }
            KeyCommand::SetTtl { key, .. } => format!("'persist', {}", name(key)),
            KeyCommand::Delete { keys } => format!("'del', {}", names(keys)),
            KeyCommand::DeleteIf {
                key,
                condition: SetCondition::IfEqual(other),
            } => {
                format!("'delifeq', {}, {}", name(key), value(other))
            }
            KeyCommand::Take { key } => format!("'getdel', {}", name(key)),
            KeyCommand::SetMany { pairs, .. } => {
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|(key, other)| format!("{}, {}", name(key), value(other)))
                    .collect();
                format!("'msetnx', {}", pairs.join(", "))
            }
            KeyCommand::ExpireNow { key, condition } => {
                format!("'pexpire', {}, 0{}", name(key), when(*condition))
            }
            KeyCommand::Look { keys } => format!("'mget', {}", names(keys)),
            other => panic!("{other:?} is not among those that are compared"),
        };
        writeln!(text, "redis.call({call})").unwrap();
    }
    text
}

fn in_database_0(command: &KeyCommand) -> bool {
    let is_0 = |key: &LeaseKey| key.database == Database::ZERO;
    match command {
        KeyCommand::Set(set) => is_0(&set.key),
        KeyCommand::SetTtl { key, .. }
        | KeyCommand::DeleteIf { key, .. }
        | KeyCommand::Take { key }
        | KeyCommand::ExpireNow { key, .. } => is_0(key),
        KeyCommand::Delete { keys } | KeyCommand::Look { keys } => keys.iter().all(is_0),
        KeyCommand::SetMany { pairs, .. } => pairs.iter().all(|(key, _)| is_0(key)),
        KeyCommand::Publish { .. } => true,
    }
}

proptest! {
    #![proptest_config(cases(600))]

    /// The machine's own commands are compared with the naive model elsewhere.
    #[test]
    fn a_script_does_what_its_commands_do_as_one_transaction(
        beginning in beginning(),
        before in steps(30),
        later_ms in 0..40_u64,
        commands in prop::collection::vec(key_command(), 1..6),
    ) {
        let commands: Vec<KeyCommand> = commands.into_iter().filter(in_database_0).collect();
        let (machine, _) = run(&beginning, &before);
        let at = Timestamp::from_millis(machine.now().as_millis().saturating_add(later_ms));
        // Total bounds refuse a whole script, and one command of a transaction.
        let mut by_script = machine;
        by_script.apply(at, &[Command::SetLimits(Limits::default()), Command::RaiseTokenFloor { floor: 0 }]).unwrap();
        let mut as_one = by_script.clone();
        let text = script_of(&commands);
        let script = by_script.apply(at, &[eval(&text, &[], &[]).into()]).unwrap();
        let transaction = Command::Transaction { watched: Vec::new(), commands };
        let expected = as_one.apply(at, &[transaction]).unwrap();
        if let Outcome::Transaction(outcomes) = &expected.outcomes[0]
            && outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused(_)))
        {
            // No token was left.
            prop_assert!(matches!(script.outcomes[0], Outcome::Refused(_)));
            return Ok(());
        }
        prop_assert_eq!(&script.outcomes[0], &Outcome::Replied(ScriptReply::Nil), "{}", text);
        prop_assert_eq!(&script.effects, &expected.effects, "{}", text);
        prop_assert_eq!(by_script.stats(), as_one.stats());
        for key in all_keys() {
            prop_assert_eq!(by_script.get(&key), as_one.get(&key), "{}", text);
        }
        prop_assert_eq!(by_script.check(), Ok(()));
        check_preview(&by_script, at, &eval(&text, &[], &[]))?;
    }
}

/// What a preview answers is what running answers, and then running changes nothing.
fn check_preview(machine: &LeaseMachine, at: Timestamp, script: &RunScript) -> Result<(), TestCaseError> {
    let Preview::Replied(reply) = machine.preview(at, script, ScriptAccess::ReadWrite) else {
        return Ok(());
    };
    let mut run = machine.clone();
    let applied = run.apply(at, &[script.clone().into()]).unwrap();
    prop_assert_eq!(&applied.outcomes[0], &Outcome::Replied(reply));
    prop_assert_eq!(applied.effects, Vec::new());
    prop_assert_eq!(snapshot_of(&run), snapshot_of(machine));
    Ok(())
}
