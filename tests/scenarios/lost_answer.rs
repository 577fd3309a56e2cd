//! S7: the database commits, and only the answer is lost: the process is killed right after the commit.
//!
//! The process is this test binary, asked to run [`child`] alone. Its ledger stops at a named point of its commit, says so,
//! and is killed there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use fence_client::Fence;
use lease_core::FenceToken;
use reward_ledger::testing::{Protection, Protections, Stage};
use reward_ledger::{Ledger, SledConfig, SledStore};

use crate::books::{applied, broken, granted_twice, hold_exactly, replayed};
use crate::stage::{GOLD, LOCK, PLAYER, claim, gold, name, rank_3};

const DIR: &str = "SCENARIO_CHILD_DIR";
/// Where the child stops: the name of a stage.
const STOP_AT: &str = "SCENARIO_CHILD_STOP_AT";
/// What the child says when it has come there.
const THERE: &str = "@there";

fn fence() -> Fence {
    Fence::new(name(LOCK), FenceToken::new(101).unwrap())
}

/// Not a test of its own: what the child runs. Without its environment it does nothing.
#[test]
fn child() {
    let (Ok(dir), Ok(stop_at)) = (std::env::var(DIR), std::env::var(STOP_AT)) else {
        return;
    };
    let config = SledConfig::builder(dir).on_stage(move |stage| {
        if stage.to_string() == stop_at {
            let mut out = std::io::stdout().lock();
            out.write_all(format!("\n{THERE}\n").as_bytes())
                .and_then(|()| out.flush())?;
            // Until it is killed.
            loop {
                std::thread::park();
            }
        }
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let ledger = Ledger::open(SledStore::open_with(config.build().unwrap()).unwrap());
        let told = claim(&ledger, gold(fence(), rank_3()).attempt("message-7")).await;
        panic!("the answer was not lost: {told:?}");
    });
}

/// A process claims the reward, and is killed where its ledger stands at `stage`.
fn claim_and_be_killed_at(stage: Stage, dir: &Path) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lost_answer::child", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .env(STOP_AT, stage.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let there = lines.map_while(Result::ok).any(|line| line == THERE);
    child.kill().unwrap();
    let ended = child.wait().unwrap();
    assert!(there, "the child never came to {stage}: {ended}");
}

fn reopen(dir: &Path, protections: Protections) -> Ledger {
    let config = SledConfig::builder(dir).protections(protections).build().unwrap();
    Ledger::open(SledStore::open_with(config).unwrap())
}

#[tokio::test]
async fn s07_after_a_kill_between_commit_and_answer_the_retry_gets_the_first_receipt() {
    let dir = tempfile::tempdir().unwrap();
    claim_and_be_killed_at(Stage::Answering, dir.path());

    let ledger = reopen(dir.path(), Protections::ALL);
    let first = ledger.get(PLAYER, &rank_3()).await.unwrap().unwrap();
    // The same message, and another one that asks for the same.
    let again = replayed(claim(&ledger, gold(fence(), rank_3()).attempt("message-7")).await);
    assert_eq!(again.as_bytes(), first.as_bytes());
    let other = replayed(claim(&ledger, gold(fence(), rank_3()).attempt("message-8")).await);
    assert_eq!(other.as_bytes(), first.as_bytes());
    assert_eq!(first.attempt().as_str(), "message-7");
    hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    ledger.close().await.unwrap();
}

/// The same, with the lease lost meanwhile: whoever takes over gets the first receipt under its own token.
#[tokio::test]
async fn s07_whoever_takes_over_from_the_killed_process_gets_its_receipt() {
    let dir = tempfile::tempdir().unwrap();
    claim_and_be_killed_at(Stage::Answering, dir.path());
    let ledger = reopen(dir.path(), Protections::ALL);
    let next = Fence::new(name(LOCK), FenceToken::new(102).unwrap());
    let told = replayed(claim(&ledger, gold(next, rank_3()).attempt("message-7")).await);
    assert_eq!(told.token(), Some(fence().token), "it says who was granted it");
    hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    ledger.close().await.unwrap();
}

/// Killed before the commit, nothing was granted: the same retry is then the first grant. The point of the kill is what
/// makes the scenario.
#[tokio::test]
async fn s07_after_a_kill_before_the_commit_the_retry_is_the_first_grant() {
    let dir = tempfile::tempdir().unwrap();
    claim_and_be_killed_at(Stage::Applying, dir.path());
    let ledger = reopen(dir.path(), Protections::ALL);
    assert_eq!(ledger.get(PLAYER, &rank_3()).await.unwrap(), None);
    applied(claim(&ledger, gold(fence(), rank_3()).attempt("message-7")).await);
    hold_exactly(&ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    ledger.close().await.unwrap();
}

/// Control: a service that has forgotten its try asks anew, and no key is unique.
#[tokio::test]
async fn s07_without_the_unique_key_the_retry_pays_twice() {
    let dir = tempfile::tempdir().unwrap();
    claim_and_be_killed_at(Stage::Answering, dir.path());
    let ledger = reopen(dir.path(), Protections::all_without(Protection::UniqueEvent));
    applied(claim(&ledger, gold(fence(), rank_3()).attempt("message-7 again")).await);
    assert!(granted_twice(&broken(&ledger).await));
    ledger.close().await.unwrap();
}
