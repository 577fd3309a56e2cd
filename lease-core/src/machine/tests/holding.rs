//! One lease: taken, renewed, released, expired, forced.

use super::words::*;
use crate::limits::RENEW_MANY_MAX;
use crate::machine::{Command, Effect, EndReason, Holder, Outcome, Refusal, ReleaseCause, Renewal};
use crate::types::{Metadata, Timestamp};

#[test]
fn a_free_name_is_granted_for_the_whole_ttl() {
    let mut lab = Lab::new();
    let outcome = lab.at(100, ask("L", "a", 50).with_metadata("host-7"));
    assert_eq!(
        outcome,
        Outcome::Granted {
            token: token(1),
            remaining_ms: Some(50),
            waited_ms: 0,
        }
    );
    let lease = lab.machine.get(&key("L")).unwrap();
    assert_eq!((lease.owner, lease.token), (owner("a"), token(1)));
    assert_eq!(lease.granted_at, Timestamp::from_millis(100));
    assert_eq!(lease.deadline, Timestamp::from_millis(150));
    assert_eq!(lease.metadata, Some(Metadata::new("host-7").unwrap()));
}

#[test]
fn who_asks_for_a_held_name_is_told_everything_about_the_holder() {
    let mut lab = Lab::new();
    lab.grant(100, ask("L", "a", 50));
    lab.at(110, ask("L", "c", 50).waiting(1_000, caller(1)));
    let held = lab.at(120, ask("L", "b", 50));
    assert_eq!(
        held,
        Outcome::Held(Holder {
            token: token(1),
            owner: owner("a"),
            remaining_ms: Some(30),
            held_for_ms: 20,
            waiters: 1,
        })
    );
}

#[test]
fn the_holder_itself_is_told_held_without_a_request_id() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    assert!(matches!(lab.at(1, ask("L", "a", 50)), Outcome::Held(_)));
}

#[test]
fn a_lease_ends_at_its_deadline_and_not_before() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(49, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("a"));
    assert!(matches!(lab.at(49, ask("L", "b", 50)), Outcome::Held(_)));
    lab.at(50, Command::Tick);
    assert_eq!(lab.holder("L"), None);
    let ended = Effect::Ended {
        key: key("L"),
        owner: owner("a"),
        token: token(1),
        at: Timestamp::from_millis(50),
        reason: EndReason::Expired,
    };
    assert_eq!(lab.effects, [ended]);
}

#[test]
fn a_lease_counts_from_its_last_renewal() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    let renewed = lab.at(40, renew("L", t, 70));
    assert_eq!(
        renewed,
        Outcome::Renewed {
            remaining_ms: Some(70)
        }
    );
    assert_eq!(lab.deadline("L"), Timestamp::from_millis(110));
    lab.at(109, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("a"));
    lab.at(110, Command::Tick);
    assert_eq!(lab.holder("L"), None);
}

#[test]
fn a_renewal_without_a_ttl_takes_the_last_one_given() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    let again = Renewal {
        ttl: None,
        ..renewal("L", t, 1)
    };
    let remaining = |ms| Outcome::Renewed {
        remaining_ms: Some(ms),
    };
    assert_eq!(lab.at(10, Command::Renew(again.clone())), remaining(50));
    assert_eq!(lab.at(20, renew("L", t, 30)), remaining(30));
    assert_eq!(lab.at(25, Command::Renew(again)), remaining(30));
}

#[test]
fn a_late_renewal_is_refused_also_when_nobody_else_holds() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    // In one entry with nothing else: not even a tick has looked at the name before.
    assert_eq!(lab.at(50, renew("L", t, 50)), lost(EndReason::Expired));
    assert_eq!(lab.holder("L"), None);
    assert_eq!(lab.at(51, renew("L", t, 50)), lost(EndReason::Expired));
}

#[test]
fn touching_a_name_ends_it_and_grants_its_head_before_the_command() {
    let looks: [Command; 9] = [
        renew("L", token(1), 50),
        release("L", token(1)),
        release_by_owner("L", "a"),
        pexpire("L", 7),
        ask("L", "c", 50).into(),
        set("L", "a", px(50), crate::machine::SetCondition::IfPresent),
        cancel("L", "a", "r"),
        Command::RenewMany(vec![renewal("L", token(1), 50)]),
        Command::Touch { key: key("L") },
    ];
    for command in looks {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "a", 50).requested("r"));
        lab.at(1, ask("L", "b", 50).waiting(1_000, caller(1)));
        lab.at(50, command.clone());
        let [
            Effect::Ended { reason, .. },
            Effect::Granted { owner: next, .. },
            ..,
        ] = lab.effects.as_slice()
        else {
            panic!("{command:?} gave {:?}", lab.effects);
        };
        assert_eq!((reason, next), (&EndReason::Expired, &owner("b")), "{command:?}");
        let told = lab.told(caller(1));
        assert!(matches!(told, Some(Outcome::Granted { .. })), "{command:?}");
    }
}

#[test]
fn forcing_and_deleting_a_name_that_is_due_hits_the_head_that_was_granted() {
    for command in [force("L", "stuck"), delete("L")] {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "a", 50));
        lab.at(1, ask("L", "b", 50).waiting(1_000, caller(1)));
        assert_eq!(lab.at(50, command), Outcome::Released { token: token(2) });
    }
}

#[test]
fn a_release_ends_the_grant_it_names_and_no_other() {
    let mut lab = Lab::new();
    let first = lab.grant(0, ask("L", "a", 50));
    assert_eq!(lab.at(1, release("L", first)), Outcome::Released { token: first });
    let second = lab.grant(2, ask("L", "b", 50));
    assert_eq!(lab.at(3, release("L", first)), lost(EndReason::Released));
    assert_eq!(lab.holder("L").as_deref(), Some("b"));
    assert_eq!(lab.at(4, release("other", second)), lost(EndReason::Unknown));
}

#[test]
fn a_released_token_is_never_good_for_anything_again() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    lab.at(1, release("L", t));
    assert_eq!(lab.at(2, renew("L", t, 50)), lost(EndReason::Released));
    assert_eq!(lab.at(2, release("L", t)), lost(EndReason::Released));
    assert_eq!(lab.at(2, release_by_owner("L", "a")), Outcome::NotFound);
}

#[test]
fn every_loss_says_why() {
    let ends: [(Command, EndReason); 6] = [
        (Command::Tick, EndReason::Expired),
        (force("L", "host is down"), forced("host is down")),
        (delete("L"), EndReason::Overridden),
        (
            set("L", "b", px(9), crate::machine::SetCondition::Always),
            EndReason::Superseded,
        ),
        (
            Command::Release {
                key: key("L"),
                token: token(1),
                cause: ReleaseCause::Orphaned,
            },
            EndReason::Orphaned,
        ),
        (cancel("L", "a", "r"), EndReason::Cancelled),
    ];
    for (command, reason) in ends {
        let mut lab = Lab::new();
        let t = lab.grant(0, ask("L", "a", 50).requested("r"));
        let at = if command == Command::Tick { 50 } else { 10 };
        lab.at(at, command);
        assert_eq!(lab.at(51, renew("L", t, 50)), lost(reason.clone()));
        let retry = lab.at(52, ask("L", "a", 50).requested("r"));
        let token = Some(t);
        assert_eq!(retry, Outcome::Ended { token, reason });
    }
    let mut lab = Lab::new();
    assert_eq!(lab.at(0, renew("L", token(77), 50)), lost(EndReason::Unknown));
}

#[test]
fn compare_and_delete_ends_only_its_own_value() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    assert_eq!(lab.at(1, release_by_owner("L", "b")), Outcome::NotFound);
    assert_eq!(
        lab.at(2, release_by_owner("L", "a")),
        Outcome::Released { token: t }
    );
    assert_eq!(lab.at(3, renew("L", t, 9)), lost(EndReason::Released));
}

#[test]
fn forcing_a_free_name_does_nothing() {
    let mut lab = Lab::new();
    assert_eq!(lab.at(0, force("L", "")), Outcome::NotFound);
    assert_eq!(lab.effects, []);
}

#[test]
fn renewals_of_many_stand_each_for_themselves() {
    let mut lab = Lab::new();
    let a = lab.grant(0, ask("A", "w", 50));
    let b = lab.grant(0, ask("B", "w", 20));
    let c = lab.grant(0, ask("C", "w", 50));
    let many = Command::RenewMany(vec![
        renewal("A", a, 60),
        renewal("B", b, 60),
        renewal("C", c, 80),
        renewal("A", c, 60),
    ]);
    let renewed = |ms| Outcome::Renewed {
        remaining_ms: Some(ms),
    };
    let expected = vec![
        renewed(60),
        lost(EndReason::Expired),
        renewed(80),
        lost(EndReason::Unknown),
    ];
    assert_eq!(lab.at(30, many), Outcome::RenewedMany(expected));
}

#[test]
fn renewals_of_too_many_are_refused_before_anything_is_done() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "a", 50));
    let most = vec![renewal("L", t, 90); RENEW_MANY_MAX];
    let mut more = most.clone();
    more.push(renewal("L", t, 90));
    let max = RENEW_MANY_MAX as u64;
    let refusal = Refusal::TooManyRenewals { max };
    assert_eq!(lab.at(1, Command::RenewMany(more)), refused(refusal));
    assert_eq!(lab.deadline("L"), Timestamp::from_millis(50));
    let Outcome::RenewedMany(all) = lab.at(2, Command::RenewMany(most)) else {
        panic!("the most that is allowed is refused");
    };
    assert_eq!(all.len(), RENEW_MANY_MAX);
}

#[test]
fn the_same_name_in_two_databases_is_two_leases() {
    let mut lab = Lab::new();
    let zero = lab.grant(0, ask("L", "a", 50));
    let one = lab.grant(0, ask("L", "b", 50).in_database(1));
    assert!(one > zero);
    lab.at(1, release("L", zero));
    assert!(matches!(
        lab.at(2, ask("L", "c", 50).in_database(1)),
        Outcome::Held(_)
    ));
}

#[test]
fn huge_ttls_saturate_and_never_wrap() {
    let mut lab = Lab::new();
    let most = i64::MAX as u64;
    let t = lab.grant(5, ask("L", "a", most));
    assert_eq!(lab.deadline("L"), Timestamp::from_millis(most + 5));
    lab.at(most, renew("L", t, most));
    assert_eq!(lab.deadline("L"), Timestamp::LAST, "the last point before never");
    assert_eq!(
        lab.at(most + 4, renew("L", t, most)),
        Outcome::Renewed {
            remaining_ms: Some(u64::MAX - 1 - (most + 4))
        },
        "what remains is told as it is, not as it was asked for"
    );
    lab.at(u64::MAX, Command::Tick);
    assert_eq!(lab.machine.now(), Timestamp::LAST, "the point that never comes");
    assert_eq!(lab.holder("L"), None);
}

#[test]
fn a_lease_without_a_deadline_outlasts_the_end_of_time() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "a", 50));
    lab.at(1, persist("L"));
    lab.at(u64::MAX, ask("L", "b", 50));
    assert_eq!(lab.holder("L").as_deref(), Some("a"));
}

#[test]
fn time_never_falls() {
    let mut lab = Lab::new();
    lab.grant(100, ask("L", "a", 50));
    lab.at(30, Command::Tick);
    assert_eq!(lab.machine.now(), Timestamp::from_millis(100));
    let t = lab.grant(20, ask("M", "a", 50));
    assert_eq!(lab.deadline("M"), Timestamp::from_millis(150));
    lab.at(10, renew("M", t, 70));
    assert_eq!(lab.deadline("M"), Timestamp::from_millis(170));
}
