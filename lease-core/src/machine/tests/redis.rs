//! The Redis face: keys without a deadline, `SET` and its conditions, `PEXPIRE` and `PERSIST`.

use super::words::*;
use crate::machine::{Command, Effect, EndReason, Outcome, SetCondition, SetExpiry, TtlCondition};
use crate::types::Timestamp;

fn stored(number: u64, previous: Option<&str>) -> Outcome {
    Outcome::Stored {
        token: token(number),
        previous: previous.map(owner),
    }
}

fn not_stored(current: Option<&str>) -> Outcome {
    Outcome::NotStored {
        current: current.map(owner),
    }
}

fn if_equal(value: &str) -> SetCondition {
    SetCondition::IfEqual(owner(value))
}

fn if_not_equal(value: &str) -> SetCondition {
    SetCondition::IfNotEqual(owner(value))
}

#[test]
fn set_nx_px_is_an_acquire() {
    let mut lab = Lab::new();
    let nx = || set("L", "a", px(50), SetCondition::IfAbsent);
    assert_eq!(lab.at(0, nx()), stored(1, None));
    assert_eq!(lab.at(49, nx()), not_stored(Some("a")), "also by the same value");
    assert_eq!(
        lab.at(50, set("L", "b", px(50), SetCondition::IfAbsent)),
        stored(2, None)
    );
    assert_eq!(lab.at(51, renew("L", token(1), 50)), lost(EndReason::Expired));
    assert!(matches!(
        lab.at(51, renew("L", token(2), 50)),
        Outcome::Renewed { .. }
    ));
}

#[test]
fn xx_and_ifeq_with_the_stored_value_are_a_renewal_with_the_same_token() {
    for condition in [SetCondition::IfPresent, if_equal("a")] {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "a", 50).with_metadata("m").requested("r"));
        let outcome = lab.at(40, set("L", "a", px(50), condition));
        assert_eq!(outcome, stored(1, Some("a")));
        assert_eq!(lab.deadline("L"), Timestamp::from_millis(90));
        assert_eq!(lab.effects, []);
        let lease = lab.machine.get(&key("L")).unwrap();
        assert_eq!(lease.granted_at, Timestamp::ZERO);
        assert!(lease.metadata.is_some(), "what the holder shows stays");
        let retry = lab.at(41, ask("L", "a", 50).requested("r"));
        assert_eq!(granted(&retry), token(1), "and so does its request");
    }
}

#[test]
fn xx_and_ifeq_at_the_deadline_store_nothing() {
    for condition in [SetCondition::IfPresent, if_equal("a")] {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "a", 50));
        assert_eq!(lab.at(50, set("L", "a", px(50), condition)), not_stored(None));
        assert_eq!(lab.holder("L"), None);
    }
}

#[test]
fn bare_set_supersedes_with_a_new_token_also_with_the_same_value() {
    for value in ["a", "b"] {
        let mut lab = Lab::new();
        let t = lab.grant(0, ask("L", "a", 50).with_metadata("m"));
        assert_eq!(
            lab.at(1, set("L", value, px(9), SetCondition::Always)),
            stored(2, Some("a"))
        );
        let [Effect::Ended { reason, .. }, Effect::Granted { .. }] = lab.effects.as_slice() else {
            panic!("{:?}", lab.effects);
        };
        assert_eq!(reason, &EndReason::Superseded);
        assert_eq!(lab.at(2, renew("L", t, 50)), lost(EndReason::Superseded));
        assert_eq!(lab.machine.get(&key("L")).unwrap().metadata, None);
    }
}

#[test]
fn xx_and_ifeq_with_another_value_supersede() {
    for condition in [SetCondition::IfPresent, if_equal("a")] {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "a", 50));
        assert_eq!(lab.at(1, set("L", "b", px(9), condition)), stored(2, Some("a")));
    }
}

#[test]
fn conditions_hold_or_nothing_is_stored() {
    let mut lab = Lab::new();
    let absent = [SetCondition::IfPresent, if_equal("a")];
    for condition in absent {
        assert_eq!(lab.at(0, set("L", "a", px(50), condition)), not_stored(None));
    }
    assert_eq!(
        lab.at(0, set("L", "a", px(50), if_not_equal("a"))),
        stored(1, None)
    );
    for condition in [SetCondition::IfAbsent, if_equal("b"), if_not_equal("a")] {
        assert_eq!(lab.at(1, set("L", "c", px(9), condition)), not_stored(Some("a")));
    }
    assert_eq!(
        lab.at(2, set("L", "c", px(9), if_not_equal("b"))),
        stored(2, Some("a"))
    );
}

#[test]
fn a_key_without_a_deadline_stays_until_somebody_ends_it() {
    let mut lab = Lab::new();
    lab.at(0, set("L", "a", SetExpiry::Never, SetCondition::IfAbsent));
    assert_eq!(lab.machine.next_due(), None);
    lab.at(u64::MAX / 2, Command::Tick);
    let Outcome::Held(holder) = lab.at(u64::MAX / 2, ask("L", "b", 5)) else {
        panic!("it is gone");
    };
    assert_eq!(holder.remaining_ms, None);
    assert_eq!(
        lab.at(u64::MAX / 2, renew("L", token(1), 50)),
        Outcome::Renewed {
            remaining_ms: Some(50)
        }
    );
}

#[test]
fn keepttl_keeps_the_deadline_for_the_new_value() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(10, set("L", "b", SetExpiry::Keep, SetCondition::Always));
    assert_eq!(lab.deadline("L"), Timestamp::from_millis(50));
    lab.at(11, set("M", "b", SetExpiry::Keep, SetCondition::Always));
    assert_eq!(lab.deadline("M"), Timestamp::NEVER, "there was none to keep");
}

#[test]
fn a_set_without_an_expiry_takes_the_deadline_away() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(1, set("L", "a", SetExpiry::Never, SetCondition::IfPresent));
    assert_eq!(lab.deadline("L"), Timestamp::NEVER);
    assert_eq!(lab.machine.next_due(), None);
}

#[test]
fn pexpire_and_persist_move_the_deadline_and_keep_the_token() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    assert_eq!(lab.at(10, pexpire("L", 100)), Outcome::TtlSet);
    assert_eq!(lab.deadline("L"), Timestamp::from_millis(110));
    assert_eq!(lab.at(11, persist("L")), Outcome::TtlSet);
    assert_eq!(lab.deadline("L"), Timestamp::NEVER);
    assert_eq!(
        lab.at(12, persist("L")),
        Outcome::Unchanged,
        "there is no deadline to take away"
    );
    assert_eq!(lab.at(13, pexpire("L", 5)), Outcome::TtlSet);
    lab.at(14, renew("L", t, 50));
    assert_eq!(lab.deadline("L"), Timestamp::from_millis(64));
    assert_eq!(lab.at(64, pexpire("L", 5)), Outcome::NotFound);
    assert_eq!(lab.at(64, pexpire("other", 5)), Outcome::NotFound);
}

#[test]
fn the_conditions_of_pexpire_are_those_of_redis() {
    use TtlCondition::{Always, IfEarlier, IfExpiring, IfLater, IfPersistent};
    let on_expiring = [
        (Always, 10, true),
        (IfPersistent, 10, false),
        (IfExpiring, 10, true),
        (IfLater, 51, true),
        (IfLater, 50, false),
        (IfEarlier, 49, true),
        (IfEarlier, 50, false),
    ];
    let on_persistent = [
        (Always, 10, true),
        (IfPersistent, 10, true),
        (IfExpiring, 10, false),
        (IfLater, 10, false),
        (IfEarlier, 10, true),
    ];
    let rows = on_expiring.map(|row| (px(50), row)).into_iter();
    let rows = rows.chain(on_persistent.map(|row| (SetExpiry::Never, row)));
    for (expiry, (condition, ttl_ms, sets)) in rows {
        let mut lab = Lab::new();
        lab.at(0, set("L", "a", expiry, SetCondition::IfAbsent));
        let before = lab.deadline("L");
        let outcome = lab.at(0, set_ttl("L", Some(ttl_ms), condition));
        let (expected, deadline) = if sets {
            (Outcome::TtlSet, Timestamp::from_millis(ttl_ms))
        } else {
            (Outcome::Unchanged, before)
        };
        assert_eq!(outcome, expected, "{condition:?} {ttl_ms} on {expiry:?}");
        assert_eq!(
            lab.deadline("L"),
            deadline,
            "{condition:?} {ttl_ms} on {expiry:?}"
        );
    }
}

#[test]
fn a_lease_that_somebody_shortened_ends_as_overridden() {
    let reason_after = |commands: &[Command]| {
        let mut lab = Lab::new();
        let t = lab.grant(0, ask("L", "a", 50));
        for command in commands {
            lab.at(1, command.clone());
        }
        lab.at(1_000, Command::Tick);
        lab.at(1_000, renew("L", t, 5))
    };
    let overridden = lost(EndReason::Overridden);
    let expired = lost(EndReason::Expired);
    assert_eq!(reason_after(&[pexpire("L", 5)]), overridden);
    assert_eq!(reason_after(&[persist("L"), pexpire("L", 500)]), overridden);
    assert_eq!(
        reason_after(&[pexpire("L", 500)]),
        expired,
        "a longer one is what a lock library extends by"
    );
    assert_eq!(
        reason_after(&[pexpire("L", 5), renew("L", token(1), 50)]),
        expired,
        "the renewal's word counts again"
    );
    let keep = set("L", "a", SetExpiry::Keep, SetCondition::IfPresent);
    assert_eq!(
        reason_after(&[pexpire("L", 5), keep]),
        overridden,
        "what is kept stays the word of whoever set it"
    );
    let again = set("L", "a", px(50), SetCondition::IfPresent);
    assert_eq!(reason_after(&[pexpire("L", 5), again]), expired);
}

#[test]
fn keys_and_values_may_be_empty() {
    let mut lab = Lab::new();
    let empty = crate::types::LeaseName::redis_key("").unwrap();
    let key = crate::machine::LeaseKey::new(crate::types::Database::ZERO, empty);
    let command = Command::Set(crate::machine::Set {
        key: key.clone(),
        value: crate::types::OwnerId::redis_value("").unwrap(),
        expiry: px(50),
        condition: SetCondition::IfAbsent,
    });
    assert_eq!(lab.at(0, command), stored_empty());
    assert!(lab.machine.get(&key).is_some());
    lab.at(50, Command::Tick);
    assert_eq!(lab.machine.stats().leases, 0);
}

fn stored_empty() -> Outcome {
    Outcome::Stored {
        token: token(1),
        previous: None,
    }
}
