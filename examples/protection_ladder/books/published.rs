//! The transaction that is usually published for fencing tokens, holes and all, on a PostgreSQL server.

use lease_core::Fence;
use reward_ledger::RewardEventId;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::{GOLD, ORDER, PLAYER, Pay, Start, Told};
use crate::Failure;

const TABLES: &str = "
    CREATE TABLE reward_claim (
        claim_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        player_id       bigint NOT NULL,
        reward_event_id text   NOT NULL,
        fence_token     bigint NOT NULL DEFAULT 0,
        status          text   NOT NULL DEFAULT 'PENDING',
        updated_at      timestamptz NOT NULL DEFAULT now(),
        UNIQUE (player_id, reward_event_id)
    );
    CREATE TABLE reward_ledger (
        id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        player_id       bigint NOT NULL,
        reward_event_id text   NOT NULL,
        amount          bigint NOT NULL,
        created_at      timestamptz NOT NULL DEFAULT now(),
        UNIQUE (player_id, reward_event_id)
    );
    CREATE TABLE payment_attempt (
        order_id      text   NOT NULL,
        status        text   NOT NULL DEFAULT 'READY',
        fencing_token bigint NOT NULL DEFAULT 0,
        active_key    text   DEFAULT 'active',
        UNIQUE (order_id, active_key)
    );";
/// The fence: `<`, kept in the row of the claim.
const FENCED_UPDATE: &str = "UPDATE reward_claim SET fence_token = $3, status = 'COMPLETED', updated_at = now() \
     WHERE player_id = $1 AND reward_event_id = $2 AND fence_token < $3";
const INSERT: &str = "INSERT INTO reward_ledger (player_id, reward_event_id, amount) VALUES ($1, $2, $3) \
     ON CONFLICT (player_id, reward_event_id) DO NOTHING RETURNING id";
const FENCED_START: &str = "UPDATE payment_attempt SET fencing_token = $2, status = 'PROCESSING' \
     WHERE order_id = $1 AND active_key = 'active' AND fencing_token < $2";

/// The tables of one course of events, in a schema of their own.
#[derive(Debug)]
pub(crate) struct Published {
    url: String,
}

/// A session, which ends when it is dropped.
struct Session {
    client: Client,
    _moving: JoinSet<()>,
}

impl Published {
    /// Makes the tables in a new schema of the database at `url`.
    pub(crate) async fn create(url: &str, schema: &str) -> Result<Self, Failure> {
        let session = connect(url).await?;
        session
            .client
            .batch_execute(&format!("CREATE SCHEMA {schema}"))
            .await?;
        let books = Self {
            url: format!("{url} options='-c search_path={schema}'"),
        };
        connect(&books.url).await?.client.batch_execute(TABLES).await?;
        Ok(books)
    }

    /// The queue's producer makes a claim row for each message, and the shop a row for its order.
    pub(super) async fn announce(&self, events: &[RewardEventId]) -> Result<(), Failure> {
        let session = connect(&self.url).await?;
        for event in events {
            let insert = "INSERT INTO reward_claim (player_id, reward_event_id) VALUES ($1, $2)";
            session
                .client
                .execute(insert, &[&PLAYER, &event.as_str()])
                .await?;
        }
        let insert = "INSERT INTO payment_attempt (order_id) VALUES ($1)";
        session.client.execute(insert, &[&ORDER]).await?;
        Ok(())
    }

    pub(super) async fn look(&self, event: &RewardEventId) -> Result<u64, Failure> {
        let count = "SELECT count(*) FROM reward_ledger WHERE player_id = $1 AND reward_event_id = $2";
        let session = connect(&self.url).await?;
        let row = session
            .client
            .query_one(count, &[&PLAYER, &event.as_str()])
            .await?;
        Ok(u64::try_from(row.get::<_, i64>(0))?)
    }

    pub(super) async fn pay(&self, pay: &Pay) -> Result<Told, Failure> {
        let token = token(pay.fence.as_ref())?;
        let mut session = connect(&self.url).await?;
        let transaction = session.client.transaction().await?;
        let event = pay.event.as_str();
        let updated = transaction
            .execute(FENCED_UPDATE, &[&PLAYER, &event, &token])
            .await?;
        if updated == 0 {
            transaction.rollback().await?;
            return Ok(Told::Refused(
                "0 rows updated, taken for a stale token".to_owned(),
            ));
        }
        let inserted = transaction.query_opt(INSERT, &[&PLAYER, &event, &GOLD]).await?;
        transaction.commit().await?;
        Ok(match inserted {
            Some(row) => Told::Done(format!("ledger row {}", row.get::<_, i64>(0))),
            None => Told::Taken("0 rows inserted, and no receipt".to_owned()),
        })
    }

    pub(super) async fn payments(&self) -> Result<u64, Failure> {
        let session = connect(&self.url).await?;
        let row = session
            .client
            .query_one("SELECT count(*) FROM reward_ledger", &[])
            .await?;
        Ok(u64::try_from(row.get::<_, i64>(0))?)
    }

    pub(super) async fn look_order(&self) -> Result<u64, Failure> {
        let count = "SELECT count(*) FROM payment_attempt WHERE order_id = $1 AND status <> 'READY'";
        let session = connect(&self.url).await?;
        let row = session.client.query_one(count, &[&ORDER]).await?;
        Ok(u64::try_from(row.get::<_, i64>(0))?)
    }

    pub(super) async fn start(&self, start: &Start) -> Result<Told, Failure> {
        let token = token(start.fence.as_ref())?;
        let session = connect(&self.url).await?;
        let updated = session.client.execute(FENCED_START, &[&ORDER, &token]).await?;
        Ok(if updated == 1 {
            Told::Done("1 row updated".to_owned())
        } else {
            Told::Refused("0 rows updated".to_owned())
        })
    }
}

fn token(fence: Option<&Fence>) -> Result<i64, Failure> {
    let fence = fence.ok_or("the published transaction needs a token")?;
    Ok(i64::try_from(fence.token.get())?)
}

async fn connect(url: &str) -> Result<Session, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let mut moving = JoinSet::new();
    moving.spawn(async move {
        // It ends with the session.
        let _ended = connection.await;
    });
    Ok(Session {
        client,
        _moving: moving,
    })
}
