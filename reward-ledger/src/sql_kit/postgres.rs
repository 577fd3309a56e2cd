//! On a PostgreSQL server of the tests' own.

use std::fmt::Debug;

use crate::store::server::{PostgresServer, connect};

const KIT: &str = include_str!("../../sql/postgres.sql");
const REWARD: &str = include_str!("../../sql/postgres_reward.sql");
const PAYMENT: &str = include_str!("../../sql/postgres_payment.sql");

/// The SQLSTATE that a statement failed with.
fn code<T: Debug, E: std::error::Error + 'static>(outcome: Result<T, E>) -> String {
    let error = outcome.unwrap_err();
    // The driver's own error shows the state; nothing else of it is needed here.
    let text = format!("{error:?}");
    ["FN001", "FN002", "FN003", "FN004"]
        .into_iter()
        .find(|code| text.contains(code))
        .unwrap_or(&text)
        .to_owned()
}

#[tokio::test]
async fn a_stale_token_is_refused_an_equal_one_passes_and_the_row_is_held_to_the_commit() {
    let url = PostgresServer::shared().await.database().await;
    let (a, b) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    a.batch_execute(KIT).await.unwrap();
    a.batch_execute(KIT).await.unwrap();
    a.batch_execute("SELECT fence_advance('lock', 101), fence_advance('lock', 101)")
        .await
        .unwrap();
    b.batch_execute("SELECT fence_advance('lock', 102)")
        .await
        .unwrap();
    assert_eq!(
        code(a.batch_execute("SELECT fence_advance('lock', 101)").await),
        "FN001"
    );
    assert_eq!(
        code(a.batch_execute("SELECT fence_advance('lock', 0)").await),
        "FN002"
    );
    b.batch_execute("SELECT fence_advance('other', 1)").await.unwrap();

    // A writes under 103 and has not committed; B's 104 waits for it, so that tokens rise in the order of commits.
    a.batch_execute("BEGIN; SELECT fence_advance('lock', 103)")
        .await
        .unwrap();
    let waits = "SELECT FROM pg_locks WHERE NOT granted AND pid IN \
        (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
    let (newer, ()) = tokio::join!(b.batch_execute("SELECT fence_advance('lock', 104)"), async {
        while a.query(waits, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        a.batch_execute("COMMIT").await.unwrap();
    });
    newer.unwrap();
    assert_eq!(
        code(a.batch_execute("SELECT fence_advance('lock', 103)").await),
        "FN001"
    );
}

#[tokio::test]
async fn tokens_from_the_database_rise_and_no_two_are_equal() {
    let url = PostgresServer::shared().await.database().await;
    let sessions = [connect(&url).await.unwrap(), connect(&url).await.unwrap()];
    sessions[0].batch_execute(KIT).await.unwrap();
    let next = async |session: usize| -> i64 {
        let row = sessions[session]
            .query_one("SELECT fence_next('lock')", &[])
            .await;
        row.unwrap().get(0)
    };
    let mut tokens = Vec::new();
    for _ in 0..20 {
        let (a, b) = tokio::join!(next(0), next(1));
        tokens.extend([a, b]);
    }
    tokens.sort_unstable();
    assert_eq!(tokens, (1..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn event_ids_are_judged_as_the_library_judges_them() {
    let url = PostgresServer::shared().await.database().await;
    let session = connect(&url).await.unwrap();
    session.batch_execute(KIT).await.unwrap();
    for (id, random) in super::event_ids() {
        let row = session
            .query_one("SELECT event_id_looks_random($1)", &[&id])
            .await;
        assert_eq!(row.unwrap().get::<_, bool>(0), random, "{id}");
    }
    let longest = "x".repeat(256);
    for (id, valid) in [
        ("", false),
        ("a b", false),
        ("caf\u{e9}", false),
        (longest.as_str(), true),
    ] {
        let row = session.query_one("SELECT event_id_is_valid($1)", &[&id]).await;
        assert_eq!(row.unwrap().get::<_, bool>(0), valid, "{id}");
    }
}

#[tokio::test]
async fn a_reward_is_granted_once_and_never_by_a_stale_holder() {
    let url = PostgresServer::shared().await.database().await;
    let (a, b) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
    a.batch_execute(&format!("{KIT}{REWARD}")).await.unwrap();
    let grant = "SELECT outcome FROM reward_grant_once('lock', $1, 42, $2, $3)";
    // Both at once, past the lock altogether: one grants, the other waits for it and is replayed.
    let claim = async |session: usize| -> String {
        let session = [&a, &b][session];
        let row = session.query_one(grant, &[&101_i64, &"week-34", &500_i64]).await;
        row.unwrap().get(0)
    };
    let (first, second) = tokio::join!(claim(0), claim(1));
    let mut told = [first, second];
    told.sort();
    assert_eq!(told, ["granted", "replayed"]);

    b.query_one(grant, &[&102_i64, &"week-35", &500_i64])
        .await
        .unwrap();
    assert_eq!(
        code(a.query_one(grant, &[&101_i64, &"week-36", &500_i64]).await),
        "FN001"
    );
    assert_eq!(
        code(b.query_one(grant, &[&102_i64, &"week-34", &501_i64]).await),
        "FN003"
    );
    let counted = "SELECT (SELECT count(*) FROM reward_grant), (SELECT count(*) FROM reward_grant_outbox)";
    let row = a.query_one(counted, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2, 2));
}

/// S14: A (101) sleeps past its lease, B (102) writes first.
#[tokio::test]
async fn an_order_has_one_active_attempt_and_a_stale_worker_touches_nothing() {
    let url = PostgresServer::shared().await.database().await;
    let session = connect(&url).await.unwrap();
    session.batch_execute(&format!("{KIT}{PAYMENT}")).await.unwrap();
    let start = "SELECT order_payment_start('lock:order-7', $1, 'order-7', $2, 900)";
    let report = "SELECT order_payment_report('lock:order-7', $1, $2, $3)";
    session.query_one(start, &[&101_i64, &"try-a"]).await.unwrap();
    session.query_one(start, &[&101_i64, &"try-a"]).await.unwrap();
    assert_eq!(
        code(session.query_one(start, &[&102_i64, &"try-b"]).await),
        "FN004"
    );
    session
        .query_one(report, &[&102_i64, &"try-a", &"unknown"])
        .await
        .unwrap();
    assert_eq!(
        code(session.query_one(start, &[&102_i64, &"try-b"]).await),
        "FN004"
    );
    assert_eq!(
        code(
            session
                .query_one(report, &[&101_i64, &"try-a", &"approved"])
                .await
        ),
        "FN001"
    );
    session
        .query_one(report, &[&102_i64, &"try-a", &"failed"])
        .await
        .unwrap();
    session.query_one(start, &[&102_i64, &"try-b"]).await.unwrap();
    let counted = "SELECT count(*) FROM order_payment WHERE active_key = 'active'";
    let active: i64 = session.query_one(counted, &[]).await.unwrap().get(0);
    assert_eq!(active, 1);
}

/// A message that comes again must not charge again, whoever takes it.
#[tokio::test]
async fn a_payment_started_again_says_how_it_stands_and_is_under_the_newer_token() {
    let url = PostgresServer::shared().await.database().await;
    let session = connect(&url).await.unwrap();
    let kit = format!("{KIT}{PAYMENT}");
    session.batch_execute(&kit).await.unwrap();
    session.batch_execute(&kit).await.unwrap();
    let start = "SELECT outcome, status FROM order_payment_start($1, $2, $3, 'try-a', $4)";
    let told = async |token: i64| -> (String, String) {
        let row = session
            .query_one(start, &[&"lock:order-7", &token, &"order-7", &900_i64])
            .await;
        let row = row.unwrap();
        (row.get(0), row.get(1))
    };
    let is = |outcome: &str, status: &str| (outcome.to_owned(), status.to_owned());
    let shown = async || -> i64 {
        let token = "SELECT fencing_token FROM order_payment WHERE attempt_id = 'try-a'";
        session.query_one(token, &[]).await.unwrap().get(0)
    };
    let report = async |token: i64, finding: &str| {
        let report = "SELECT order_payment_report('lock:order-7', $1, 'try-a', $2)";
        session.query_one(report, &[&token, &finding]).await.unwrap();
    };
    assert_eq!(told(101).await, is("started", "READY"));
    assert_eq!(told(102).await, is("existing", "READY"));
    assert_eq!(shown().await, 102, "taken over");
    report(102, "unknown").await;
    assert_eq!(told(102).await, is("existing", "unknown"));
    report(102, "approved").await;
    assert_eq!(told(103).await, is("existing", "approved"));
    assert_eq!(shown().await, 103);

    let other_amount = session.query_one(start, &[&"lock:order-7", &103_i64, &"order-7", &901_i64]);
    assert_eq!(code(other_amount.await), "FN003");
    let other_order = session.query_one(start, &[&"lock:order-8", &1_i64, &"order-8", &900_i64]);
    assert_eq!(code(other_order.await), "FN003");
}
