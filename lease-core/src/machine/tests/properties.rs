//! What must hold for every history.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::model::Model;
use super::steps::{Step, all_keys, beginning, command, steps};
use super::words::{reloaded, snapshot_of};
use crate::machine::{Applied, Command, Effect, LeaseMachine, Outcome};
use crate::types::{Attachment, Timestamp};

/// So many cases; `PROPTEST_CASES` (256 if unset) makes it more or fewer in proportion.
pub(super) fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: usual.saturating_mul(config.cases) / 256,
        ..config
    }
}

fn apply(machine: &mut LeaseMachine, at: u64, commands: &[Command]) -> Applied {
    machine.apply(Timestamp::from_millis(at), commands).unwrap()
}

/// A machine that has seen `beginning` and `steps`, and each entry as it was applied.
pub(super) fn run(beginning: &[Command], steps: &[Step]) -> (LeaseMachine, Vec<(u64, Vec<Command>)>) {
    let mut machine = LeaseMachine::new();
    let mut entries = vec![(0, beginning.to_vec())];
    apply(&mut machine, 0, beginning);
    for step in steps {
        let entry = entry_after(&machine, step);
        apply(&mut machine, entry.0, &entry.1);
        entries.push(entry);
    }
    (machine, entries)
}

fn entry_after(machine: &LeaseMachine, step: &Step) -> (u64, Vec<Command>) {
    let commands = step.commands(machine.stats().last_token);
    (step.stamp(machine.now().as_millis()), commands)
}

fn agree(machine: &LeaseMachine, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(machine.next_due(), model.next_due());
    prop_assert_eq!(machine.stats(), model.stats());
    for key in all_keys() {
        prop_assert_eq!(machine.get(&key), model.get(&key));
    }
    prop_assert_eq!(machine.check(), Ok(()));
    Ok(())
}

/// Who was answered `Queued` and is told nothing yet, from the answers alone.
fn note_parked(parked: &mut BTreeSet<Attachment>, command: &Command, applied: &Applied) {
    let queued = match (command, applied.outcomes.first()) {
        (Command::Acquire(acquire), Some(Outcome::Queued)) => acquire.wait.map(|wait| wait.attachment),
        _ => None,
    };
    let mut queued_again = queued;
    for effect in &applied.effects {
        let Effect::Woken { attachment, .. } = effect else {
            continue;
        };
        // One that had waited before, or else the one that has just queued.
        let waited = parked.remove(attachment) || queued_again.take() == Some(*attachment);
        assert!(waited, "{attachment} was told though it did not wait");
    }
    parked.extend(queued_again);
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn the_machine_and_the_naive_model_agree_in_all_that_shows(
        beginning in beginning(),
        steps in steps(40),
    ) {
        let (mut machine, mut model) = (LeaseMachine::new(), Model::new());
        apply(&mut machine, 0, &beginning);
        model.apply(Timestamp::ZERO, &beginning);
        for step in &steps {
            let (at, commands) = entry_after(&machine, step);
            let applied = apply(&mut machine, at, &commands);
            let expected = model.apply(Timestamp::from_millis(at), &commands);
            prop_assert_eq!(&applied.outcomes, &expected.outcomes, "of {:?} at {}", commands, at);
            prop_assert_eq!(&applied.effects, &expected.effects, "of {:?} at {}", commands, at);
            agree(&machine, &model)?;
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn everybody_who_queues_is_told_the_end_of_it_exactly_once(
        steps in prop::collection::vec((0..40_i64, command()), 1..60),
    ) {
        let (mut machine, mut model) = (LeaseMachine::new(), Model::new());
        let mut parked = BTreeSet::new();
        let floor = [Command::RaiseTokenFloor { floor: 0 }];
        apply(&mut machine, 0, &floor);
        model.apply(Timestamp::ZERO, &floor);
        for (later_ms, command) in steps {
            let step = Step { later_ms, commands: vec![command] };
            let (at, commands) = entry_after(&machine, &step);
            let applied = apply(&mut machine, at, &commands);
            model.apply(Timestamp::from_millis(at), &commands);
            note_parked(&mut parked, &commands[0], &applied);
            prop_assert_eq!(&parked, &model.parked(), "after {:?} at {}", commands, at);
        }
    }

    #[test]
    fn tokens_only_rise_and_no_two_grants_share_one(beginning in beginning(), steps in steps(60)) {
        let mut machine = LeaseMachine::new();
        apply(&mut machine, 0, &beginning);
        let mut last = machine.stats().last_token;
        for step in &steps {
            let (at, commands) = entry_after(&machine, step);
            for effect in apply(&mut machine, at, &commands).effects {
                if let Effect::Granted { token, .. } = effect {
                    prop_assert!(token.get() > last, "{} after {}", token, last);
                    last = token.get();
                }
            }
            prop_assert!(machine.stats().last_token >= last);
            last = machine.stats().last_token;
        }
    }

    #[test]
    fn two_holds_of_a_name_never_overlap(beginning in beginning(), steps in steps(60)) {
        let mut machine = LeaseMachine::new();
        apply(&mut machine, 0, &beginning);
        let mut held = std::collections::BTreeMap::new();
        for step in &steps {
            let (at, commands) = entry_after(&machine, step);
            for effect in apply(&mut machine, at, &commands).effects {
                match effect {
                    Effect::Granted { key, token, .. } => {
                        prop_assert_eq!(held.insert(key, token), None);
                    }
                    Effect::Ended { key, token, .. } => {
                        prop_assert_eq!(held.remove(&key), Some(token));
                    }
                    Effect::Woken { .. } | Effect::Published { .. } => {}
                }
            }
            for key in all_keys() {
                let standing = machine.get(&key).map(|lease| lease.token);
                prop_assert_eq!(held.get(&key).copied(), standing);
            }
        }
    }

    #[test]
    fn a_machine_that_was_snapshotted_goes_on_as_if_nothing_had_happened(
        beginning in beginning(),
        before in steps(40),
        after in steps(30),
    ) {
        let (mut straight, _) = run(&beginning, &before);
        let mut loaded = reloaded(&straight);
        prop_assert_eq!(snapshot_of(&loaded), snapshot_of(&straight));
        for step in &after {
            let (at, commands) = entry_after(&straight, step);
            let expected = apply(&mut straight, at, &commands);
            let applied = apply(&mut loaded, at, &commands);
            prop_assert_eq!(applied.outcomes, expected.outcomes);
            prop_assert_eq!(applied.effects, expected.effects);
            prop_assert_eq!(loaded.next_due(), straight.next_due());
            prop_assert_eq!(snapshot_of(&loaded), snapshot_of(&straight));
        }
    }

    /// I6: the same log gives the same bytes, whatever a replica loaded when, so whatever its slots are.
    #[test]
    fn replicas_that_installed_snapshots_at_other_moments_have_the_same_bytes(
        beginning in beginning(),
        steps in steps(60),
        installs in prop::collection::vec(any::<prop::sample::Index>(), 3),
    ) {
        let (straight, entries) = run(&beginning, &steps);
        let mut replica = LeaseMachine::new();
        for (index, (at, commands)) in entries.iter().enumerate() {
            apply(&mut replica, *at, commands);
            if installs.iter().any(|install| install.index(entries.len()) == index) {
                replica = reloaded(&replica);
            }
        }
        prop_assert_eq!(snapshot_of(&replica), snapshot_of(&straight));
    }

    #[test]
    fn a_view_stays_as_it_was_while_the_machine_goes_on(beginning in beginning(), before in steps(30), after in steps(20)) {
        let (mut machine, _) = run(&beginning, &before);
        let (view, bytes) = (machine.view(), snapshot_of(&machine));
        for step in &after {
            let (at, commands) = entry_after(&machine, step);
            apply(&mut machine, at, &commands);
        }
        let mut later = Vec::new();
        view.encode(&mut later).unwrap();
        prop_assert_eq!(later, bytes);
    }

    /// Group commit decides nothing: once what is due has ended, entries of one stamp may be cut anywhere. (Memory
    /// that a lowered bound no longer allows is dropped at the start of an entry; so no bound is lowered here.)
    #[test]
    fn how_commands_are_grouped_into_entries_of_one_stamp_decides_nothing(
        beginning in beginning(),
        before in steps(30),
        commands in prop::collection::vec(command(), 1..12),
    ) {
        let (mut together, _) = run(&beginning, &before);
        let step = Step { later_ms: 7, commands };
        let (at, mut commands) = entry_after(&together, &step);
        commands.retain(|command| !matches!(command, Command::SetLimits(_)));
        apply(&mut together, at, &[Command::Tick]);
        let mut apart = together.clone();
        let expected = apply(&mut together, at, &commands);
        let (mut outcomes, mut effects) = (Vec::new(), Vec::new());
        for command in &commands {
            let applied = apply(&mut apart, at, std::slice::from_ref(command));
            outcomes.extend(applied.outcomes);
            effects.extend(applied.effects);
        }
        prop_assert_eq!(outcomes, expected.outcomes);
        prop_assert_eq!(effects, expected.effects);
    }

    /// Nothing is left behind: names, waits, requests and their bytes.
    #[test]
    fn when_everything_has_ended_nothing_is_kept(beginning in beginning(), steps in steps(60)) {
        let (mut machine, _) = run(&beginning, &steps);
        let limits = crate::machine::Limits::default();
        let mut commands: Vec<Command> = all_keys().into_iter().map(|key| Command::Delete { key }).collect();
        commands.push(Command::SetLimits(limits));
        commands.push(Command::NodeLost { node: 1, incarnation: 9 });
        commands.push(Command::NodeLost { node: 2, incarnation: 9 });
        let at = machine.now().as_millis();
        apply(&mut machine, at, &commands);
        apply(&mut machine, at + 2_000, &[Command::Tick]);
        for key in all_keys() {
            apply(&mut machine, at + 2_000, &[Command::Delete { key }]);
        }
        apply(&mut machine, at + 2_001 + limits.request_memory_ms, &[Command::Tick]);
        let stats = machine.stats();
        prop_assert_eq!((stats.leases, stats.waiters, stats.requests, stats.endings, stats.bytes), (0, 0, 0, 0, 0));
        prop_assert_eq!(machine.next_due(), None);
    }
}
