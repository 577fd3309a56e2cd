//! The claim transaction as a service writes it by hand, over a connection of each caller: what the ledger's PostgreSQL store is
//! compared with.
//!
//! The tables are those of the usual published design, and the statements its safe forms. Each caller waits for each
//! statement, all of them prepared. Beside it stands the same work as one call of a function in the database, of the SQL kit.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use crate::Error;
use crate::embedded::Flavour;
use crate::stopwatch::Stopwatch;

const TABLES: &str = "
    CREATE TABLE resource_fence (resource text PRIMARY KEY, token bigint NOT NULL);
    CREATE TABLE reward_claim (
        claim_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, player_id bigint NOT NULL, reward_event_id text NOT NULL,
        fence_token bigint NOT NULL, status text NOT NULL DEFAULT 'applied', updated_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (player_id, reward_event_id));
    CREATE TABLE reward_ledger (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, player_id bigint NOT NULL, reward_event_id text NOT NULL,
        amount bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), UNIQUE (player_id, reward_event_id));
    CREATE TABLE reward_outbox (
        id bigint PRIMARY KEY, player_id bigint NOT NULL, reward_event_id text NOT NULL,
        state text NOT NULL DEFAULT 'pending');
    CREATE INDEX ON reward_outbox (id) WHERE state = 'pending'";
const RAISE_FENCE: &str = "INSERT INTO resource_fence AS f (resource, token) VALUES ($1, $2)
    ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token RETURNING token";
const INSERT_CLAIM: &str =
    "INSERT INTO reward_claim (player_id, reward_event_id, fence_token) VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING RETURNING claim_id";
const INSERT_LEDGER: &str =
    "INSERT INTO reward_ledger (player_id, reward_event_id, amount) VALUES ($1, $2, $3)";
const INSERT_OUTBOX: &str = "INSERT INTO reward_outbox (id, player_id, reward_event_id) VALUES ($1, $2, $3)";
const IN_ONE_CALL: &str = "SELECT outcome FROM reward_grant_once($1, $2, $3, $4, $5)";
/// The SQL kit: fence, grant and outbox as functions.
const KIT: [&str; 2] = [
    include_str!("../../reward-ledger/sql/postgres.sql"),
    include_str!("../../reward-ledger/sql/postgres_reward.sql"),
];

const TOKEN: i64 = 1;
const AMOUNT: i64 = 500;

/// How the transaction is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `BEGIN`, fence, claim, ledger, outbox, `COMMIT`: six trips to the server.
    Statements,
    /// One call of the SQL kit's function: one trip.
    OneCall,
}

/// Callers with a connection each.
#[derive(Debug)]
pub struct HandWritten {
    runtime: Runtime,
    style: Style,
    callers: Vec<Caller>,
}

#[derive(Debug)]
struct Caller {
    client: Client,
    player: i64,
    resource: String,
    /// Numbers its rewards: each is granted once.
    next: u32,
    prepared: Prepared,
}

#[derive(Debug)]
enum Prepared {
    Statements {
        fence: Statement,
        claim: Statement,
        ledger: Statement,
        outbox: Statement,
    },
    OneCall(Statement),
}

impl HandWritten {
    /// Makes the tables in the database at `url`, and connects `callers`.
    ///
    /// # Errors
    /// The server refuses.
    pub fn open(url: &str, style: Style, callers: u32) -> Result<Self, Error> {
        let runtime = Flavour::CurrentThread.runtime()?;
        let callers = runtime.block_on(async {
            let setup = connect(url).await?;
            match style {
                Style::Statements => setup.batch_execute(TABLES).await?,
                Style::OneCall => setup.batch_execute(&KIT.concat()).await?,
            }
            let mut connected = Vec::new();
            for caller in 0..callers {
                connected.push(Caller::open(url, style, i64::from(caller)).await?);
            }
            Ok::<_, Error>(connected)
        })?;
        Ok(Self {
            runtime,
            style,
            callers,
        })
    }

    /// How the transaction is written.
    #[must_use]
    pub const fn style(&self) -> Style {
        self.style
    }

    /// All callers at once for about `time`; answers with claims per second.
    ///
    /// # Errors
    /// The server refuses, or a claim was not granted.
    pub fn rate(&mut self, time: Duration) -> Result<f64, Error> {
        let callers = std::mem::take(&mut self.callers);
        let watch = Stopwatch::start();
        let (callers, claims) = self.runtime.block_on(async move {
            let mut running: JoinSet<Result<(Caller, u32), Error>> = callers
                .into_iter()
                .map(|caller| caller.claim_for(watch, time))
                .collect();
            let (mut callers, mut claims) = (Vec::new(), 0.0);
            while let Some(ended) = running.join_next().await {
                let (caller, claimed) = ended??;
                callers.push(caller);
                claims += f64::from(claimed);
            }
            Ok::<_, Error>((callers, claims))
        })?;
        self.callers = callers;
        Ok(claims / watch.elapsed().as_secs_f64())
    }
}

impl Caller {
    async fn open(url: &str, style: Style, player: i64) -> Result<Self, Error> {
        let client = connect(url).await?;
        let prepared = match style {
            Style::Statements => Prepared::Statements {
                fence: client.prepare(RAISE_FENCE).await?,
                claim: client.prepare(INSERT_CLAIM).await?,
                ledger: client.prepare(INSERT_LEDGER).await?,
                outbox: client.prepare(INSERT_OUTBOX).await?,
            },
            Style::OneCall => Prepared::OneCall(client.prepare(IN_ONE_CALL).await?),
        };
        Ok(Self {
            client,
            player,
            resource: format!("lock:reward:{player:012}"),
            next: 0,
            prepared,
        })
    }

    async fn claim_for(mut self, watch: Stopwatch, time: Duration) -> Result<(Self, u32), Error> {
        let mut claims = 0;
        while watch.elapsed() < time {
            self.claim().await?;
            claims += 1;
        }
        Ok((self, claims))
    }

    async fn claim(&mut self) -> Result<(), Error> {
        self.next += 1;
        let (player, resource) = (self.player, &self.resource);
        let event = format!("season-2026-week-34:player-{player}:rank-{}", self.next);
        match &self.prepared {
            Prepared::OneCall(call) => {
                let row = self
                    .client
                    .query_one(call, &[resource, &TOKEN, &player, &event, &AMOUNT])
                    .await?;
                match row.get(0) {
                    "granted" => Ok(()),
                    other => Err(format!("not granted: {other}").into()),
                }
            }
            Prepared::Statements {
                fence,
                claim,
                ledger,
                outbox,
            } => {
                let transaction = self.client.transaction().await?;
                let raised = transaction.query_opt(fence, &[resource, &TOKEN]).await?;
                raised.ok_or("the token is stale")?;
                let claimed = transaction.query_opt(claim, &[&player, &event, &TOKEN]).await?;
                let id: i64 = claimed.ok_or("granted before")?.get(0);
                transaction.execute(ledger, &[&player, &event, &AMOUNT]).await?;
                transaction.execute(outbox, &[&id, &player, &event]).await?;
                Ok(transaction.commit().await?)
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the connection's bytes must be moved, and it ends with its client"
)]
async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        let _ended = connection.await;
    });
    Ok(client)
}
