//! Publishers that are killed at named points, in real processes: the outside does everything once, and everything.
//!
//! The child is this very test binary, asked to run [`child`] alone. The outside server is a file that outlives it: a line
//! for each effect. It remembers its keys, as one must that is told more than once; the negative control shows what happens
//! with one that does not, and tells no status.

use std::fs::{self, File};
use std::future::ready;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};

use super::{Answer, PublishPolicy, Publisher, Status, Target, TargetFuture, Territory};
use crate::audit::{Expectations, OutsideRecords};
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::store::{SledConfig, SledStore, Stage};
use crate::types::{Claim, Delivery, Partition};

const DIR: &str = "REWARD_LEDGER_PUBLISHER_DIR";
/// Where the child dies: a point, and how often it is passed before.
const CRASH: &str = "REWARD_LEDGER_PUBLISHER_CRASH";
/// `honest`, or `forgetful` for the negative control.
const OUTSIDE: &str = "REWARD_LEDGER_PUBLISHER_OUTSIDE";
const PLAYERS: i64 = 8;
const EVENTS: usize = 4;

/// Named points of a delivery.
const POINTS: [&str; 4] = ["before-send", "after-send", "before-mark", "after-mark"];

/// An outside server whose books are a file.
#[derive(Debug)]
struct FileTarget {
    books: PathBuf,
    crash: Crash,
    is_honest: bool,
}

impl FileTarget {
    fn has_done(&self, key: &str) -> bool {
        let books = fs::read_to_string(&self.books).unwrap_or_default();
        books.lines().any(|line| line == key)
    }
}

impl Target for FileTarget {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Answer> {
        self.crash.pass("before-send");
        let key = delivery.idempotency_key();
        if !self.is_honest || !self.has_done(&key) {
            let mut books = File::options()
                .create(true)
                .append(true)
                .open(&self.books)
                .unwrap();
            books.write_all(format!("{key}\n").as_bytes()).unwrap();
        }
        self.crash.pass("after-send");
        Box::pin(ready(Answer::Done))
    }

    fn status<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Status> {
        let status = match (self.is_honest, self.has_done(&delivery.idempotency_key())) {
            (false, _) => Status::Unknown("no status".into()),
            (true, true) => Status::Done,
            (true, false) => Status::NotDone,
        };
        Box::pin(ready(status))
    }
}

/// Ends the process as kill -9 does, at one point.
#[derive(Debug, Clone)]
struct Crash {
    point: Option<(String, u64)>,
    passed: Arc<AtomicU64>,
}

impl Crash {
    fn from_environment() -> Self {
        let point = std::env::var(CRASH).ok().map(|text| {
            let (point, times) = text.split_once(':').unwrap();
            (point.to_owned(), times.parse().unwrap())
        });
        Self {
            point,
            passed: Arc::default(),
        }
    }

    fn pass(&self, point: &str) {
        if let Some((at, times)) = &self.point
            && at == point
            && self.passed.fetch_add(1, Ordering::SeqCst) == *times
        {
            std::process::abort();
        }
    }
}

/// Not a test of its own: what the children run. Without their environment it does nothing.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(publish_everything(Path::new(&dir)));
}

/// Claims everything (a replay after the first time), and publishes until nothing is open.
async fn publish_everything(dir: &Path) {
    let crash = Crash::from_environment();
    let marks = crash.clone();
    // The publisher's lease is the first write of a group, its marks the second and further ones: a point before or after
    // some of them is met whatever their number.
    let config = SledConfig::builder(dir.join("ledger"))
        .on_stage(move |stage| {
            if stage == Stage::Applying {
                marks.pass("before-mark");
            } else if stage == Stage::Answering {
                marks.pass("after-mark");
            }
            Ok(())
        })
        .build()
        .unwrap();
    let ledger = Ledger::open(SledStore::open_with(config).unwrap());
    for event in 0..EVENTS {
        let batch = (0..PLAYERS).map(|player| claim(player, event)).collect();
        ledger.claim_each(batch).await.unwrap();
    }
    let target = FileTarget {
        books: dir.join("books"),
        crash,
        is_honest: std::env::var(OUTSIDE).is_ok_and(|outside| outside == "honest"),
    };
    let policy = PublishPolicy::builder(Duration::from_secs(3_600))
        .request_timeout(Duration::from_millis(200))
        .lease_for(Duration::from_millis(400))
        .tries_max(1_000)
        .backoff(Duration::from_millis(1), Duration::from_millis(10))
        .poll_every(Duration::from_millis(10))
        .rows_in_flight_max(6)
        .build()
        .unwrap();
    let publisher = Publisher::start(ledger.clone(), target, policy, Territory::everything());
    loop {
        let idle = publisher.published().idle_rounds;
        if ledger.standing().await.unwrap().outbox_open == 0 {
            break;
        }
        // Open rows and nothing to lease: those of a publisher that died.
        let more =
            publisher.published_until(|published| published.idle_rounds > idle || published.delivered > 0);
        let _ = tokio::time::timeout(Duration::from_millis(50), more).await;
    }
    publisher.stop().await;
    ledger.close().await.unwrap();
}

fn claim(player: i64, event: usize) -> Claim {
    let fence = Fence::new(LeaseName::new("lock").unwrap(), FenceToken::new(1).unwrap());
    let id = RewardEventId::parse(format!("event-{event}")).unwrap();
    Claim::builder(fence, player, id, 500)
        .item("gold")
        .attempt(format!("{player}-{event}"))
        .build()
        .unwrap()
}

/// Runs a child to its end; whether it was killed.
fn run(dir: &Path, outside: &str, crash: Option<&str>) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "outbox::crash_tests::child", "--test-threads=1"])
        .env(DIR, dir)
        .env(OUTSIDE, outside)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(crash) = crash {
        command.env(CRASH, crash);
    }
    !command.status().unwrap().success()
}

fn books(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("books")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// S8, S9, L10, L11, L13, L30: whatever was claimed is done outside once, in order per player, wherever publishers die.
#[tokio::test]
async fn l30_wherever_a_publisher_is_killed_everything_is_done_once_and_in_order() {
    for point in POINTS {
        let dir = tempfile::tempdir().unwrap();
        let mut killed = 0;
        for times in [0, 3, 7] {
            killed += u32::from(run(dir.path(), "honest", Some(&format!("{point}:{times}"))));
        }
        assert!(killed > 0, "{point} was never met");
        assert!(
            !run(dir.path(), "honest", None),
            "{point}: the last one ends by itself"
        );

        let books = books(dir.path());
        let mut outside = OutsideRecords::new();
        books.iter().for_each(|key| outside.effect(key));
        for player in 0..PLAYERS {
            let of_player = books
                .iter()
                .filter(|key| key.starts_with(&format!("grant/{player}/")));
            let expected: Vec<_> = (0..EVENTS)
                .map(|event| format!("grant/{player}/event-{event}"))
                .collect();
            assert_eq!(of_player.cloned().collect::<Vec<_>>(), expected, "{point}");
        }
        let ledger = Ledger::open(SledStore::open(dir.path().join("ledger")).unwrap());
        let report = ledger
            .audit_with(&Expectations::new(), Some(&outside), |_| {}, |_| {})
            .await
            .unwrap();
        let all = PLAYERS.unsigned_abs() * EVENTS as u64;
        assert!(report.is_clean(), "{point}: {:#?}", report.violations);
        assert_eq!((report.claims, report.delivered), (all, all), "{point}");
        ledger.close().await.unwrap();
    }
    assert!(Partition::all().count() > 1);
}

/// The negative control: an outside server that remembers no keys and tells no status does it twice when a publisher dies
/// between the send and its mark, and the audit against its books says so.
#[tokio::test]
async fn killed_after_the_send_towards_a_forgetful_server_it_is_done_twice_and_the_audit_says_so() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(dir.path(), "forgetful", Some("after-send:0")));
    assert!(!run(dir.path(), "forgetful", None));
    let books = books(dir.path());
    let mut outside = OutsideRecords::new();
    books.iter().for_each(|key| outside.effect(key));
    let ledger = Ledger::open(SledStore::open(dir.path().join("ledger")).unwrap());
    let report = ledger
        .audit_with(&Expectations::new(), Some(&outside), |_| {}, |_| {})
        .await
        .unwrap();
    let checks: Vec<_> = report
        .violations
        .iter()
        .map(crate::audit::Violation::check)
        .collect();
    assert!(checks.contains(&"C5"), "{checks:?}");
    ledger.close().await.unwrap();
}
