//! Workers that are killed, at named points and at any moment, and others that go on: whatever was acknowledged is
//! there, once, and all were told the same.
//!
//! The child is this very test binary, asked to run [`child`] alone; it writes what was acknowledged to its output.

use std::io::{BufRead, BufReader};
use std::process::Child;

use super::server::PostgresServer;
use super::tests::gold;
use super::{PostgresConfig, PostgresStage, PostgresStore};
use crate::core::ClaimOutcome;
use crate::killed::{self, Acknowledged, CrashPoint, acknowledge, say};
use crate::ledger::Ledger;

const URL: &str = "REWARD_LEDGER_CHILD_URL";
/// Which worker this is, out of those that share the events.
const WORKER: &str = "REWARD_LEDGER_CHILD_WORKER";
const PLAYERS: i64 = 8;

/// Not a test of its own: what the children run. Without their environment it does nothing.
#[test]
fn child() {
    let (Ok(url), Ok(worker)) = (std::env::var(URL), std::env::var(WORKER)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(claim_for_ever(&url, worker.parse().unwrap()));
}

/// All workers claim the same events in the same order, under the same locks: whoever comes later is replayed, or is told
/// that its token is stale.
async fn claim_for_ever(url: &str, worker: u64) {
    let crash = CrashPoint::from_environment();
    let config = PostgresConfig::builder(url)
        .on_stage(move |stage| {
            crash.pass(&stage.to_string());
            Ok(())
        })
        .build()
        .unwrap();
    let ledger = Ledger::open(PostgresStore::open_with(config).await.unwrap());
    let mut callers = tokio::task::JoinSet::new();
    for player in 0..PLAYERS {
        let ledger = ledger.clone();
        callers.spawn(async move {
            for number in 0..4_000_u64 {
                let event = format!("e{number}");
                // Tokens rise with the events, so that slower workers are stale where others are ahead.
                let claim = gold(number + 1, player, &event)
                    .attempt(format!("{worker}-{player}-{event}"))
                    .build()
                    .unwrap();
                match ledger.claim(claim).await.unwrap() {
                    ClaimOutcome::Applied(receipt) | ClaimOutcome::Replayed(receipt) => {
                        acknowledge(player, &event, receipt.as_bytes());
                    }
                    ClaimOutcome::Stale {
                        applied: Some(receipt),
                        ..
                    } => acknowledge(player, &event, receipt.as_bytes()),
                    ClaimOutcome::Stale { .. } | ClaimOutcome::Conflict { .. } => {
                        say(&format!("broken {player} {event}"));
                    }
                }
            }
        });
    }
    callers.join_all().await;
}

fn spawn_child(url: &str, worker: u64, crash: Option<&str>) -> Child {
    let mut command = killed::child("store::postgres::crash_tests::child", crash);
    command
        .env(URL, url)
        .env(WORKER, worker.to_string())
        .spawn()
        .unwrap()
}

/// Reads the child's lines until it ends; kills it after `kill_after` acknowledgements. All that it was told.
fn read(mut child: Child, kill_after: usize) -> Acknowledged {
    let out = BufReader::new(child.stdout.take().unwrap());
    let (mut told, mut acknowledged) = (Acknowledged::default(), 0);
    for line in out.lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["@ack", player, event, receipt] => {
                told.note(player, event, receipt);
                acknowledged += 1;
            }
            ["@broken", ..] => panic!("{line}"),
            _ => {}
        }
        if acknowledged == kill_after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    told
}

async fn verify(told: &Acknowledged, url: &str, context: &str) {
    let ledger = Ledger::open(PostgresStore::open(url).await.unwrap());
    told.are_in(&ledger, context).await;
    ledger.close().await.unwrap();
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_a_worker_that_dies_at_each_named_point() {
    for stage in [
        PostgresStage::BeforeTransaction,
        PostgresStage::BeforeWrites,
        PostgresStage::BeforeCommit,
        PostgresStage::AfterCommit,
    ] {
        let url = PostgresServer::shared().await.database().await;
        let mut told = Acknowledged::default();
        for (worker, groups) in [(0, 0), (1, 1), (2, 11)] {
            let crash = format!("{stage}:{groups}");
            told.append(read(spawn_child(&url, worker, Some(&crash)), usize::MAX));
            verify(&told, &url, &format!("{crash} of worker {worker}")).await;
        }
        assert!(told.len() > 0, "{stage}");
    }
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_workers_that_are_killed_beside_each_other() {
    let url = PostgresServer::shared().await.database().await;
    let mut told = Acknowledged::default();
    for round in 0..4_usize {
        let workers: Vec<_> = (0..3_usize)
            .map(|worker| {
                let child = spawn_child(&url, (3 * round + worker).try_into().unwrap(), None);
                let kill_after = 20 + 67 * ((round + 2 * worker) % 5);
                std::thread::spawn(move || read(child, kill_after))
            })
            .collect();
        for worker in workers {
            told.append(worker.join().unwrap());
        }
        verify(&told, &url, &format!("round {round}")).await;
    }
    assert!(told.len() > 60, "{}", told.len());
}
