//! The store on a real server: the suite, many workers, lost connections and lost answers, migrations, settings.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};

use super::server::{PostgresServer, connect};
use super::{OpenPostgresError, PostgresConfig, PostgresStage, PostgresStore};
use crate::core::{ClaimOutcome, Protections};
use crate::error::{ClaimError, StoreError};
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::store::{Health, conformance};
use crate::types::{Claim, ClaimBuilder, Receipt};

pub(super) fn gold(token: u64, player: i64, event: &str) -> ClaimBuilder {
    let name = LeaseName::new(format!("lock:reward:{player}")).unwrap();
    let fence = Fence::new(name, FenceToken::new(token).unwrap());
    Claim::builder(fence, player, RewardEventId::parse(event).unwrap(), 500).item("gold")
}

fn applied(outcome: ClaimOutcome) -> Receipt {
    assert!(matches!(outcome, ClaimOutcome::Applied(_)), "{outcome:?}");
    outcome.receipt().unwrap().clone()
}

async fn ledger(url: &str) -> Ledger {
    Ledger::open(PostgresStore::open(url).await.unwrap())
}

pub(super) async fn is_sound(ledger: &Ledger) {
    let report = ledger.audit().await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.violations);
}

#[tokio::test]
async fn the_postgres_store_passes_the_suite() {
    let server = PostgresServer::shared().await;
    let open = async |protections: Protections| {
        let config = PostgresConfig::builder(server.database().await)
            .protections(protections)
            .build()
            .unwrap();
        Ledger::builder(PostgresStore::open_with(config).await.unwrap())
    };
    conformance::check(open).await;
}

/// L01, with callers spread over workers that know nothing of each other, under locks of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixty_four_callers_of_four_workers_one_is_granted_and_all_get_the_same_bytes() {
    let url = PostgresServer::shared().await.database().await;
    let mut callers = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let ledger = ledger(&url).await;
        for caller in 0..16 {
            let ledger = ledger.clone();
            let name = LeaseName::new(format!("lock-{worker}-{caller}")).unwrap();
            let fence = Fence::new(name, FenceToken::new(7).unwrap());
            let event = RewardEventId::parse("week-34").unwrap();
            let claim = Claim::builder(fence, 42, event, 500)
                .item("gold")
                .build()
                .unwrap();
            callers.spawn(async move { ledger.claim(claim).await.unwrap() });
        }
    }
    let told = callers.join_all().await;
    let granted = told
        .iter()
        .filter(|told| matches!(told, ClaimOutcome::Applied(_)))
        .count();
    assert_eq!(granted, 1, "the others are replayed, none sees an error");
    let mut receipts: Vec<_> = told.iter().filter_map(ClaimOutcome::receipt).collect();
    assert_eq!(receipts.len(), 64);
    receipts.dedup();
    assert_eq!(receipts.len(), 1);
    is_sound(&ledger(&url).await).await;
}

/// One attempt id under two locks at once: the fences do not order them, the attempt's own key does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_attempt_id_used_at_once_for_two_events_is_granted_once() {
    let url = PostgresServer::shared().await.database().await;
    let workers = [ledger(&url).await, ledger(&url).await];
    for round in 0..20_i64 {
        let told = tokio::join!(
            workers[0].claim(
                gold(1, 2 * round, "a")
                    .attempt(format!("try-{round}"))
                    .build()
                    .unwrap()
            ),
            workers[1].claim(
                gold(1, 2 * round + 1, "b")
                    .attempt(format!("try-{round}"))
                    .build()
                    .unwrap()
            ),
        );
        let told = [told.0.unwrap(), told.1.unwrap()];
        assert_eq!(
            told.iter().filter(|told| told.is_accepted()).count(),
            1,
            "{told:?}"
        );
        assert!(
            told.iter()
                .any(|told| matches!(told, ClaimOutcome::Conflict { .. })),
            "{told:?}"
        );
    }
    is_sound(&workers[0]).await;
}

/// Workers that claim the same things in every order: nobody waits in a circle for long, and all agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_claim_the_same_events_in_any_order_all_agree() {
    let url = PostgresServer::shared().await.database().await;
    let mut callers = tokio::task::JoinSet::new();
    for worker in 0..3_i64 {
        let ledger = ledger(&url).await;
        for number in 0..60_i64 {
            let ledger = ledger.clone();
            let player = (number * [1, 7, 13][usize::try_from(worker).unwrap()]) % 60;
            callers.spawn(async move {
                let outcome = ledger
                    .claim(gold(1, player, "week-34").build().unwrap())
                    .await
                    .unwrap();
                (player, outcome.receipt().unwrap().as_bytes().to_vec())
            });
        }
    }
    let mut told = callers.join_all().await;
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 60, "one receipt a player, whoever asked");
    let ledger = ledger(&url).await;
    is_sound(&ledger).await;
    assert_eq!(ledger.audit().await.unwrap().claims, 60);
}

/// Fails the given stage on its first `times` passes.
fn failing(stage: PostgresStage, times: u32) -> impl Fn(PostgresStage) -> io::Result<()> {
    let left = AtomicU32::new(times);
    move |at| {
        let fails = at == stage
            && left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .is_ok();
        if fails {
            Err(io::Error::other("cut"))
        } else {
            Ok(())
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_at_any_stage_is_made_anew_and_the_claim_is_granted_once() {
    for stage in [
        PostgresStage::BeforeTransaction,
        PostgresStage::BeforeWrites,
        PostgresStage::BeforeCommit,
        PostgresStage::AfterCommit,
    ] {
        let url = PostgresServer::shared().await.database().await;
        let config = PostgresConfig::builder(&url)
            .on_stage(failing(stage, 2))
            .build()
            .unwrap();
        let ledger = Ledger::open(PostgresStore::open_with(config).await.unwrap());
        let claim = gold(1, 42, "week-34").build().unwrap();
        let receipt = applied(ledger.claim(claim.clone()).await.unwrap());
        assert_eq!(
            ledger.claim(claim).await.unwrap(),
            ClaimOutcome::Replayed(receipt),
            "{stage}"
        );
        let report = ledger.audit().await.unwrap();
        assert!(report.is_clean() && report.claims == 1, "{stage}: {report:?}");
    }
}

/// Patience ends while nothing is known of the commit: the caller is told so, and learns it by asking again.
#[tokio::test]
async fn a_commit_of_which_nothing_can_be_learnt_is_unknown_and_its_retry_gets_the_receipt() {
    let url = PostgresServer::shared().await.database().await;
    let config = PostgresConfig::builder(&url)
        .patience(Duration::from_secs(2))
        .on_stage(|stage| match stage {
            PostgresStage::AfterCommit | PostgresStage::BeforeLookUp => Err(io::Error::other("cut")),
            PostgresStage::BeforeTransaction | PostgresStage::BeforeWrites | PostgresStage::BeforeCommit => {
                Ok(())
            }
        })
        .build()
        .unwrap();
    let cut_off = Ledger::open(PostgresStore::open_with(config).await.unwrap());
    let claim = gold(1, 42, "week-34").build().unwrap();
    let error = cut_off.claim(claim.clone()).await.unwrap_err();
    assert!(
        matches!(error, ClaimError::Store(StoreError::Unavailable { .. })),
        "{error:?}"
    );
    assert!(error.may_have_applied() && error.is_retryable());
    assert!(matches!(cut_off.health(), Health::Stalled));

    let ledger = ledger(&url).await;
    let told = ledger.claim(claim).await.unwrap();
    assert!(matches!(told, ClaimOutcome::Replayed(_)), "{told:?}");
    is_sound(&ledger).await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_unavailable_and_nothing_was_applied() {
    let url = PostgresServer::shared().await.database().await;
    let config = PostgresConfig::builder(&url)
        .patience(Duration::from_secs(2))
        .on_stage(failing(PostgresStage::BeforeCommit, u32::MAX))
        .build()
        .unwrap();
    let cut_off = Ledger::open(PostgresStore::open_with(config).await.unwrap());
    let error = cut_off
        .claim(gold(1, 42, "week-34").build().unwrap())
        .await
        .unwrap_err();
    assert!(!error.may_have_applied() && error.is_retryable(), "{error:?}");
    let ledger = ledger(&url).await;
    assert_eq!(ledger.audit().await.unwrap().claims, 0);
}

/// The server ends every session under load: nobody is told an error, and nothing is granted twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_the_server_ends_are_made_anew_under_load() {
    let url = PostgresServer::shared().await.database().await;
    let ledger = ledger(&url).await;
    let admin = connect(&url).await.unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for player in 0..16_i64 {
        let ledger = ledger.clone();
        callers.spawn(async move {
            for week in 0..30 {
                applied(
                    ledger
                        .claim(gold(1, player, &format!("week-{week}")).build().unwrap())
                        .await
                        .unwrap(),
                );
            }
        });
    }
    let end_sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let mut ended = 0;
    while !callers.is_empty() {
        ended += admin.query(end_sessions, &[]).await.unwrap().len();
        callers.join_next().await.unwrap().unwrap();
    }
    assert!(ended > 3, "{ended}");
    is_sound(&ledger).await;
    assert_eq!(ledger.audit().await.unwrap().claims, 16 * 30);
}

#[tokio::test]
async fn unsafe_settings_are_refused_and_named() {
    let server = PostgresServer::start(&[("fsync", "off")]).await.unwrap();
    let refused = PostgresStore::open(server.url("postgres")).await.unwrap_err();
    assert!(
        matches!(refused, OpenPostgresError::UnsafeSetting { setting: "fsync" }),
        "{refused:?}"
    );

    let url = PostgresServer::shared().await.database().await;
    let admin = connect(&url).await.unwrap();
    let name: String = admin
        .query_one("SELECT current_database()", &[])
        .await
        .unwrap()
        .get(0);
    let weaken = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    admin.batch_execute(&weaken).await.unwrap();
    let refused = PostgresStore::open(&url).await.unwrap_err();
    assert!(
        matches!(
            refused,
            OpenPostgresError::UnsafeSetting {
                setting: "synchronous_commit"
            }
        ),
        "{refused:?}"
    );
    assert!(!refused.is_retryable());
}

/// A setting can change under an open connection; each transaction looks.
#[tokio::test]
async fn a_server_that_becomes_unsafe_is_refused_from_the_next_claim_on() {
    let server = PostgresServer::start(&[]).await.unwrap();
    let url = server.url("postgres");
    let ledger = ledger(&url).await;
    applied(
        ledger
            .claim(gold(1, 42, "week-34").build().unwrap())
            .await
            .unwrap(),
    );
    let admin = connect(&url).await.unwrap();
    admin.batch_execute("ALTER SYSTEM SET fsync = off").await.unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let mut week = 0;
    let refused = loop {
        week += 1;
        match ledger
            .claim(gold(1, 1, &format!("week-{week}")).build().unwrap())
            .await
        {
            Ok(_) if week < 2_000 => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(!refused.may_have_applied());
    let ClaimError::Store(StoreError::Unavailable { failure, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert!(failure.to_string().contains("fsync"), "{failure}");
}

#[tokio::test]
async fn many_processes_open_an_empty_database_at_once_and_a_newer_one_is_refused() {
    let url = PostgresServer::shared().await.database().await;
    let opened = Arc::new(AtomicU32::new(0));
    let mut openers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (url, opened) = (url.clone(), Arc::clone(&opened));
        openers.spawn(async move {
            let ledger = ledger(&url).await;
            opened.fetch_add(1, Ordering::SeqCst);
            ledger.close().await.unwrap();
        });
    }
    openers.join_all().await;
    assert_eq!(opened.load(Ordering::SeqCst), 8);

    let admin = connect(&url).await.unwrap();
    let applied = admin
        .query("SELECT version FROM reward_migration ORDER BY 1", &[])
        .await
        .unwrap();
    assert_eq!(applied.len(), super::migrations::COUNT);
    admin
        .batch_execute("INSERT INTO reward_migration (version, name) VALUES (9999, 'later')")
        .await
        .unwrap();
    let refused = PostgresStore::open(&url).await.unwrap_err();
    assert!(
        matches!(refused, OpenPostgresError::Newer { found: 9_999, .. }),
        "{refused:?}"
    );
}

#[test]
fn a_configuration_never_shows_its_password_and_holds_together() {
    let config = PostgresConfig::builder("postgres://ledger:hunter2@db/rewards")
        .build()
        .unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    let builder = PostgresConfig::builder("postgres://ledger:hunter2@db/rewards");
    assert!(!format!("{builder:?}").contains("hunter2"));
    for refused in [
        PostgresConfig::builder("postgres://ledger:hunter2@db:port/rewards").build(),
        PostgresConfig::builder("postgres://ledger:hunter2@db/rewards?sslmode=whatever").build(),
        PostgresConfig::builder("host=db").writers(0).build(),
        PostgresConfig::builder("host=db")
            .patience(Duration::from_millis(1))
            .build(),
    ] {
        let refused = refused.unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("hunter2"), "{refused}");
    }
}

/// Somebody's own program writes nonsense into our tables: the audit names it, and everybody else is served.
#[tokio::test]
async fn a_row_that_does_not_read_back_is_named_by_the_audit_and_hurts_nobody_else() {
    let url = PostgresServer::shared().await.database().await;
    let ledger = ledger(&url).await;
    for player in 1..=3 {
        applied(
            ledger
                .claim(gold(1, player, "week-34").build().unwrap())
                .await
                .unwrap(),
        );
    }
    let admin = connect(&url).await.unwrap();
    let refused = admin
        .execute("UPDATE reward_claim SET amount = 7 WHERE player_id = 2", &[])
        .await;
    assert!(refused.is_err(), "columns must say what the receipt says");
    admin
        .batch_execute("ALTER TABLE reward_claim DROP CONSTRAINT reward_claim_agrees")
        .await
        .unwrap();
    admin
        .batch_execute("UPDATE reward_claim SET receipt = 'junk' WHERE player_id = 1")
        .await
        .unwrap();
    let told = tokio::join!(
        ledger.claim(gold(1, 1, "week-34").build().unwrap()),
        ledger.claim(gold(1, 3, "week-35").build().unwrap()),
    );
    let error = told.0.unwrap_err();
    assert!(!error.is_retryable() && !error.may_have_applied(), "{error:?}");
    applied(told.1.unwrap());
    let report = ledger.audit().await.unwrap();
    let text = format!("{:?}", report.violations);
    assert!(text.contains("UnreadableRow"), "{text}");
}

/// Tables grow faster than the server looks at them: a plan that was made while they were empty must not read them whole.
#[tokio::test]
async fn claims_never_read_a_table_whole() {
    let url = PostgresServer::shared().await.database().await;
    let ledger = ledger(&url).await;
    for player in 1..=40 {
        applied(
            ledger
                .claim(gold(1, player, "week-34").build().unwrap())
                .await
                .unwrap(),
        );
    }
    assert!(ledger.audit().await.unwrap().is_clean());
    ledger.close().await.unwrap();
    let admin = connect(&url).await.unwrap();
    let counted = "SELECT sum(n_tup_ins) FILTER (WHERE relname = 'reward_claim')::bigint, \
         string_agg(relname, ', ') FILTER (WHERE seq_tup_read > 0 AND relname <> 'reward_lane') \
         FROM pg_stat_user_tables";
    loop {
        // A session's counts are there once it has ended.
        let row = admin.query_one(counted, &[]).await.unwrap();
        if row.get::<_, Option<i64>>(0) == Some(40) {
            assert_eq!(row.get::<_, Option<&str>>(1), None, "tables that were read whole");
            break;
        }
    }
}
