//! Real processes that are killed, crash at named points, or run out of disk: whatever they acknowledged is there.
//!
//! The child is this very test binary, asked to run [`child`] alone; it writes what was acknowledged to its output.
#![expect(clippy::disallowed_methods, reason = "tests run on a runtime of their own")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};

use super::tests::numbers;
use super::{SledConfig, SledStore, Stage};
use crate::core::ClaimOutcome;
use crate::error::OpenError;
use crate::event_id::RewardEventId;
use crate::killed::{self, Acknowledged, CrashPoint, acknowledge, say};
use crate::ledger::Ledger;
use crate::types::Claim;

const DIR: &str = "REWARD_LEDGER_CHILD_DIR";
/// Which round this is: makes the child's events its own.
const ROUND: &str = "REWARD_LEDGER_CHILD_ROUND";
const CHILD_TASKS: u64 = 24;

const STAGES: [Stage; 5] = [
    Stage::Deciding,
    Stage::Applying,
    Stage::Flushing,
    Stage::Syncing,
    Stage::Answering,
];

fn claim(token: u64, player: u64, event: &str, attempt: &str) -> Claim {
    let fence = Fence::new(
        LeaseName::new(format!("lock-{player}")).unwrap(),
        FenceToken::new(token).unwrap(),
    );
    Claim::builder(
        fence,
        player.cast_signed(),
        RewardEventId::parse(event).unwrap(),
        500,
    )
    .item("gold")
    .attempt(attempt)
    .build()
    .unwrap()
}

/// Not a test of its own: what the children run. Without their environment it does nothing.
#[test]
fn child() {
    let (Ok(dir), Ok(round)) = (std::env::var(DIR), std::env::var(ROUND)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(claim_for_ever(Path::new(&dir), &round));
}

async fn claim_for_ever(dir: &Path, round: &str) {
    let crash = CrashPoint::from_environment();
    let config = SledConfig::builder(dir)
        .stuck_after(Duration::from_millis(500))
        .on_stage(move |stage| {
            crash.pass(&stage.to_string());
            Ok(())
        })
        .build()
        .unwrap();
    let ledger = Ledger::open(SledStore::open_with(config).unwrap());
    let tasks: Vec<_> = (0..CHILD_TASKS)
        .map(|player| {
            let (ledger, round) = (ledger.clone(), round.to_owned());
            tokio::spawn(async move { claim_as(&ledger, player, &round).await })
        })
        .collect();
    for task in tasks {
        let ended = task.await.unwrap();
        say(&ended);
    }
}

/// Claims one event after another, and now and then with a stale token, until there is no right answer any more.
async fn claim_as(ledger: &Ledger, player: u64, round: &str) -> String {
    let base = 1_000_000 * round.parse::<u64>().unwrap();
    for number in 0.. {
        let event = format!("r{round}-e{number}");
        let token = base + number + 1;
        let asked = claim(token, player, &event, &format!("{player}-{event}"));
        match ledger.claim(asked).await {
            Ok(ClaimOutcome::Applied(receipt)) => {
                acknowledge(player.cast_signed(), &event, receipt.as_bytes());
            }
            Ok(other) => return format!("broken {other:?}"),
            Err(error) => return format!("stopped {}", error.may_have_applied()),
        }
        if number % 8 != 7 {
            continue;
        }
        let (stale, attempt) = (token - 1, format!("stale-{player}-{event}"));
        match ledger.claim(claim(stale, player, "never", &attempt)).await {
            Ok(ClaimOutcome::Stale { seen, .. }) => {
                say(&format!("refused {player} {attempt} {stale} {seen}"));
            }
            Ok(other) => return format!("broken {other:?}"),
            Err(error) => return format!("stopped {}", error.may_have_applied()),
        }
    }
    unreachable!("numbers do not end")
}

fn child_command(dir: &Path, round: u64, crash: Option<&str>) -> Command {
    let mut command = killed::child("store::sled::crash_tests::child", crash);
    command.env(DIR, dir).env(ROUND, round.to_string());
    command
}

/// Everything that children were told.
#[derive(Debug, Default)]
struct Told {
    receipts: Acknowledged,
    refusals: Vec<(u64, String, u64, u64)>,
    stops: Vec<String>,
}

impl Told {
    /// Reads the child's lines until it ends; calls `enough` with the number of acknowledgements after each line.
    fn read(&mut self, child: &mut Child, mut enough: impl FnMut(&mut Child, usize)) {
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut acknowledged = 0;
        for line in out.lines() {
            let line = line.unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["@ack", player, event, hex] => {
                    self.receipts.note(player, event, hex);
                    acknowledged += 1;
                }
                ["@refused", player, attempt, presented, seen] => {
                    self.refusals.push((
                        player.parse().unwrap(),
                        (*attempt).to_owned(),
                        presented.parse().unwrap(),
                        seen.parse().unwrap(),
                    ));
                }
                ["@broken", ..] => panic!("{line}"),
                ["@stopped", unknown] => self.stops.push((*unknown).to_owned()),
                _ => {}
            }
            enough(child, acknowledged);
        }
        child.wait().unwrap();
    }

    /// Opens what the children left behind and looks for all that they were told.
    async fn verify(&self, dir: &Path, context: &str) {
        let ledger =
            Ledger::open(SledStore::open(dir).unwrap_or_else(|error| panic!("{context}: {error:?}")));
        for (player, attempt, presented, first_seen) in &self.refusals {
            let again = ledger
                .claim(claim(*presented, *player, "never", attempt))
                .await
                .unwrap();
            assert!(
                matches!(again, ClaimOutcome::Stale { seen, .. } if seen.get() == *first_seen),
                "{context}: {attempt} was refused with {first_seen}, now {again:?}"
            );
        }
        self.receipts.are_in(&ledger, context).await;
        ledger.close().await.unwrap();
    }
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_kill_9_at_any_moment() {
    const SEED: u64 = 20_261_130;
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::default();
    let mut random = numbers(SEED);
    for round in 0..12 {
        let kill_after = 1 + usize::try_from(random() % 800).unwrap();
        let mut child = child_command(dir.path(), round, None).spawn().unwrap();
        told.read(&mut child, |child, acknowledged| {
            if acknowledged == 1 {
                let second = SledStore::open(dir.path());
                assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
            }
            if acknowledged == kill_after {
                child.kill().unwrap();
            }
        });
        told.verify(
            dir.path(),
            &format!("seed {SEED}, round {round}, killed after {kill_after}"),
        )
        .await;
    }
    assert!(told.receipts.len() > 500, "{}", told.receipts.len());
    assert!(!told.refusals.is_empty());
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_a_crash_at_each_named_point() {
    for stage in STAGES {
        let dir = tempfile::tempdir().unwrap();
        let mut told = Told::default();
        for (round, groups) in [(0, 0), (1, 1), (2, 29)] {
            let crash = format!("{stage}:{groups}");
            let mut child = child_command(dir.path(), round, Some(&crash)).spawn().unwrap();
            told.read(&mut child, |_, _| {});
            told.verify(dir.path(), &format!("crash at {stage} after {groups} groups"))
                .await;
        }
        assert!(told.receipts.len() > 24, "{stage}: {}", told.receipts.len());
    }
}

/// The limit on the size of files stands for a full disk: the write fails, the ledger stops and says so, and what it
/// had acknowledged is there once there is room.
#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_stops_the_ledger_and_loses_nothing_acknowledged() {
    for blocks in [4_200, 8_300, 12_288, 16_500] {
        let dir = tempfile::tempdir().unwrap();
        let child = child_command(dir.path(), 0, None);
        let mut limited = Command::new("sh");
        limited
            .arg("-c")
            // The signal would kill; ignored, the write fails. `ulimit -f` counts blocks of 512 bytes.
            .arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""))
            .arg(child.get_program())
            .args(child.get_args())
            .envs(child.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut told = Told::default();
        told.read(&mut limited.spawn().unwrap(), |_, _| {});
        assert_eq!(told.stops.len() as u64, CHILD_TASKS, "every caller is told");
        assert!(told.receipts.len() > 0);
        told.verify(dir.path(), &format!("files of {blocks} blocks"))
            .await;
    }
}
