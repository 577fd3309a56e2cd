//! Brings an empty or an older database to the tables of this version, one process at a time.

use tokio_postgres::Row;

use super::fetch::column;
use super::link::Link;
use super::open_error::OpenPostgresError;
use super::statements as sql;
use super::trouble::Trouble;
use crate::error::{Cause, StorageFailure};

/// A step from one shape of the tables to the next. Numbers are never used again, and what was released never changes.
struct Migration {
    version: i32,
    name: &'static str,
    text: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "claims",
    text: include_str!("../../../migrations/0001_claims.sql"),
}];

/// How many there are.
#[cfg(test)]
pub(super) const COUNT: usize = MIGRATIONS.len();

/// Taken for as long as tables are changed.
const MIGRATION_LOCK: i64 = 0x7265_7761_7264_0003;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS reward_migration (\
     version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";
/// Of the session, and taken before the transaction begins: within one, the server may go on to remember that there
/// was no table before the lock was waited for. An error ends the session, and the lock with it.
const LOCK: &str = "SELECT pg_advisory_lock($1)::text";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";
const EXISTS: &str = "SELECT to_regclass('reward_migration') IS NOT NULL";
const LAST: &str = "SELECT coalesce(max(version), 0) FROM reward_migration";
const NOTE: &str = "INSERT INTO reward_migration (version, name) VALUES ($1, $2)";

/// Applies what is missing, all of it or nothing.
pub(super) async fn apply(link: &Link) -> Result<(), OpenPostgresError> {
    let known = MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0);
    // Without a lock, and without the right to make tables: where nothing is missing, nothing is done.
    if last(link).await? == known {
        return Ok(());
    }
    link.rows("lock the migrations", LOCK, &[&MIGRATION_LOCK])
        .await
        .map_err(connect)?;
    let found = last(link).await?;
    if found > known {
        return Err(OpenPostgresError::Newer { found, known });
    }
    link.run("begin the migrations", sql::BEGIN)
        .await
        .map_err(connect)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        let applied = apply_one(link, migration).await;
        applied.map_err(|trouble| OpenPostgresError::Migration {
            version: migration.version,
            name: migration.name,
            source: cause(trouble),
        })?;
        tracing::info!(
            version = migration.version,
            name = migration.name,
            "a migration was applied"
        );
    }
    link.run("commit the migrations", sql::COMMIT)
        .await
        .map_err(connect)?;
    link.rows("unlock the migrations", UNLOCK, &[&MIGRATION_LOCK])
        .await
        .map_err(connect)?;
    Ok(())
}

async fn apply_one(link: &Link, migration: &Migration) -> Result<(), Trouble> {
    let action = "apply a migration";
    link.run(action, TABLE).await?;
    link.run(action, migration.text).await?;
    link.rows(action, NOTE, &[&migration.version, &migration.name])
        .await?;
    Ok(())
}

/// The last migration of the database; 0 where there is none.
async fn last(link: &Link) -> Result<i32, OpenPostgresError> {
    let action = "look for migrations";
    let exists = link.rows(action, EXISTS, &[]).await.map_err(connect)?;
    if !first(&exists, false)? {
        return Ok(0);
    }
    let last = link.rows(action, LAST, &[]).await.map_err(connect)?;
    first(&last, 0)
}

fn first<'a, T: tokio_postgres::types::FromSql<'a>>(
    rows: &'a [Row],
    none: T,
) -> Result<T, OpenPostgresError> {
    match rows.first() {
        Some(row) => column(row, 0).map_err(|source| OpenPostgresError::Connect { source }),
        None => Ok(none),
    }
}

/// An error before anything was changed.
pub(super) fn connect(trouble: Trouble) -> OpenPostgresError {
    match trouble.into_failure() {
        StorageFailure::UnsafeSetting { setting } => OpenPostgresError::UnsafeSetting { setting },
        source @ (StorageFailure::Database { .. }
        | StorageFailure::Files { .. }
        | StorageFailure::CorruptRow { .. }
        | StorageFailure::WriterDied) => OpenPostgresError::Connect { source },
    }
}

fn cause(trouble: Trouble) -> Cause {
    trouble.into_failure().into()
}
