//! Cases that bit the users of other systems, as far as they concern the machine. The numbers are those of the
//! project's list of cases.

use super::words::*;
use crate::machine::{Command, Effect, EndReason, Outcome};
use crate::types::Timestamp;

#[test]
fn c01_a_release_retried_after_a_lost_answer_cannot_end_a_newer_hold() {
    let mut lab = Lab::new();
    let first = lab.grant(0, ask("L", "A", 5_000));
    lab.at(1, release("L", first));
    let second = lab.grant(2, ask("L", "A", 5_000));
    assert_eq!(lab.at(3, release("L", first)), lost(EndReason::Released));
    assert_eq!(lab.machine.get(&key("L")).unwrap().token, second);
    assert!(matches!(lab.at(4, ask("L", "B", 5_000)), Outcome::Held(_)));
}

#[test]
fn c06_a_holder_that_was_forced_out_takes_the_name_again_under_a_larger_token() {
    let mut lab = Lab::new();
    let first = lab.grant(0, ask("L", "A", 3_000));
    lab.at(1, force("L", "stuck"));
    let second = lab.grant(2, ask("L", "A", 3_000));
    assert!(second > first);
    for at in (1_000..10_000).step_by(1_000) {
        assert!(matches!(
            lab.at(at, renew("L", second, 3_000)),
            Outcome::Renewed { .. }
        ));
    }
    assert_eq!(lab.at(10_000, renew("L", first, 3_000)), lost(forced("stuck")));
}

#[test]
fn c08_extending_an_expired_lease_does_not_revive_it() {
    let mut lab = Lab::new();
    let first = lab.grant(0, ask("L", "A", 5_000));
    assert_eq!(lab.at(5_001, renew("L", first, 5_000)), lost(EndReason::Expired));
    let second = lab.grant(5_002, ask("L", "A", 5_000));
    assert!(second > first);
}

/// A leader that dies leaves nothing in the machine: there is no command by which a new one could restart a time to
/// live. What its first entries carry moves no deadline, and cluster time goes on where it was.
#[test]
fn c17_a_change_of_leaders_moves_no_deadline() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "A", 10_000));
    for (at, node, incarnation) in [(6_000, 2, 1), (6_000, 2, 2), (9_500, 3, 1)] {
        // A new leader installs a snapshot, says that it has begun, and declares its predecessor lost.
        lab.machine = reloaded(&lab.machine);
        let lost = Command::NodeLost {
            node: node - 1,
            incarnation,
        };
        lab.entry(at, &[node_started(node, incarnation), lost, Command::Tick]);
        assert_eq!(lab.deadline("L"), Timestamp::from_millis(10_000));
    }
    lab.at(9_999, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("A"));
    lab.at(10_000, Command::Tick);
    assert_eq!(lab.holder("L"), None);
}

#[test]
fn c22_a_wait_that_ended_in_the_queue_is_never_granted() {
    let mut lab = Lab::new();
    lab.grant(0, ask("L", "A", 20_000));
    lab.at(1, ask("L", "B", 5_000).waiting(5_000, caller(1)));
    lab.at(2, ask("L", "C", 5_000).waiting(60_000, caller(2)));
    lab.at(5_001, Command::Tick);
    assert!(matches!(lab.told(caller(1)), Some(Outcome::Held(_))));
    lab.at(20_000, Command::Tick);
    assert_eq!(lab.holder("L").as_deref(), Some("C"));
    assert_eq!(lab.told(caller(1)), None);
}

#[test]
fn c23_a_waiter_whose_connection_or_wait_has_ended_never_wins_later() {
    for gone in [detach(caller(1)), cancel("L", "B", "r")] {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "A", 5_000));
        lab.at(1, ask("L", "B", 50).waiting(60_000, caller(1)).requested("r"));
        lab.at(2, gone.clone());
        let told_at_once = lab.told(caller(1)).is_some();
        lab.at(2_002, Command::Tick);
        let told_later = lab.told(caller(1)).is_some();
        assert!(told_at_once ^ told_later, "{gone:?}: told exactly once");
        lab.at(5_000, Command::Tick);
        assert_eq!(lab.told(caller(1)), None);
        assert_eq!(lab.machine.stats().leases, 0);
        assert_eq!(lab.machine.stats().waiters, 0);
    }
}

#[test]
fn c24_expiry_and_force_wake_the_waiter_in_their_own_entry() {
    for (at, command) in [(2_000, Command::Tick), (500, force("L", "dead"))] {
        let mut lab = Lab::new();
        lab.grant(0, ask("L", "A", 2_000));
        lab.at(1, ask("L", "B", 50).waiting(20_000, caller(1)));
        lab.at(at, command);
        assert_eq!(granted(lab.told(caller(1)).unwrap()), token(2));
    }
}

#[test]
fn c29_of_twelve_at_once_one_wins_and_its_retry_gets_the_same_token() {
    let mut lab = Lab::new();
    let attempt = |n: usize| ask("L", &format!("w{n}"), 5_000).requested("r");
    let commands: Vec<Command> = (0..12).map(|n| attempt(n).into()).collect();
    let outcomes = lab.entry(0, &commands);
    let won = |outcome: &&Outcome| matches!(outcome, Outcome::Granted { .. });
    assert_eq!(outcomes.iter().filter(won).count(), 1);
    let winner = outcomes
        .iter()
        .position(|outcome| matches!(outcome, Outcome::Granted { .. }))
        .unwrap();
    // Its answer was lost; everybody asks again.
    for n in 0..12 {
        let again = lab.at(10, attempt(n));
        if n == winner {
            assert_eq!(granted(&again), granted(&outcomes[winner]));
        } else {
            assert!(matches!(again, Outcome::Held(_)));
        }
    }
    assert_eq!(lab.machine.stats().last_token, 1);
}

#[test]
fn c31_a_renewal_whose_answer_was_lost_does_not_spoil_the_next_one() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("L", "A", 5_000));
    lab.at(1_000, renew("L", t, 5_000));
    for at in [1_000, 1_001, 4_000] {
        let renewed = Outcome::Renewed {
            remaining_ms: Some(5_000),
        };
        assert_eq!(lab.at(at, renew("L", t, 5_000)), renewed);
    }
}

#[test]
fn c33_tokens_outlive_the_records_that_carried_them() {
    let mut lab = Lab::new();
    let mut last = None;
    for at in 0..10 {
        let t = lab.grant(at, ask("L", "A", 5_000));
        assert!(Some(t) > last);
        lab.at(at, release("L", t));
        last = Some(t);
    }
    lab.at(100_000, Command::Tick);
    let stats = lab.machine.stats();
    assert_eq!((stats.leases, stats.endings, stats.bytes), (0, 0, 0));
    assert!(Some(lab.grant(100_001, ask("L", "A", 5_000))) > last);
}

/// C39: one long hold with many tries of others, and many names that come and go, leave nothing behind.
#[test]
fn c39_memory_is_flat_after_many_tries_and_many_names() {
    let mut lab = Lab::new();
    let t = lab.grant(0, ask("held", "A", 1_000_000));
    let mut full = None;
    for round in 0..400_u64 {
        let at = round * 1_000;
        let mut commands: Vec<Command> = (0..50)
            .flat_map(|n| {
                let name = format!("idle-{round:03}-{n}");
                let wait = ask("held", "B", 5).waiting(10, caller(round * 1_000 + n));
                [
                    ask(&name, "B", 5).requested("r").into(),
                    wait.requested(&format!("r{n}")).into(),
                    ask("held", "C", 5).into(),
                ]
            })
            .collect();
        commands.push(renew("held", t, 1_000_000));
        lab.machine.apply(Timestamp::from_millis(at), &commands).unwrap();
        let after = lab
            .machine
            .apply(Timestamp::from_millis(at + 500), &[Command::Tick])
            .unwrap();
        let ended = |effect: &&Effect| matches!(effect, Effect::Ended { .. });
        assert_eq!(after.effects.iter().filter(ended).count(), 50);
        let stats = lab.machine.stats();
        assert_eq!((stats.leases, stats.waiters), (1, 0));
        // Once a minute of memory is full it only turns over, and no slot is ever added.
        let size = (
            stats.requests,
            stats.endings,
            stats.bytes,
            lab.machine.leases.records().capacity(),
        );
        if round == 70 {
            full = Some(size);
        }
        assert!(full.is_none_or(|full| full == size), "{size:?} in round {round}");
    }
    assert!(full.is_some());
    assert_eq!(lab.machine.check(), Ok(()));
}
