//! What goes wrong in PostgreSQL with the usual forms, and not with ours. Each test shows the usual form fail first.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::server::{PostgresServer, connect};
use super::tests::{gold, is_sound};
use super::{PostgresStore, READERS_LOCK};
use crate::core::ClaimOutcome;
use crate::ledger::Ledger;

/// Sessions on a database with a fence and a claim as users have them.
async fn sessions<const N: usize>() -> [Client; N] {
    let url = PostgresServer::shared().await.database().await;
    let mut sessions = Vec::new();
    for _ in 0..N {
        sessions.push(connect(&url).await.unwrap());
    }
    let tables = "CREATE TABLE fence (resource text PRIMARY KEY, token bigint NOT NULL);
        CREATE TABLE claim (claim_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, player bigint, event text,
            token bigint, UNIQUE (player, event));";
    sessions[0].batch_execute(tables).await.unwrap();
    sessions.try_into().unwrap()
}

async fn run(session: &Client, text: &str) {
    session.batch_execute(text).await.unwrap();
}

async fn rows(session: &Client, text: &str) -> usize {
    session.query(text, &[]).await.unwrap().len()
}

/// Waits until a session stands and waits for another one's lock. By the locks themselves: within a transaction, the
/// server shows the activity of sessions as it was at the first look.
async fn until_somebody_waits(session: &Client) {
    let waiting = "SELECT FROM pg_locks WHERE NOT granted AND pid IN \
        (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
    while rows(session, waiting).await == 0 {
        tokio::task::yield_now().await;
    }
}

const FENCE_ADVANCE: &str = "INSERT INTO fence VALUES ('lock', $1) ON CONFLICT (resource) \
    DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token RETURNING token";

/// `ON CONFLICT DO NOTHING` with a fallback `SELECT` in the same statement: neither part has a row.
#[tokio::test]
async fn a_fallback_in_the_same_statement_finds_no_row_and_a_second_statement_does() {
    let [winner, loser] = sessions().await;
    run(
        &winner,
        "BEGIN; INSERT INTO claim (player, event, token) VALUES (42, 'week-34', 1)",
    )
    .await;
    let in_one = "WITH ins AS (INSERT INTO claim (player, event, token) VALUES (42, 'week-34', 2) \
            ON CONFLICT DO NOTHING RETURNING claim_id) \
        SELECT claim_id FROM ins UNION ALL SELECT claim_id FROM claim WHERE player = 42 AND event = 'week-34'";
    let (found, ()) = tokio::join!(rows(&loser, in_one), async {
        until_somebody_waits(&winner).await;
        run(&winner, "COMMIT").await;
    });
    assert_eq!(found, 0, "no row to build a receipt from");
    let second = "SELECT claim_id FROM claim WHERE player = 42 AND event = 'week-34'";
    assert_eq!(rows(&loser, second).await, 1);
}

/// A fenced `UPDATE` of a row that is not there yet looks like a stale token, and `<` refuses the holder's own retry.
#[tokio::test]
async fn a_fenced_update_mistakes_a_missing_row_and_a_retry_for_a_stale_token_and_the_upsert_does_not() {
    let [session] = sessions().await;
    let fenced = "UPDATE claim SET token = 7 WHERE player = 42 AND event = 'week-34' AND token < 7";
    assert_eq!(
        session.execute(fenced, &[]).await.unwrap(),
        0,
        "missing, and looks stale"
    );
    run(
        &session,
        "INSERT INTO claim (player, event, token) VALUES (42, 'week-34', 7)",
    )
    .await;
    assert_eq!(
        session.execute(fenced, &[]).await.unwrap(),
        0,
        "its own retry, and looks stale"
    );

    let advance = async |token: i64| session.query(FENCE_ADVANCE, &[&token]).await.unwrap().len();
    assert_eq!(
        [
            advance(7).await,
            advance(7).await,
            advance(8).await,
            advance(7).await
        ],
        [1, 1, 1, 0]
    );
}

/// `SELECT .. FOR UPDATE` locks what is there; of a row that is not there yet it lets two sessions by.
#[tokio::test]
async fn for_update_locks_no_missing_row_and_the_upsert_does() {
    let [a, b] = sessions().await;
    let lock = "SELECT token FROM fence WHERE resource = 'lock' FOR UPDATE";
    run(&a, "BEGIN").await;
    run(&b, "BEGIN; SET LOCAL lock_timeout = '10ms'").await;
    assert_eq!((rows(&a, lock).await, rows(&b, lock).await), (0, 0), "both go on");
    assert_eq!(rows(&a, FENCE_ADVANCE.replace("$1", "7").as_str()).await, 1);
    let refused = b.query(FENCE_ADVANCE, &[&8_i64]).await.unwrap_err();
    assert_eq!(
        refused.code(),
        Some(&SqlState::LOCK_NOT_AVAILABLE),
        "the second one waits"
    );
}

/// Who waits for a lock alone holds up all that want to share it later: what is read every few seconds must not.
#[tokio::test]
async fn how_far_the_ledger_has_come_is_told_beside_an_open_transaction_and_an_audit_waits_for_it() {
    let url = PostgresServer::shared().await.database().await;
    let ledger = Ledger::open(PostgresStore::open(&url).await.unwrap());
    let writer = connect(&url).await.unwrap();
    let enter = format!("BEGIN; SELECT pg_advisory_xact_lock_shared({READERS_LOCK})");
    run(&writer, &enter).await;
    assert_eq!(
        ledger.standing().await.unwrap().outbox_open,
        0,
        "it is told while the writer is still there"
    );
    let (report, ()) = tokio::join!(ledger.audit(), async {
        until_somebody_waits(&writer).await;
        run(&writer, "COMMIT").await;
    });
    assert!(report.unwrap().is_clean());
}

/// A fence that is only read may be raised before the write commits.
#[tokio::test]
async fn a_plain_read_of_the_fence_lets_a_stale_claim_commit_and_the_upsert_does_not() {
    let [stale, newer] = sessions().await;
    run(&newer, "INSERT INTO fence VALUES ('lock', 1)").await;
    run(&stale, "BEGIN").await;
    let seen: i64 = stale
        .query_one("SELECT token FROM fence", &[])
        .await
        .unwrap()
        .get(0);
    assert!(seen <= 1, "token 1 may write");
    run(
        &newer,
        "UPDATE fence SET token = 2; INSERT INTO claim (player, event, token) VALUES (42, 'a', 2)",
    )
    .await;
    run(
        &stale,
        "INSERT INTO claim (player, event, token) VALUES (42, 'b', 1); COMMIT",
    )
    .await;
    let fell = "SELECT FROM claim a JOIN claim b ON a.claim_id < b.claim_id AND a.token > b.token";
    assert_eq!(rows(&newer, fell).await, 1, "accepted tokens fell");

    run(&stale, "BEGIN").await;
    assert_eq!(stale.query(FENCE_ADVANCE, &[&3_i64]).await.unwrap().len(), 1);
    let (raised, ()) = tokio::join!(newer.query(FENCE_ADVANCE, &[&4_i64]), async {
        until_somebody_waits(&stale).await;
        run(
            &stale,
            "INSERT INTO claim (player, event, token) VALUES (42, 'c', 3); COMMIT",
        )
        .await;
    });
    assert_eq!(raised.unwrap().len(), 1, "the newer token waits for the commit");
}

/// A poller that goes on after the last id it saw never sees one that was drawn earlier and committed later.
#[tokio::test]
async fn a_poller_by_id_loses_rows_that_commit_late_and_one_by_state_does_not() {
    let [late, early, poller] = sessions().await;
    run(
        &late,
        "CREATE TABLE outbox (id bigserial PRIMARY KEY, state text NOT NULL DEFAULT 'pending')",
    )
    .await;
    run(&late, "BEGIN; INSERT INTO outbox DEFAULT VALUES").await;
    run(&early, "INSERT INTO outbox DEFAULT VALUES").await;
    let first: Vec<i64> = ids(&poller, "SELECT id FROM outbox WHERE id > 0 ORDER BY id").await;
    run(&late, "COMMIT").await;
    let after = format!(
        "SELECT id FROM outbox WHERE id > {} ORDER BY id",
        first.last().unwrap()
    );
    assert!(
        ids(&poller, &after).await.is_empty(),
        "the late row is never seen"
    );

    let by_state = "UPDATE outbox SET state = 'leased' WHERE id IN \
        (SELECT id FROM outbox WHERE state = 'pending' ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id";
    let mut taken = ids(&poller, by_state).await;
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
}

async fn ids(session: &Client, text: &str) -> Vec<i64> {
    session
        .query(text, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect()
}

/// Stricter isolation as the database's default: two sessions that meet are sent away, and so they are where they only
/// wait for each other. Ours asks for the level it is made for, and tries again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_meet_are_sent_away_and_the_ledger_is_not_even_where_serializable_is_the_default() {
    let [a, b] = sessions().await;
    run(&a, "INSERT INTO fence VALUES ('lock', 1)").await;
    run(&b, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM fence").await;
    run(&a, "UPDATE fence SET token = 2").await;
    let refused = b.batch_execute("UPDATE fence SET token = 3").await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));

    let url = PostgresServer::shared().await.database().await;
    let admin = connect(&url).await.unwrap();
    let name: String = admin
        .query_one("SELECT current_database()", &[])
        .await
        .unwrap()
        .get(0);
    run(
        &admin,
        &format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"),
    )
    .await;
    let mut callers = tokio::task::JoinSet::new();
    for worker in 0..4_u64 {
        let ledger = Ledger::open(PostgresStore::open(&url).await.unwrap());
        callers.spawn(claim_with_rising_tokens(ledger, worker));
    }
    let accepted: u64 = callers.join_all().await.into_iter().sum();
    let ledger = Ledger::open(PostgresStore::open(&url).await.unwrap());
    is_sound(&ledger).await;
    assert_eq!(ledger.audit().await.unwrap().claims, accepted);
    let fell = "SELECT FROM reward_claim a JOIN reward_claim b \
        ON a.resource = b.resource AND a.claim_id < b.claim_id AND a.fence_token > b.fence_token";
    assert_eq!(
        rows(&admin, fell).await,
        0,
        "accepted tokens never fall, over all workers"
    );
}

/// A row that somebody else holds for ever: the ledger waits for as long as its patience, says that nothing was applied,
/// and goes on when the row is free.
#[tokio::test]
async fn a_fence_that_is_held_for_too_long_fails_the_claim_and_nothing_else() {
    let url = PostgresServer::shared().await.database().await;
    let config = super::PostgresConfig::builder(&url)
        .patience(std::time::Duration::from_secs(2))
        .build()
        .unwrap();
    let ledger = Ledger::open(PostgresStore::open_with(config).await.unwrap());
    let first = ledger
        .claim(gold(1, 42, "week-34").build().unwrap())
        .await
        .unwrap();
    assert!(first.is_accepted());
    let holder = connect(&url).await.unwrap();
    run(&holder, "BEGIN; SELECT * FROM resource_fence FOR UPDATE").await;
    let error = ledger
        .claim(gold(1, 42, "week-35").build().unwrap())
        .await
        .unwrap_err();
    assert!(error.is_retryable() && !error.may_have_applied(), "{error:?}");
    run(&holder, "COMMIT").await;
    let told = ledger
        .claim(gold(1, 42, "week-35").build().unwrap())
        .await
        .unwrap();
    assert!(matches!(told, ClaimOutcome::Applied(_)), "{told:?}");
    is_sound(&ledger).await;
}

/// Twenty claims by one of four workers that share a lock; answers with how many were accepted.
async fn claim_with_rising_tokens(ledger: Ledger, worker: u64) -> u64 {
    let mut accepted = 0;
    for number in 0..20 {
        let claim = gold(1 + 4 * number + worker, 42, &format!("week-{worker}-{number}"));
        let told = ledger.claim(claim.build().unwrap()).await.unwrap();
        assert!(
            told.is_accepted() || matches!(told, ClaimOutcome::Stale { .. }),
            "{told:?}"
        );
        accepted += u64::from(told.is_accepted());
    }
    accepted
}
