//! What the tests that kill processes share: a child of this very test binary, the point where it dies, what it was told
//! before, and the look whether that is there.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event_id::RewardEventId;
use crate::ledger::Ledger;

/// `point:times`: where the child dies, and how often it passes there before.
const CRASH: &str = "REWARD_LEDGER_CRASH";

/// This test binary, asked to run `test` alone, to be read line by line. It dies at `crash`, if there is one.
pub(crate) fn child(test: &str, crash: Option<&str>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .envs(crash.map(|crash| (CRASH, crash)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Ends the process as kill -9 does, at one named point.
#[derive(Debug)]
pub(crate) struct CrashPoint {
    point: Option<(String, u64)>,
    passed: AtomicU64,
}

impl CrashPoint {
    /// As whoever started this child says.
    pub(crate) fn from_environment() -> Self {
        let point = std::env::var(CRASH).ok().map(|text| {
            let (point, times) = text.split_once(':').unwrap();
            (point.to_owned(), times.parse().unwrap())
        });
        Self {
            point,
            passed: AtomicU64::new(0),
        }
    }

    pub(crate) fn pass(&self, point: &str) {
        if let Some((at, times)) = &self.point
            && at == point
            && self.passed.fetch_add(1, Ordering::SeqCst) == *times
        {
            std::process::abort();
        }
    }
}

/// Says one whole line, past the test harness's capture.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone.
    let _gone = out
        .write_all(format!("\n@{line}\n").as_bytes())
        .and_then(|()| out.flush());
}

/// Says that a claim was answered with this receipt.
pub(crate) fn acknowledge(player: i64, event: &str, receipt: &[u8]) {
    say(&format!("ack {player} {event} {}", hex(receipt)));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The receipts that children were answered with.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(BTreeMap<(i64, String), String>);

impl Acknowledged {
    /// Takes an acknowledgement in; all answers to one claim are the same bytes.
    #[track_caller]
    pub(crate) fn note(&mut self, player: &str, event: &str, receipt: &str) {
        self.put((player.parse().unwrap(), event.to_owned()), receipt.to_owned());
    }

    /// Takes all of another one in.
    #[track_caller]
    pub(crate) fn append(&mut self, other: Self) {
        for (key, receipt) in other.0 {
            self.put(key, receipt);
        }
    }

    #[track_caller]
    fn put(&mut self, key: (i64, String), receipt: String) {
        let first = self.0.entry(key.clone()).or_insert_with(|| receipt.clone());
        assert_eq!(*first, receipt, "{key:?}");
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Looks for all of them in a ledger, and audits it.
    pub(crate) async fn are_in(&self, ledger: &Ledger, context: &str) {
        for ((player, event), receipt) in &self.0 {
            let id = RewardEventId::parse(event).unwrap();
            let found = ledger.get(*player, &id).await.unwrap();
            let found = found.map(|receipt| hex(receipt.as_bytes()));
            assert_eq!(
                found.as_ref(),
                Some(receipt),
                "{context}: player {player} {event}"
            );
        }
        let report = ledger.audit().await.unwrap();
        assert!(report.is_clean(), "{context}: {:#?}", report.violations);
        assert!(report.claims >= self.0.len() as u64, "{context}");
    }
}
