//! One connection: its settings, checks and prepared statements. What is asked over it is others' business.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::{Client, Row, Statement};

use super::group::Purpose;
use super::trouble::Trouble;
use super::{PostgresConfig, fetch, scans, statements as sql};
use crate::core::Protections;
use crate::error::StorageFailure;

/// Parameters of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn tokio_postgres::types::ToSql + Sync)];

/// Rows are found by their indexes, whatever the server knows of its tables: a plan that was made while they were empty goes
/// through the whole of them, and is kept until they are next analysed. What has to be read as a whole still is; its made-up
/// cost must not start the compiler.
const PLANNING: &str =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off";

/// An open connection. Dropping it closes it, and the server rolls back what was not committed.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    patience: Duration,
    /// By their texts.
    prepared: BTreeMap<&'static str, Statement>,
    /// Moves the bytes; ends with the link.
    _driver: JoinSet<()>,
}

impl Link {
    /// Connects, and refuses a server that would not keep what it acknowledges.
    pub(super) async fn open(config: &PostgresConfig) -> Result<Self, Trouble> {
        let action = "connect to the database";
        let connecting = config.server().connect(config.handshakes());
        let (client, connection) = match tokio::time::timeout(config.patience(), connecting).await {
            Ok(opened) => opened.map_err(|error| Trouble::of(action, error))?,
            Err(_) => return Err(Trouble::timed_out(action)),
        };
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // Whoever waits for an answer is told; nobody else needs to know.
            let _ended = connection.await;
        });
        let link = Self {
            client,
            patience: config.patience(),
            prepared: BTreeMap::new(),
            _driver: driver,
        };
        link.set_up().await?;
        Ok(link)
    }

    /// A session of ours waits no longer than its callers do, and never rests on a setting of the server's own.
    async fn set_up(&self) -> Result<(), Trouble> {
        let wait_ms = self.patience.as_millis();
        let settings =
            format!("SET statement_timeout = {wait_ms}; SET idle_in_transaction_session_timeout = {wait_ms}");
        self.run("set up the connection", &settings).await?;
        self.run("set up the connection", PLANNING).await?;
        let found = self
            .rows(
                "check the server's settings",
                "SELECT current_setting('fsync'), current_setting('synchronous_commit')",
                &[],
            )
            .await?;
        for row in &found {
            refuse_unsafe(row.get(0), row.get(1))?;
        }
        Ok(())
    }

    /// Prepares what transactions run; statements that are not prepared are planned each time.
    pub(super) async fn prepare(&mut self, purpose: Purpose, config: &PostgresConfig) -> Result<(), Trouble> {
        let mut texts = [fetch::PREPARED, scans::PREPARED].concat();
        if purpose != Purpose::Reads {
            texts.extend_from_slice(sql::PREPARED);
            texts.push(insert_claims(config.protections()));
        }
        for text in texts {
            let statement = self
                .timed("prepare a statement", self.client.prepare(text))
                .await?;
            self.prepared.insert(text, statement);
        }
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters and without rows.
    pub(super) async fn run(&self, action: &'static str, text: &str) -> Result<(), Trouble> {
        self.timed(action, self.client.batch_execute(text)).await
    }

    /// Commits; the caller sorts the error.
    pub(super) async fn commit(&self) -> Result<Result<(), tokio_postgres::Error>, Trouble> {
        match tokio::time::timeout(self.patience, self.client.batch_execute(sql::COMMIT)).await {
            Ok(committed) => Ok(committed),
            Err(_) => Err(Trouble::timed_out("commit")),
        }
    }

    /// The rows of a statement.
    pub(super) async fn rows(
        &self,
        action: &'static str,
        text: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Trouble> {
        match self.prepared.get(text) {
            Some(statement) => {
                self.timed(action, Box::pin(self.client.query(statement, params)))
                    .await
            }
            None => {
                self.timed(action, Box::pin(self.client.query(text, params)))
                    .await
            }
        }
    }

    /// How many rows a statement wrote.
    pub(super) async fn write(
        &self,
        action: &'static str,
        text: &'static str,
        params: Params<'_>,
    ) -> Result<u64, Trouble> {
        match self.prepared.get(text) {
            Some(statement) => {
                self.timed(action, Box::pin(self.client.execute(statement, params)))
                    .await
            }
            None => {
                self.timed(action, Box::pin(self.client.execute(text, params)))
                    .await
            }
        }
    }

    /// Futures come on the heap: many of them are waited for at once, and each is some kilobytes.
    async fn timed<T>(
        &self,
        action: &'static str,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(self.patience, asked).await {
            Ok(answered) => answered.map_err(|error| Trouble::of(action, error)),
            Err(_) => Err(Trouble::timed_out(action)),
        }
    }
}

/// A commit that is answered before it is on disk is no answer.
pub(super) fn refuse_unsafe(fsync: &str, synchronous_commit: &str) -> Result<(), StorageFailure> {
    for (setting, value) in [("fsync", fsync), ("synchronous_commit", synchronous_commit)] {
        if value == "off" {
            return Err(StorageFailure::UnsafeSetting { setting });
        }
    }
    Ok(())
}

/// How claims are written.
#[cfg(not(any(test, feature = "test-util")))]
pub(super) const fn insert_claims(_: Protections) -> &'static str {
    sql::INSERT_CLAIMS
}

/// How claims are written.
#[cfg(any(test, feature = "test-util"))]
pub(super) const fn insert_claims(protections: Protections) -> &'static str {
    match protections.are_with(crate::core::Protection::UniqueEvent) {
        true => sql::INSERT_CLAIMS,
        false => sql::REPLACE_CLAIMS,
    }
}
