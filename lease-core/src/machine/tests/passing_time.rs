//! What time alone does: the sweep, its bound, and forgetting.

use super::words::*;
use crate::limits::{ENDINGS_BYTES_MAX, PRUNE_RECORDS_MAX, SWEEP_RECORDS_MAX};
use crate::machine::{Command, Effect, EndReason, LeaseKey, Limits, Outcome, SetCondition};
use crate::types::{Database, LeaseName, Timestamp};

fn ends_in(lab: &Lab) -> usize {
    let ends = |effect: &&Effect| matches!(effect, Effect::Ended { .. });
    lab.effects.iter().filter(ends).count()
}

/// A lab in which so many leases end at 50.
fn many_leases(count: usize) -> Lab {
    let mut lab = Lab::new();
    let commands: Vec<Command> = (0..count)
        .map(|n| ask(&format!("L{n}"), "a", 50).into())
        .collect();
    lab.entry(0, &commands);
    lab
}

#[test]
fn the_sweep_is_bounded_and_the_rest_is_due_at_once() {
    let mut lab = many_leases(SWEEP_RECORDS_MAX + 10);
    lab.at(60, Command::Tick);
    assert_eq!(ends_in(&lab), SWEEP_RECORDS_MAX);
    assert_eq!(lab.machine.next_due(), Some(Timestamp::from_millis(50)));
    // What is left has ended for everybody who looks at it.
    let late = lab.at(
        60,
        renew(&format!("L{}", SWEEP_RECORDS_MAX + 9), token(1_034), 50),
    );
    assert_eq!(late, lost(EndReason::Expired));
    assert_eq!(ends_in(&lab), 10, "the next entry ends the rest");
    assert_eq!(lab.machine.next_due(), None);
}

#[test]
fn the_sweep_ends_waits_before_leases_and_both_in_the_order_of_their_deadlines() {
    let mut lab = Lab::new();
    for (number, (name, ttl_ms)) in [("A", 30), ("B", 10), ("C", 20)].into_iter().enumerate() {
        lab.grant(0, ask(name, "a", ttl_ms));
        let wait = 29 - number as u64;
        lab.at(0, ask(name, "b", 5).waiting(wait, caller(number as u64)));
    }
    lab.at(30, Command::Tick);
    let seen: Vec<String> = lab
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Woken { attachment, .. } => format!("woken {}", attachment.number),
            Effect::Ended { key, .. } => format!("ended {}", key.name),
            Effect::Granted { key, .. } => format!("granted {}", key.name),
            Effect::Published { channel, .. } => format!("published {channel}"),
        })
        .collect();
    let expected = ["woken 2", "woken 1", "woken 0", "ended B", "ended C", "ended A"];
    assert_eq!(seen, expected);
}

#[test]
fn next_due_is_the_earliest_deadline_of_leases_and_waits() {
    let mut lab = Lab::new();
    assert_eq!(lab.machine.next_due(), None);
    let due = |lab: &Lab| lab.machine.next_due().map(Timestamp::as_millis);
    let t = lab.grant(0, ask("A", "a", 50));
    assert_eq!(due(&lab), Some(50));
    lab.at(0, ask("A", "b", 5).waiting(20, caller(1)));
    assert_eq!(due(&lab), Some(20));
    lab.at(0, detach(caller(1)));
    assert_eq!(due(&lab), Some(50));
    lab.at(0, renew("A", t, 90));
    assert_eq!(due(&lab), Some(90));
    lab.at(0, persist("A"));
    assert_eq!(due(&lab), None);
}

#[test]
fn a_touch_ends_one_name_and_does_nothing_else() {
    let mut lab = many_leases(SWEEP_RECORDS_MAX + 2);
    let last = format!("L{}", SWEEP_RECORDS_MAX + 1);
    assert_eq!(lab.at(60, Command::Touch { key: key(&last) }), Outcome::Done);
    assert!(matches!(&lab.effects[0], Effect::Ended { key: ended, .. } if *ended == key(&last)));
    assert_eq!(lab.at(61, Command::Touch { key: key("none") }), Outcome::Done);
}

#[test]
fn a_tick_that_ends_nothing_says_nothing() {
    let mut lab = many_leases(3);
    assert_eq!(lab.at(49, Command::Tick), Outcome::Done);
    assert_eq!(lab.effects, []);
}

#[test]
fn forgetting_is_bounded_for_one_entry_and_goes_on_with_the_next() {
    let mut lab = Lab::new();
    let memory = Limits {
        request_memory_ms: 10,
        ..Limits::default()
    };
    lab.at(0, Command::SetLimits(memory));
    let count = PRUNE_RECORDS_MAX + 5;
    for n in 0..count {
        let name = format!("L{n}");
        lab.machine
            .apply(
                Timestamp::ZERO,
                &[ask(&name, "a", 5).requested("r").into(), delete(&name)],
            )
            .unwrap();
    }
    assert_eq!(lab.machine.stats().requests, count as u64);
    lab.at(10, Command::Tick);
    assert_eq!(
        lab.machine.stats().requests,
        count as u64,
        "the last millisecond counts"
    );
    lab.at(11, Command::Tick);
    assert_eq!(
        (lab.machine.stats().requests, lab.machine.stats().endings),
        (5, 5)
    );
    lab.at(11, Command::Tick);
    assert_eq!(
        (lab.machine.stats().requests, lab.machine.stats().endings),
        (0, 0)
    );
}

#[test]
fn the_memory_of_endings_drops_its_oldest_and_then_says_unknown() {
    let mut lab = Lab::new();
    let few = Limits {
        endings_max: 2,
        ..Limits::default()
    };
    lab.at(0, Command::SetLimits(few));
    for name in ["A", "B", "C"] {
        lab.at(1, set(name, "a", px(50), SetCondition::Always));
        lab.at(1, delete(name));
        assert!(lab.machine.stats().endings <= 2, "never above the bound");
    }
    assert_eq!(lab.at(2, renew("A", token(1), 5)), lost(EndReason::Unknown));
    assert_eq!(lab.at(2, renew("B", token(2), 5)), lost(EndReason::Overridden));
    assert_eq!(lab.at(2, renew("C", token(3), 5)), lost(EndReason::Overridden));
}

#[test]
fn the_memory_of_endings_is_bounded_in_bytes() {
    let mut lab = Lab::new();
    let megabyte = 1_024 * 1_024;
    let fits = ENDINGS_BYTES_MAX / megabyte;
    let big = |n: usize| {
        let mut name = vec![b'x'; megabyte];
        name[..8].copy_from_slice(&(n as u64).to_le_bytes());
        LeaseKey::new(Database::ZERO, LeaseName::redis_key(name).unwrap())
    };
    for n in 0..fits + 3 {
        let key = big(n);
        let set = Command::Set(crate::machine::Set {
            key: key.clone(),
            value: owner("a"),
            expiry: px(50),
            condition: SetCondition::Always,
        });
        lab.machine
            .apply(Timestamp::ZERO, &[set, Command::Delete { key }])
            .unwrap();
    }
    assert_eq!(lab.machine.stats().endings, fits as u64);
    assert_eq!(lab.machine.check(), Ok(()));
}

#[test]
fn a_list_goes_through_one_database_page_by_page() {
    let mut lab = many_leases(150);
    lab.grant(0, ask("L9", "other", 50).in_database(1));
    lab.grant(0, ask("M", "a", 50));
    let (mut names, mut cursor) = (Vec::new(), 0);
    loop {
        let page = lab.machine.list(Database::ZERO, b"L9", cursor, 2);
        assert!(page.leases.len() <= 2);
        names.extend(page.leases.into_iter().map(|lease| lease.name.to_string()));
        cursor = page.next_cursor;
        if cursor == 0 {
            break;
        }
    }
    names.sort();
    let expected = [
        "L9", "L90", "L91", "L92", "L93", "L94", "L95", "L96", "L97", "L98", "L99",
    ];
    assert_eq!(names, expected);
    let beyond = lab.machine.list(Database::ZERO, b"", u32::MAX, 9);
    assert_eq!((beyond.next_cursor, beyond.leases.len()), (0, 0));
    let none_asked = lab.machine.list(Database::ZERO, b"", 3, 0);
    assert!(none_asked.next_cursor > 3, "each page gets on");
}
