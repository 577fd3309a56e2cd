//! Snapshots: the same bytes on every replica, and nothing that hostile or damaged ones could do.

use std::io::{self, Read};

use proptest::prelude::*;

use super::properties::{cases, run};
use super::steps::{beginning, steps};
use super::words::*;
use crate::limits::ENTRY_BYTES_MAX;
use crate::machine::codec::CodecError;
use crate::machine::{
    Command, LeaseMachine, MachineVersion, Outcome, SetCondition, SetExpiry, SnapshotError,
};

/// A machine with something of every kind.
fn full() -> Lab {
    let mut lab = Lab::new();
    lab.grant(0, ask("A", "a", 5_000).requested("r").with_metadata("m"));
    lab.at(1, ask("A", "b", 20).waiting(9_000, caller(1)).requested("r"));
    lab.at(2, ask("A", "c", 20).waiting(9_000, caller(2)));
    lab.at(3, detach(caller(1)));
    lab.at(4, set("K", "v", SetExpiry::Never, SetCondition::Always));
    lab.at(5, set("K", "w", px(700), SetCondition::Always));
    lab.grant(6, ask("B", "d", 20).requested("q"));
    lab.at(7, force("B", "stuck"));
    lab.at(8, node_started(1, 1));
    lab
}

fn decode(bytes: &[u8]) -> Result<LeaseMachine, SnapshotError> {
    LeaseMachine::decode(&mut &bytes[..])
}

/// A snapshot's start, and its items with their lengths.
fn items(snapshot: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (start, mut rest) = snapshot.split_at(5);
    let mut items = Vec::new();
    while let Some(length) = rest.first_chunk::<4>() {
        let (item, after) = rest.split_at(4 + u32::from_le_bytes(*length) as usize);
        items.push(item.to_vec());
        rest = after;
    }
    (start.to_vec(), items)
}

fn joined(start: &[u8], items: &[Vec<u8>]) -> Vec<u8> {
    [start, &items.concat()].concat()
}

#[test]
fn a_snapshot_goes_round() {
    let lab = full();
    let loaded = reloaded(&lab.machine);
    assert_eq!(loaded.check(), Ok(()));
    assert_eq!(loaded.stats(), lab.machine.stats());
    assert_eq!(loaded.limits(), lab.machine.limits());
    assert_eq!(loaded.version(), lab.machine.version());
    assert_eq!(
        (loaded.now(), loaded.next_due()),
        (lab.machine.now(), lab.machine.next_due())
    );
    assert_eq!(snapshot_of(&loaded), lab.snapshot());
    assert_eq!(
        snapshot_of(&reloaded(&LeaseMachine::new())),
        snapshot_of(&LeaseMachine::new())
    );
}

#[test]
fn what_a_snapshot_remembers_still_counts() {
    let mut lab = full();
    lab.machine = reloaded(&lab.machine);
    assert_eq!(granted(&lab.at(10, ask("A", "a", 5).requested("r"))), token(1));
    assert!(matches!(
        lab.at(11, ask("B", "d", 5).requested("q")),
        Outcome::Ended { .. }
    ));
    assert_eq!(
        lab.at(12, renew("K", token(2), 5)),
        lost(crate::machine::EndReason::Superseded)
    );
    lab.at(20, release("A", token(1)));
    assert_eq!(granted(lab.told(caller(2)).unwrap()), token(5));
    let stale = ask("C", "e", 5).waiting(5, parked_at(1, 0, 0));
    assert!(matches!(lab.at(21, stale), Outcome::Refused(_)));
}

#[test]
fn a_truncated_snapshot_is_refused_wherever_it_ends() {
    let snapshot = full().snapshot();
    for end in 0..snapshot.len() {
        let cut = decode(&snapshot[..end]);
        assert!(
            matches!(cut, Err(SnapshotError::Read(_))),
            "{end} of {}",
            snapshot.len()
        );
    }
}

#[test]
fn something_else_is_no_snapshot() {
    assert!(matches!(
        decode(b"LSMX\x01....."),
        Err(SnapshotError::NotASnapshot)
    ));
    let mut newer = full().snapshot();
    newer[4] = 200;
    let error = decode(&newer).unwrap_err();
    assert!(
        matches!(
            error,
            SnapshotError::Item(CodecError::UnknownFormat { found: 200, .. })
        ),
        "{error}"
    );
}

#[test]
fn a_snapshot_under_rules_that_this_build_does_not_know_is_refused() {
    let mut machine = full().machine;
    let newer = MachineVersion::new(MachineVersion::LATEST.get() + 1);
    machine.version = newer;
    let error = decode(&snapshot_of(&machine)).unwrap_err();
    assert!(
        matches!(error, SnapshotError::UnsupportedVersion { found, .. } if found == newer),
        "{error}"
    );
}

#[test]
fn items_that_are_missing_double_or_out_of_order_are_refused() {
    let snapshot = full().snapshot();
    let (start, items) = items(&snapshot);
    assert_eq!(joined(&start, &items), snapshot);
    // The first is the header, the last closes.
    for at in 1..items.len() - 1 {
        let mut missing = items.clone();
        missing.remove(at);
        // With a count that agrees, so that the order alone can tell.
        let mut double = items.clone();
        double.insert(at, items[at].clone());
        *double.last_mut().unwrap().last_mut().unwrap() += 1;
        let mut swapped = items.clone();
        swapped.swap(at, at + 1);
        for changed in [missing, double, swapped] {
            assert!(decode(&joined(&start, &changed)).is_err(), "item {at}");
        }
    }
}

#[test]
fn an_item_that_is_longer_than_any_may_be_is_refused_before_it_is_read() {
    let (start, items) = items(&full().snapshot());
    let mut bytes = joined(&start, &items[..2]);
    bytes.extend((u32::try_from(ENTRY_BYTES_MAX).unwrap() + 1).to_le_bytes());
    let error = decode(&bytes).unwrap_err();
    assert!(
        matches!(error, SnapshotError::Item(CodecError::TooLarge { .. })),
        "{error}"
    );
}

/// Notes the largest buffer that a reader is asked to fill.
struct Asked<'a> {
    bytes: &'a [u8],
    largest: usize,
}

impl Read for Asked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.largest = self.largest.max(buffer.len());
        self.bytes.read(buffer)
    }
}

#[test]
fn a_length_that_lies_makes_nobody_reserve_memory() {
    let (start, items) = items(&full().snapshot());
    let mut bytes = joined(&start, &items[..2]);
    bytes.extend(u32::try_from(ENTRY_BYTES_MAX).unwrap().to_le_bytes());
    bytes.extend([0; 100]);
    let mut reader = Asked {
        bytes: &bytes,
        largest: 0,
    };
    let error = LeaseMachine::decode(&mut reader).unwrap_err();
    assert!(matches!(error, SnapshotError::Read(_)), "{error}");
    assert!(reader.largest < 64 * 1_024, "{} bytes at once", reader.largest);
}

/// Whatever a snapshot says, a machine that comes of it stands and goes on.
fn stands(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(mut machine) = decode(bytes) else {
        return Ok(());
    };
    prop_assert_eq!(machine.check(), Ok(()));
    let again = snapshot_of(&machine);
    prop_assert_eq!(snapshot_of(&decode(&again).unwrap()), again);
    let at = machine.next_due().unwrap_or(machine.now());
    machine.apply(at, &[Command::Tick]).unwrap();
    prop_assert_eq!(machine.check(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn damaged_snapshots_are_refused_or_stand(
        beginning in beginning(),
        steps in steps(25),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = snapshot_of(&run(&beginning, &steps).0);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        stands(&bytes)?;
    }

    #[test]
    fn arbitrary_bytes_are_no_snapshot(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&tail).is_err());
        let mut bytes = b"LSM\n\x01".to_vec();
        bytes.extend(tail);
        stands(&bytes)?;
    }
}
