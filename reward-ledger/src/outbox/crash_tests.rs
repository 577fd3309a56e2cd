//! Publishers that are killed at named points, in real processes, on sled and on PostgreSQL: the outside does everything once,
//! and everything.
//!
//! The child is this very test binary, asked to run [`child`] alone. The outside server is a file that outlives it: a line
//! for each effect. It remembers its keys, as one must that is told more than once; the negative control shows what happens
//! with one that does not, and tells no status.

use std::fs::{self, File};
use std::future::ready;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};
use tempfile::TempDir;

use super::{Answer, PublishPolicy, Publisher, Status, Target, TargetFuture, Territory};
use crate::audit::{AuditReport, Expectations, OutsideRecords, Violation};
use crate::event_id::RewardEventId;
use crate::killed::{self, CrashPoint};
use crate::ledger::Ledger;
use crate::store::server::PostgresServer;
use crate::store::{PostgresConfig, PostgresStage, PostgresStore, SledConfig, SledStore, Stage};
use crate::types::{Claim, Delivery, Partition};

const DIR: &str = "REWARD_LEDGER_PUBLISHER_DIR";
/// The database, where the ledger is in one.
const URL: &str = "REWARD_LEDGER_PUBLISHER_URL";
/// `honest`, or `forgetful` for the negative control.
const OUTSIDE: &str = "REWARD_LEDGER_PUBLISHER_OUTSIDE";
const PLAYERS: i64 = 8;
const EVENTS: usize = 4;

/// Named points of a delivery. The publisher's lease is a transaction, and its marks are the next and further ones: a point of
/// some of them is met whatever their number.
const POINTS: [&str; 6] = [
    "before-transaction",
    "before-mark",
    "before-commit",
    "after-mark",
    "before-send",
    "after-send",
];

/// An outside server whose books are a file.
#[derive(Debug)]
struct FileTarget {
    books: PathBuf,
    crash: Arc<CrashPoint>,
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
    let crash = Arc::new(CrashPoint::from_environment());
    let ledger = open(dir, std::env::var(URL).ok().as_deref(), &crash).await;
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

/// The ledger in the database at `url`, or else in `dir`.
async fn open(dir: &Path, url: Option<&str>, crash: &Arc<CrashPoint>) -> Ledger {
    let crash = Arc::clone(crash);
    let Some(url) = url else {
        let config = SledConfig::builder(dir.join("ledger")).on_stage(move |stage| {
            match stage {
                Stage::Deciding => crash.pass("before-transaction"),
                Stage::Applying => crash.pass("before-mark"),
                Stage::Syncing => crash.pass("before-commit"),
                Stage::Answering => crash.pass("after-mark"),
                Stage::Idle | Stage::Flushing | Stage::Closing => {}
            }
            Ok(())
        });
        return Ledger::open(SledStore::open_with(config.build().unwrap()).unwrap());
    };
    let config = PostgresConfig::builder(url).on_stage(move |stage| {
        match stage {
            PostgresStage::BeforeTransaction => crash.pass("before-transaction"),
            PostgresStage::BeforeWrites => crash.pass("before-mark"),
            PostgresStage::BeforeCommit => crash.pass("before-commit"),
            PostgresStage::AfterCommit => crash.pass("after-mark"),
            PostgresStage::BeforeLookUp => {}
        }
        Ok(())
    });
    Ledger::open(PostgresStore::open_with(config.build().unwrap()).await.unwrap())
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

/// Where the outside keeps its books, and the ledger its rows unless those are in a database.
struct Scene {
    dir: TempDir,
    url: Option<String>,
}

impl Scene {
    async fn on_each_store() -> [Self; 2] {
        let url = PostgresServer::shared().await.database().await;
        [None, Some(url)].map(|url| Self {
            dir: tempfile::tempdir().unwrap(),
            url,
        })
    }

    /// Runs a child to its end; whether it was killed.
    fn run(&self, outside: &str, crash: Option<&str>) -> bool {
        let mut command = killed::child("outbox::crash_tests::child", crash);
        command
            .env(DIR, self.dir.path())
            .env(OUTSIDE, outside)
            .envs(self.url.iter().map(|url| (URL, url)))
            .stdout(Stdio::null());
        !command.status().unwrap().success()
    }

    fn books(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("books")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What an audit says that also reads the books of the outside.
    async fn audit(&self) -> AuditReport {
        let nowhere = Arc::new(CrashPoint::from_environment());
        let ledger = open(self.dir.path(), self.url.as_deref(), &nowhere).await;
        let mut outside = OutsideRecords::new();
        self.books().iter().for_each(|key| outside.effect(key));
        let report = ledger
            .audit_with(&Expectations::new(), Some(&outside), |_| {}, |_| {})
            .await
            .unwrap();
        ledger.close().await.unwrap();
        report
    }
}

/// S8, S9, L10, L11, L13, L30: whatever was claimed is done outside once, in order per player, wherever publishers die.
#[tokio::test]
async fn l30_wherever_a_publisher_is_killed_everything_is_done_once_and_in_order() {
    for point in POINTS {
        for scene in Scene::on_each_store().await {
            let place = scene.url.as_deref().unwrap_or("sled");
            let mut killed = 0;
            for times in [0, 3, 7] {
                killed += u32::from(scene.run("honest", Some(&format!("{point}:{times}"))));
            }
            assert!(killed > 0, "{point} was never met, {place}");
            assert!(
                !scene.run("honest", None),
                "{point}, {place}: the last one ends by itself"
            );

            let books = scene.books();
            for player in 0..PLAYERS {
                let of_player = books
                    .iter()
                    .filter(|key| key.starts_with(&format!("grant/{player}/")));
                let expected: Vec<_> = (0..EVENTS)
                    .map(|event| format!("grant/{player}/event-{event}"))
                    .collect();
                assert_eq!(
                    of_player.cloned().collect::<Vec<_>>(),
                    expected,
                    "{point}, {place}"
                );
            }
            let report = scene.audit().await;
            let all = PLAYERS.unsigned_abs() * EVENTS as u64;
            assert!(report.is_clean(), "{point}, {place}: {:#?}", report.violations);
            assert_eq!((report.claims, report.delivered), (all, all), "{point}, {place}");
        }
    }
    assert!(Partition::all().count() > 1);
}

/// The negative control: an outside server that remembers no keys and tells no status does it twice when a publisher dies
/// between the send and its mark, and the audit against its books says so.
#[tokio::test]
async fn killed_after_the_send_towards_a_forgetful_server_it_is_done_twice_and_the_audit_says_so() {
    for scene in Scene::on_each_store().await {
        assert!(scene.run("forgetful", Some("after-send:0")));
        assert!(!scene.run("forgetful", None));
        let checks: Vec<_> = scene
            .audit()
            .await
            .violations
            .iter()
            .map(Violation::check)
            .collect();
        assert!(checks.contains(&"C5"), "{checks:?}");
    }
}
