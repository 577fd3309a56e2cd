//! Commands that a node forwards under numbers: applied once, however often and in whatever order they come.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;

use super::properties::cases;
use super::steps::{all_keys, any_key};
use super::words::*;
use crate::limits::{FORWARDED_ANSWERS_MAX, FORWARDED_BYTES_MAX, FORWARDED_MEMORY_MS};
use crate::machine::{
    Command, EndReason, LeaseKey, LeaseMachine, Once, Outcome, Refusal, Set, SetCondition, SetExpiry,
    Submission,
};
use crate::types::{OwnerId, Timestamp};

fn once(number: u64, settled_below: u64) -> Once {
    Once {
        node: 2,
        incarnation: 1,
        number,
        settled_below,
    }
}

fn set_if_absent(key: LeaseKey, value: &str, for_ms: u64) -> Command {
    Command::Set(Set {
        key,
        value: owner(value),
        expiry: SetExpiry::In(ttl(for_ms)),
        condition: SetCondition::IfAbsent,
    })
}

fn set(name: &str, value: OwnerId) -> Command {
    Command::Set(Set {
        key: key(name),
        value,
        expiry: SetExpiry::Never,
        condition: SetCondition::Always,
    })
}

/// An entry of one numbered command.
fn forward(machine: &mut LeaseMachine, at: u64, once: Once, command: Command) -> Outcome {
    let once = Some(once);
    let applied = machine.apply_entry(Timestamp::from_millis(at), &[Submission { once, command }]);
    assert_eq!(machine.check(), Ok(()));
    applied.unwrap().outcomes.remove(0)
}

fn withdraw(machine: &mut LeaseMachine, at: u64, once: Once, key: LeaseKey) -> Outcome {
    let applied = machine.apply(Timestamp::from_millis(at), &[Command::Withdraw { once, key }]);
    assert_eq!(machine.check(), Ok(()));
    applied.unwrap().outcomes.remove(0)
}

#[test]
fn a_copy_gets_the_first_answer_also_once_the_lease_is_another_s() {
    let mut lab = Lab::new();
    let taken = set_if_absent(key("L"), "a", 100);
    let first = forward(&mut lab.machine, 0, once(1, 1), taken.clone());
    lab.at(200, set_if_absent(key("L"), "b", 100));
    assert_eq!(forward(&mut lab.machine, 250, once(1, 1), taken.clone()), first);
    assert_eq!(lab.holder("L").as_deref(), Some("b"));
    let mut machine = reloaded(&lab.machine);
    assert_eq!(forward(&mut machine, 350, once(1, 1), taken), first);
    assert_eq!(
        machine.get(&key("L")),
        None,
        "b's has run out, and nothing was granted again"
    );
}

#[test]
fn a_late_copy_of_what_is_done_with_is_refused() {
    let mut machine = Lab::new().machine;
    forward(&mut machine, 0, once(1, 1), set_if_absent(key("L"), "a", 10));
    forward(&mut machine, 0, once(2, 2), Command::Delete { key: key("M") });
    let late = forward(&mut machine, 50, once(1, 1), set_if_absent(key("L"), "a", 10));
    assert_eq!(late, refused(Refusal::NotRemembered));
    assert_eq!(machine.get(&key("L")), None);
}

#[test]
fn a_later_life_of_a_node_counts_anew_and_copies_of_the_earlier_one_are_refused() {
    let mut machine = Lab::new().machine;
    forward(&mut machine, 0, once(7, 7), set_if_absent(key("L"), "a", 10));
    let mut next = once(1, 1);
    next.incarnation = 2;
    assert!(matches!(
        forward(&mut machine, 0, next, set_if_absent(key("M"), "a", 10)),
        Outcome::Stored { .. }
    ));
    let stale = refused(Refusal::StaleIncarnation { known: 2 });
    let late = || set_if_absent(key("N"), "a", 10);
    assert_eq!(forward(&mut machine, 0, once(8, 7), late()), stale);
    let mut machine = Lab::new().machine;
    let started = Command::NodeStarted {
        node: 2,
        incarnation: 2,
    };
    machine.apply(Timestamp::ZERO, &[started]).unwrap();
    assert_eq!(forward(&mut machine, 0, once(8, 7), late()), stale);
}

#[test]
fn what_nobody_waits_for_any_more_is_released_or_never_applied() {
    let mut machine = Lab::new().machine;
    let taken = forward(&mut machine, 0, once(1, 1), set_if_absent(key("L"), "a", 60_000));
    let token = granted(&taken);
    assert_eq!(
        withdraw(&mut machine, 1, once(1, 1), key("L")),
        Outcome::Released { token }
    );
    assert_eq!(machine.get(&key("L")), None);
    assert_eq!(withdraw(&mut machine, 1, once(1, 1), key("L")), Outcome::NotFound);
    // The copy that comes after its withdrawal.
    assert_eq!(withdraw(&mut machine, 2, once(2, 1), key("L")), Outcome::NotFound);
    let late = forward(&mut machine, 3, once(2, 1), set_if_absent(key("L"), "a", 60_000));
    assert_eq!(late, refused(Refusal::NotRemembered));
    assert_eq!(machine.get(&key("L")), None);
}

#[test]
fn a_withdrawal_never_ends_what_another_was_granted() {
    let mut lab = Lab::new();
    forward(&mut lab.machine, 0, once(1, 1), set_if_absent(key("L"), "a", 10));
    let theirs = lab.grant(20, set_if_absent(key("L"), "b", 60_000));
    let outcome = withdraw(&mut lab.machine, 30, once(1, 1), key("L"));
    assert_eq!(outcome, lost(EndReason::Expired));
    assert_eq!(lab.machine.get(&key("L")).unwrap().token, theirs);
}

#[test]
fn the_memory_of_answers_is_bounded_in_number_in_bytes_and_in_time_and_what_it_forgot_is_refused() {
    let mut machine = Lab::new().machine;
    let most = FORWARDED_ANSWERS_MAX as u64;
    for number in 0..=most {
        forward(
            &mut machine,
            0,
            once(number, 0),
            Command::Delete { key: key("L") },
        );
    }
    let again = |machine: &mut LeaseMachine, at, number| {
        forward(machine, at, once(number, 0), Command::Delete { key: key("L") })
    };
    assert_eq!(again(&mut machine, 0, 0), refused(Refusal::NotRemembered));
    assert_eq!(again(&mut machine, 0, 1), Outcome::NotFound);
    assert_eq!(again(&mut machine, FORWARDED_MEMORY_MS - 1, 1), Outcome::NotFound);
    // One entry forgets a bounded part of them.
    let later = Timestamp::from_millis(FORWARDED_MEMORY_MS);
    machine.apply(later, &[Command::Tick]).unwrap();
    assert_eq!(
        again(&mut machine, FORWARDED_MEMORY_MS, most),
        refused(Refusal::NotRemembered)
    );
    // Each answer carries the value before.
    let quarter = OwnerId::redis_value(vec![b'v'; FORWARDED_BYTES_MAX / 4]).unwrap();
    let mut machine = Lab::new().machine;
    for number in 0..6 {
        forward(&mut machine, 0, once(number, 0), set("L", quarter.clone()));
    }
    let refusal = forward(&mut machine, 0, once(1, 0), set("L", quarter.clone()));
    assert_eq!(refusal, refused(Refusal::NotRemembered));
    let answer = forward(&mut machine, 0, once(2, 0), set("L", quarter.clone()));
    assert!(matches!(answer, Outcome::Stored { previous: Some(previous), .. } if previous == quarter));
}

/// A number, and how much later than the delivery before it comes.
fn deliveries() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..6_u64, select(vec![0, 0, 1, 7, 40])), 1..30)
}

fn command() -> impl Strategy<Value = Command> {
    (
        any_key(),
        select(vec!["x", "yy"]),
        select(vec![5, 20, 1_000]),
        0..4,
    )
        .prop_map(|(key, value, for_ms, kind)| match kind {
            0 => Command::Delete { key },
            1 => Command::ReleaseByOwner {
                key,
                owner: owner(value),
            },
            _ => set_if_absent(key, value, for_ms),
        })
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn a_numbered_command_is_applied_once_however_often_it_comes(
        commands in prop::collection::vec(command(), 6),
        deliveries in deliveries(),
    ) {
        let (mut machine, mut plain) = (Lab::new().machine, Lab::new().machine);
        let mut answers: BTreeMap<u64, Outcome> = BTreeMap::new();
        let mut at = 0;
        for (number, later) in deliveries {
            at += later;
            let command = &commands[usize::try_from(number).unwrap()];
            let answer = forward(&mut machine, at, once(number, 0), command.clone());
            // The plain machine gets the first copy alone.
            let first = if answers.contains_key(&number) { Command::Tick } else { command.clone() };
            let expected = plain.apply(Timestamp::from_millis(at), &[first]).unwrap().outcomes.remove(0);
            let expected = answers.entry(number).or_insert(expected);
            prop_assert_eq!(&answer, expected);
            for key in all_keys() {
                prop_assert_eq!(machine.get(&key), plain.get(&key));
            }
            prop_assert_eq!(machine.stats(), plain.stats());
            machine = reloaded(&machine);
        }
    }
}
