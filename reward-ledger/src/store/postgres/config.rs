//! How a PostgreSQL store is opened.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use super::stage::PostgresStage;
use super::tls::{Handshakes, take_asked};
use crate::core::Protections;
use crate::error::InvalidConfig;
use crate::store::hook::Hook;

/// Connections that write at the most: each holds a group of claims, and a server has some hundred in all.
const WRITERS_MAX: usize = 64;
/// Two: one group is decided while the other is being made durable. More do not help one process.
const WRITERS: usize = 2;
/// Shorter, and an ordinary pause of the server would fail claims.
const PATIENCE_MIN: Duration = Duration::from_millis(100);
/// Longer, and callers have long gone.
const PATIENCE_MAX: Duration = Duration::from_secs(300);
/// A restart of the server, or a failover that is quick, goes unseen.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a [`PostgresStore`](super::PostgresStore) is opened.
#[derive(Clone)]
pub struct PostgresConfig {
    server: tokio_postgres::Config,
    handshakes: Handshakes,
    writers: usize,
    patience: Duration,
    protections: Protections,
    hook: Hook<PostgresStage>,
}

/// Builds a [`PostgresConfig`].
#[derive(Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct PostgresConfigBuilder {
    url: String,
    writers: usize,
    patience: Duration,
    protections: Protections,
    hook: Hook<PostgresStage>,
}

impl PostgresConfig {
    /// A configuration for the database at `url`, such as `postgres://ledger@db.internal/rewards` or
    /// `host=/run/postgresql user=ledger dbname=rewards`.
    ///
    /// Its `sslmode` is `disable`, `prefer` (unless said), `require` or `verify-full`. Only `verify-full`, or an
    /// authority's file in `sslrootcert`, makes sure that the server is the one that was meant.
    pub fn builder(url: impl Into<String>) -> PostgresConfigBuilder {
        PostgresConfigBuilder {
            url: url.into(),
            writers: WRITERS,
            patience: PATIENCE,
            protections: Protections::ALL,
            hook: Hook::none(),
        }
    }

    pub(super) const fn server(&self) -> &tokio_postgres::Config {
        &self.server
    }

    pub(super) fn handshakes(&self) -> Handshakes {
        self.handshakes.clone()
    }

    pub(super) const fn writers(&self) -> usize {
        self.writers
    }

    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    pub(super) const fn protections(&self) -> Protections {
        self.protections
    }

    pub(super) const fn hook(&self) -> &Hook<PostgresStage> {
        &self.hook
    }
}

/// Without the password.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("database", &self.server.get_dbname())
            .field("writers", &self.writers)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// Without the URL: it may hold a password.
impl fmt::Debug for PostgresConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfigBuilder")
            .field("writers", &self.writers)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl PostgresConfigBuilder {
    /// Connections that write, 1 to 64; two unless said. One more reads.
    ///
    /// Too few: groups wait for each other's commits. Too many: groups become small, and each costs a commit.
    pub const fn writers(mut self, writers: usize) -> Self {
        self.writers = writers;
        self
    }

    /// How long a request is tried for while the server does not answer or cannot be reached, 0.1 to 300 s; ten seconds
    /// unless said.
    ///
    /// Too short: a restart of the server fails claims. Too long: callers wait for a server that is gone.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Switches a protection off, for a negative control. Without the unique key the database's own keys are taken
    /// away, too, for ever: use a database of the test's own.
    #[cfg(any(test, feature = "test-util"))]
    pub const fn protections(mut self, protections: Protections) -> Self {
        self.protections = protections;
        self
    }

    /// Calls `call` at each stage of each group; where it fails, the connection is dropped as if it had been cut there.
    #[cfg(any(test, feature = "test-util"))]
    pub fn on_stage(
        mut self,
        call: impl Fn(PostgresStage) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.hook = Hook::calling(call);
        self
    }

    /// The configuration.
    ///
    /// # Errors
    /// [`InvalidConfig`] where the URL does not parse, the authorities that it names cannot be read, or a value is out of
    /// its range.
    pub fn build(self) -> Result<PostgresConfig, InvalidConfig> {
        let (url, asked) = take_asked(&self.url)?;
        let mut server: tokio_postgres::Config = url.parse().map_err(|error| unreadable(&error))?;
        server.ssl_mode(asked.mode);
        let handshakes = asked.handshakes()?;
        if !(1..=WRITERS_MAX).contains(&self.writers) {
            return Err(InvalidConfig::DatabaseWriters {
                max: WRITERS_MAX,
                value: self.writers,
            });
        }
        if !(PATIENCE_MIN..=PATIENCE_MAX).contains(&self.patience) {
            return Err(InvalidConfig::DatabasePatience {
                min: PATIENCE_MIN,
                max: PATIENCE_MAX,
                value: self.patience,
            });
        }
        if server.get_application_name().is_none() {
            server.application_name("reward-ledger");
        }
        if server.get_connect_timeout().is_none() {
            server.connect_timeout(self.patience);
        }
        Ok(PostgresConfig {
            server,
            handshakes,
            writers: self.writers,
            patience: self.patience,
            protections: self.protections,
            hook: self.hook,
        })
    }
}

/// The parser names the part that is wrong, never its value.
fn unreadable(error: &tokio_postgres::Error) -> InvalidConfig {
    let cause = error.source().map(|cause| format!(": {cause}"));
    InvalidConfig::DatabaseUrl {
        problem: format!("{error}{}", cause.unwrap_or_default()),
    }
}
