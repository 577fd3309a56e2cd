//! The embedded store beyond the suite: what its writer answers, and what it does when it cannot.
#![expect(clippy::disallowed_methods, reason = "tests run on a runtime of their own")]

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};

use super::{SledConfig, SledStore, Stage};
use crate::core::{ClaimOutcome, Protection, Protections};
use crate::error::{Certainty, ClaimError, InvalidConfig, OpenError, StorageFailure, StoreError};
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::store::Health;
use crate::types::{Claim, Receipt};

pub(super) fn event(name: &str) -> RewardEventId {
    RewardEventId::parse(name).unwrap()
}

pub(super) fn claim(name: &str) -> Claim {
    let fence = Fence::new(LeaseName::new("lock").unwrap(), FenceToken::new(7).unwrap());
    Claim::builder(fence, 42, event(name), 500)
        .item("gold")
        .build()
        .unwrap()
}

pub(super) fn open(dir: &Path) -> Ledger {
    Ledger::open(SledStore::open(dir).unwrap())
}

/// A ledger whose writer calls `hook` at each stage.
fn hooked(dir: &Path, hook: impl Fn(Stage) -> io::Result<()> + Send + Sync + 'static) -> Ledger {
    let config = SledConfig::builder(dir)
        .on_stage(hook)
        .stuck_after(Duration::from_millis(100))
        .build()
        .unwrap();
    Ledger::open(SledStore::open_with(config).unwrap())
}

pub(super) async fn grant(ledger: &Ledger, name: &str) -> Receipt {
    match ledger.claim(claim(name)).await.unwrap() {
        ClaimOutcome::Applied(receipt) => receipt,
        other @ (ClaimOutcome::Replayed(_) | ClaimOutcome::Stale { .. } | ClaimOutcome::Conflict { .. }) => {
            panic!("{other:?}")
        }
    }
}

pub(super) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A stream of numbers from a seed.
pub(super) fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    }
}

/// A gate that the writer waits at and the test opens.
#[derive(Debug, Clone, Default)]
struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default, PartialEq, Eq)]
enum GateState {
    #[default]
    NobodyYet,
    WriterWaits,
    Open,
}

impl Gate {
    fn wait_in_writer(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        if *state == GateState::NobodyYet {
            *state = GateState::WriterWaits;
            changed.notify_all();
        }
        while *state != GateState::Open {
            state = changed.wait(state).unwrap();
        }
    }

    fn wait_for_writer(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        while *state == GateState::NobodyYet {
            state = changed.wait(state).unwrap();
        }
    }

    fn open(&self) {
        let (state, changed) = &*self.0;
        *state.lock().unwrap() = GateState::Open;
        changed.notify_all();
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_it_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut receipts = Vec::new();
    for round in 0..4 {
        let ledger = open(dir.path());
        for number in 0..20 {
            receipts.push(grant(&ledger, &format!("{round}-{number}")).await);
        }
        for receipt in &receipts {
            let read = ledger.get(42, receipt.event()).await.unwrap().unwrap();
            assert_eq!(read.as_bytes(), receipt.as_bytes());
        }
        assert!(ledger.audit().await.unwrap().is_clean());
        ledger.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_second_ledger_on_the_directory_is_refused_until_the_first_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    let refused = SledStore::open(dir.path()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused:?}");
    assert!(refused.is_retryable());
    assert!(refused.to_string().contains("open elsewhere"));
    ledger.close().await.unwrap();
    open(dir.path()).close().await.unwrap();
}

#[tokio::test]
async fn a_ledger_whose_handles_are_dropped_closes_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    let receipt = grant(&ledger, "week-34").await;
    let store = ledger.clone();
    drop(ledger);
    drop(store);
    let reopened = loop {
        match SledStore::open(dir.path()) {
            Ok(store) => break Ledger::open(store),
            Err(OpenError::InUse { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert_eq!(reopened.get(42, receipt.event()).await.unwrap(), Some(receipt));
}

#[test]
fn a_configuration_out_of_range_is_refused() {
    let stuck = SledConfig::builder("x")
        .stuck_after(Duration::from_millis(1))
        .build();
    assert!(matches!(stuck, Err(InvalidConfig::StuckAfter { .. })));
    let cache = SledConfig::builder("x").cache_bytes(1).build();
    assert!(matches!(cache, Err(InvalidConfig::CacheBytes { .. })));
}

#[tokio::test]
async fn the_first_storage_error_at_any_stage_stops_the_ledger_and_loses_nothing_acknowledged() {
    for failing in [
        Stage::Deciding,
        Stage::Applying,
        Stage::Flushing,
        Stage::Syncing,
        Stage::Answering,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let groups = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&groups);
        let ledger = hooked(dir.path(), move |stage| {
            if stage == Stage::Deciding {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            match stage == failing && counted.load(Ordering::Relaxed) >= 3 {
                true => Err(io::Error::from_raw_os_error(5)),
                false => Ok(()),
            }
        });
        let acknowledged = [grant(&ledger, "a").await, grant(&ledger, "b").await];
        let lost = claim("c");
        let error = ledger.claim(lost.clone()).await.unwrap_err();
        assert!(
            matches!(
                &error,
                ClaimError::Store(StoreError::Stopped {
                    certainty: Certainty::Unknown,
                    ..
                })
            ),
            "{failing}: {error:?}"
        );
        assert!(error.may_have_applied() && !error.is_retryable());

        let later = ledger.claim(lost.clone()).await.unwrap_err();
        assert!(
            !later.may_have_applied(),
            "{failing}: it never reached the writer"
        );
        assert!(matches!(&later, ClaimError::Store(store) if store.must_stop()));
        assert!(
            ledger.get(42, &event("a")).await.is_err(),
            "{failing}: it answers nothing from memory"
        );
        assert!(matches!(ledger.ended().await, Health::Stopped(_)));
        assert!(
            matches!(SledStore::open(dir.path()), Err(OpenError::InUse { .. })),
            "{failing}: only another process may try again"
        );

        // Another process would find the files as they are now.
        let found = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), found.path());
        let restarted = open(found.path());
        for receipt in acknowledged {
            assert_eq!(
                restarted.get(42, receipt.event()).await.unwrap(),
                Some(receipt),
                "{failing}"
            );
        }
        assert!(restarted.audit().await.unwrap().is_clean());
        assert!(restarted.claim(lost).await.unwrap().is_accepted());
        restarted.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_writer_that_dies_is_told_to_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = hooked(dir.path(), |stage| {
        assert_ne!(stage, Stage::Applying, "the writer dies here");
        Ok(())
    });
    let error = ledger.claim(claim("a")).await.unwrap_err();
    assert!(error.may_have_applied());
    assert!(matches!(
        ledger.ended().await,
        Health::Stopped(failure) if matches!(*failure, StorageFailure::WriterDied)
    ));
}

#[tokio::test]
async fn no_answer_leaves_before_the_barrier_is_passed_not_even_a_replay_or_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, armed) = (Gate::default(), Arc::new(AtomicU64::new(0)));
    let ledger = hooked(dir.path(), {
        let (gate, armed) = (gate.clone(), Arc::clone(&armed));
        move |stage| {
            if stage == Stage::Syncing && armed.load(Ordering::SeqCst) == 1 {
                gate.wait_in_writer();
            }
            Ok(())
        }
    });
    // Stalled callers are told so after a while; here it is the order that counts.
    armed.store(1, Ordering::SeqCst);
    let asked = claim("week-34");
    let first = tokio::spawn({
        let (ledger, asked) = (ledger.clone(), asked.clone());
        async move { ledger.claim(asked).await }
    });
    tokio::task::spawn_blocking({
        let gate = gate.clone();
        move || gate.wait_for_writer()
    })
    .await
    .unwrap();
    let replay = tokio::spawn({
        let (ledger, asked) = (ledger.clone(), asked.clone());
        async move { ledger.claim(asked).await }
    });
    let read = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.get(42, &event("week-34")).await }
    });
    // All three end, and none with an answer, for the writer stands before the barrier.
    for answer in [first.await.unwrap(), replay.await.unwrap()] {
        assert!(
            matches!(answer, Err(ClaimError::Store(StoreError::Stalled { .. }))),
            "{answer:?}"
        );
    }
    assert!(matches!(read.await.unwrap(), Err(StoreError::Stalled { .. })));
    gate.open();
    until_serving(&ledger).await;
    assert!(matches!(
        ledger.claim(asked).await.unwrap(),
        ClaimOutcome::Replayed(_)
    ));
}

async fn until_serving(ledger: &Ledger) {
    while !matches!(ledger.health(), Health::Serving) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stuck_writer_is_reported_and_its_callers_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let ledger = hooked(dir.path(), {
        let gate = gate.clone();
        move |stage| {
            if stage == Stage::Flushing {
                gate.wait_in_writer();
            }
            Ok(())
        }
    });
    let asked = claim("week-34");
    let waiting = ledger.claim(asked.clone()).await.unwrap_err();
    assert!(
        waiting.is_retryable() && waiting.may_have_applied(),
        "{waiting:?}"
    );
    assert!(matches!(ledger.health(), Health::Stalled));
    let late = ledger.claim(asked.clone()).await.unwrap_err();
    assert!(late.is_retryable() && !late.may_have_applied(), "{late:?}");

    gate.open();
    until_serving(&ledger).await;
    assert!(matches!(
        ledger.claim(asked).await.unwrap(),
        ClaimOutcome::Replayed(_)
    ));
}

#[tokio::test]
async fn claims_beside_each_other_share_a_barrier_and_without_it_there_is_none() {
    for (protections, syncs_max) in [
        (Protections::ALL, 20),
        (Protections::all_without(Protection::DurabilityBarrier), 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let syncs = Arc::new(AtomicU64::new(0));
        let config = SledConfig::builder(dir.path())
            .protections(protections)
            .on_stage({
                let syncs = Arc::clone(&syncs);
                move |stage| {
                    syncs.fetch_add(u64::from(stage == Stage::Syncing), Ordering::Relaxed);
                    Ok(())
                }
            })
            .build()
            .unwrap();
        let ledger = Ledger::open(SledStore::open_with(config).unwrap());
        let tasks: Vec<_> = (0..400)
            .map(|number| {
                let ledger = ledger.clone();
                tokio::spawn(async move { ledger.claim(claim(&format!("e-{number}"))).await })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap().unwrap().is_accepted());
        }
        let syncs = syncs.load(Ordering::Relaxed);
        assert!(syncs <= syncs_max, "{syncs} barriers for 400 claims");
        assert_eq!(syncs == 0, syncs_max == 0);
    }
}

#[tokio::test]
async fn a_claim_whose_caller_is_gone_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    for number in 0..200 {
        let asked = claim(&format!("e-{number}"));
        let task = tokio::spawn({
            let (ledger, asked) = (ledger.clone(), asked.clone());
            async move { ledger.claim(asked).await }
        });
        if number % 2 == 0 {
            tokio::task::yield_now().await;
        }
        task.abort();
        let answer = ledger.claim(asked).await.unwrap();
        assert!(answer.is_accepted(), "{answer:?}");
    }
    let report = ledger.audit().await.unwrap();
    assert!(report.is_clean());
    assert_eq!(report.claims, 200);
}
