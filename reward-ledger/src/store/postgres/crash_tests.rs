//! Workers that are killed, at named points and at any moment, and others that go on: whatever was acknowledged is
//! there, once, and all were told the same.
//!
//! The child is this very test binary, asked to run [`child`] alone; it writes what was acknowledged to its output.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hook::PostgresStage;
use super::server::PostgresServer;
use super::tests::{gold, is_sound};
use super::{PostgresConfig, PostgresStore};
use crate::core::ClaimOutcome;
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;

const URL: &str = "REWARD_LEDGER_CHILD_URL";
/// Which worker this is, out of those that share the events.
const WORKER: &str = "REWARD_LEDGER_CHILD_WORKER";
/// `stage:group`: abort when that group reaches that stage.
const CRASH: &str = "REWARD_LEDGER_CHILD_CRASH";
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
    let config = PostgresConfig::builder(url)
        .on_stage(crash_hook())
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
                        say("ack", player, &event, receipt.as_bytes());
                    }
                    ClaimOutcome::Stale {
                        applied: Some(receipt),
                        ..
                    } => say("ack", player, &event, receipt.as_bytes()),
                    ClaimOutcome::Stale { .. } | ClaimOutcome::Conflict { .. } => {
                        say("broken", player, &event, &[]);
                    }
                }
            }
        });
    }
    callers.join_all().await;
}

fn crash_hook() -> impl Fn(PostgresStage) -> std::io::Result<()> + Send + Sync {
    let point = std::env::var(CRASH).ok().map(|text| {
        let (stage, group) = text.split_once(':').unwrap();
        (stage.to_owned(), group.parse::<u64>().unwrap())
    });
    let groups = Arc::new(AtomicU64::new(0));
    move |stage| {
        if stage == PostgresStage::BeforeTransaction {
            groups.fetch_add(1, Ordering::SeqCst);
        }
        match &point {
            Some((at, group)) if *at == stage.to_string() && groups.load(Ordering::SeqCst) >= *group => {
                std::process::abort()
            }
            _ => Ok(()),
        }
    }
}

/// One whole line, past the test harness's capture.
fn say(what: &str, player: i64, event: &str, receipt: &[u8]) {
    let hex: String = receipt.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut out = std::io::stdout().lock();
    // The parent may be gone.
    let _gone = out
        .write_all(format!("\n@{what} {player} {event} {hex}\n").as_bytes())
        .and_then(|()| out.flush());
}

fn spawn_child(url: &str, worker: u64, crash: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "store::postgres::crash_tests::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(URL, url)
        .env(WORKER, worker.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(crash) = crash {
        command.env(CRASH, crash);
    }
    command.spawn().unwrap()
}

/// Everything that children were told; all of them must have been told the same.
#[derive(Debug, Default)]
struct Told(BTreeMap<(i64, String), String>);

impl Told {
    /// Reads the child's lines until it ends; kills it after `kill_after` acknowledgements.
    fn read(&mut self, mut child: Child, kill_after: usize) {
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut acknowledged = 0;
        for line in out.lines() {
            let line = line.unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["@ack", player, event, hex] => {
                    let key = (player.parse().unwrap(), (*event).to_owned());
                    let first = self.0.entry(key).or_insert_with(|| (*hex).to_owned());
                    assert_eq!(first, hex, "all answers to one claim are the same bytes");
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
    }

    async fn verify(&self, url: &str, context: &str) {
        let ledger = Ledger::open(PostgresStore::open(url).await.unwrap());
        for ((player, event), hex) in &self.0 {
            let found = ledger
                .get(*player, &RewardEventId::parse(event).unwrap())
                .await
                .unwrap();
            let found: Option<String> = found.map(|receipt| {
                receipt
                    .as_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect()
            });
            assert_eq!(
                found.as_deref(),
                Some(hex.as_str()),
                "{context}: player {player} {event}"
            );
        }
        is_sound(&ledger).await;
        let claims = ledger.audit().await.unwrap().claims;
        assert!(claims >= self.0.len() as u64, "{context}");
        ledger.close().await.unwrap();
    }
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
        let mut told = Told::default();
        for (worker, group) in [(0, 1), (1, 2), (2, 12)] {
            let crash = format!("{stage}:{group}");
            told.read(spawn_child(&url, worker, Some(&crash)), usize::MAX);
            told.verify(&url, &format!("{crash} of worker {worker}")).await;
        }
        assert!(!told.0.is_empty(), "{stage}");
    }
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_workers_that_are_killed_beside_each_other() {
    let url = PostgresServer::shared().await.database().await;
    let mut told = Told::default();
    for round in 0..4_usize {
        let workers: Vec<_> = (0..3_usize)
            .map(|worker| {
                let child = spawn_child(&url, (3 * round + worker).try_into().unwrap(), None);
                let kill_after = 20 + 67 * ((round + 2 * worker) % 5);
                std::thread::spawn(move || {
                    let mut told = Told::default();
                    told.read(child, kill_after);
                    told
                })
            })
            .collect();
        for worker in workers {
            for (key, hex) in worker.join().unwrap().0 {
                let first = told.0.entry(key).or_insert_with(|| hex.clone());
                assert_eq!(*first, hex, "all workers are told the same bytes");
            }
        }
        told.verify(&url, &format!("round {round}")).await;
    }
    assert!(told.0.len() > 60, "{}", told.0.len());
}
