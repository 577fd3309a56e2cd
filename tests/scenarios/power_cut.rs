//! A power cut, of a real process: the library of `tests/faults` takes everything that was written and not synced, and ends
//! the process. Whoever was answered before that must find its receipt.
//!
//! The process is this very test binary, asked to run [`child`] alone; it writes what it was answered to its output.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use reward_ledger::testing::{Protection, Protections};
use reward_ledger::{Claim, Ledger, RewardEventId, SledConfig, SledStore};
use tests::artifact;

use crate::books::applied;
use crate::stage::{fence, in_background};

const DIR: &str = "POWER_CUT_CHILD_DIR";
/// Makes the events of a process its own.
const ROUND: &str = "POWER_CUT_CHILD_ROUND";
const BARRIER: &str = "POWER_CUT_CHILD_BARRIER";
const PLAYERS: i64 = 16;
/// What the library ends a process with.
const CUT_STATUS: i32 = 86;

/// Not a test of its own: what the processes run. Without their environment it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let (Ok(dir), Ok(round)) = (std::env::var(DIR), std::env::var(ROUND)) else {
        return;
    };
    let protections = match std::env::var(BARRIER).as_deref() {
        Ok("off") => Protections::all_without(Protection::DurabilityBarrier),
        _ => Protections::ALL,
    };
    let config = SledConfig::builder(dir).protections(protections).build().unwrap();
    let ledger = Ledger::open(SledStore::open_with(config).unwrap());
    let callers: Vec<_> = (0..PLAYERS)
        .map(|player| {
            let (ledger, round) = (ledger.clone(), round.clone());
            in_background(async move { claim_for_ever(&ledger, player, &round).await })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn claim_for_ever(ledger: &Ledger, player: i64, round: &str) {
    for number in 0.. {
        let event = format!("r{round}-e{number}");
        let fence = fence(1);
        let claim = Claim::builder(fence, player, RewardEventId::parse(&event).unwrap(), 500)
            .item("gold")
            .build()
            .unwrap();
        let outcome = ledger.claim(claim).await.unwrap();
        say(player, &event, applied(outcome).as_bytes());
    }
}

/// One whole line, past the test harness's capture.
fn say(player: i64, event: &str, receipt: &[u8]) {
    let line = format!("\n@ {player} {event} {}\n", hex(receipt));
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What callers were answered: receipts by player and event.
type Answered = BTreeMap<(i64, String), String>;

fn spawn(dir: &Path, order: &Path, round: u32, barrier: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "power_cut::child", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .env(ROUND, round.to_string())
        .env(BARRIER, barrier)
        .env("LD_PRELOAD", artifact::fault_library())
        .env("FAULTS_UNDER", dir)
        .env("FAULTS_ORDER", order)
        .env("FAULTS_UNSYNCED", "noted")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs a process on `dir` and cuts its power after so many answers.
fn cut_after(answers: usize, dir: &Path, round: u32, barrier: &str, answered: &mut Answered) {
    let orders = tempfile::tempdir().unwrap();
    let order = orders.path().join("order");
    let mut child = spawn(dir, &order, round, barrier);
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut heard = 0;
    for line in out.lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        if let ["@", player, event, receipt] = words.as_slice() {
            let key = (player.parse().unwrap(), (*event).to_owned());
            answered.insert(key, (*receipt).to_owned());
            heard += 1;
            if heard == answers {
                std::fs::write(&order, "power cut\n").unwrap();
            }
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(
        status.code(),
        Some(CUT_STATUS),
        "harness: the power was not cut: {status}"
    );
}

/// How many of the receipts are not there, or are others.
async fn lost(dir: &Path, answered: &Answered) -> usize {
    let ledger = Ledger::open(SledStore::open(dir).unwrap());
    let mut lost = 0;
    for ((player, event), receipt) in answered {
        let found = ledger
            .get(*player, &RewardEventId::parse(event).unwrap())
            .await
            .unwrap();
        lost += usize::from(found.is_none_or(|found| hex(found.as_bytes()) != *receipt));
    }
    let report = ledger.audit().await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.violations);
    ledger.close().await.unwrap();
    lost
}

#[tokio::test]
async fn l16_whoever_was_answered_finds_its_receipt_after_power_cuts() {
    let dir = tempfile::tempdir().unwrap();
    let mut answered = Answered::new();
    for (round, answers) in [(0, 1), (1, 40), (2, 300), (3, 7), (4, 150)] {
        cut_after(answers, dir.path(), round, "on", &mut answered);
        let lost = lost(dir.path(), &answered).await;
        assert_eq!(lost, 0, "of {} in round {round}", answered.len());
    }
    assert!(answered.len() >= 498, "{}", answered.len());
}

/// Control: answered before the barrier.
#[tokio::test]
async fn l16_without_the_barrier_a_power_cut_takes_receipts() {
    let dir = tempfile::tempdir().unwrap();
    let mut answered = Answered::new();
    cut_after(40, dir.path(), 0, "off", &mut answered);
    assert!(lost(dir.path(), &answered).await > 0, "of {}", answered.len());
}
