//! The servers that the rungs run on, each of this run's own: gone when it ends.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reward_ledger::testing::server::PostgresServer;
use tempfile::TempDir;

use crate::Failure;
use crate::rung::{Program, Rung};

/// Redlock's masters; the first one is also the one Redis of the other rungs.
const MASTERS: usize = 3;
/// A port that was free a moment ago may be taken by somebody else.
const PORTS_TRIED_MAX: usize = 5;
/// How long a server may take to answer, on a busy machine.
const START_TIME_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is there to run rungs on.
#[derive(Debug)]
pub(crate) struct Servers {
    redis: Result<Vec<RedisServer>, String>,
    postgres: Result<PostgresServer, String>,
}

impl Servers {
    /// Starts what is installed, of what `rungs` need.
    pub(crate) async fn start(rungs: &[Rung]) -> Self {
        let wanted = |program| rungs.iter().any(|rung| rung.needs() == Some(program));
        let redis = if wanted(Program::Redis) {
            RedisServer::start_all().await.map_err(|error| error.to_string())
        } else {
            Err("it is not asked for".to_owned())
        };
        let postgres = if wanted(Program::Postgres) {
            PostgresServer::start(&[])
                .await
                .map_err(|error| error.to_string())
        } else {
            Err("it is not asked for".to_owned())
        };
        Self { redis, postgres }
    }

    /// Why a rung cannot be run here; nothing if it can.
    pub(crate) fn missing(&self, rung: Rung) -> Option<String> {
        let program = rung.needs()?;
        let error = match program {
            Program::Redis => self.redis.as_ref().err(),
            Program::Postgres => self.postgres.as_ref().err(),
        }?;
        let (name, how) = (program.name(), program.how_to_get());
        Some(format!("{name} does not start here ({error}); {how}"))
    }

    /// Where the masters are.
    pub(crate) fn masters(&self) -> Result<Vec<SocketAddr>, Failure> {
        let masters = self.redis.as_ref().map_err(String::as_str)?;
        Ok(masters.iter().map(|server| server.address).collect())
    }

    /// The URL of the database.
    pub(crate) fn database(&self) -> Result<String, Failure> {
        let server = self.postgres.as_ref().map_err(String::as_str)?;
        Ok(server.url("postgres"))
    }
}

/// A Redis that keeps nothing. Dropped, it is killed.
#[derive(Debug)]
struct RedisServer {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl RedisServer {
    async fn start_all() -> Result<Vec<Self>, Failure> {
        let mut servers = Vec::new();
        for _ in 0..MASTERS {
            servers.push(Self::start_somewhere().await?);
        }
        Ok(servers)
    }

    async fn start_somewhere() -> Result<Self, Failure> {
        let mut last = Self::start().await;
        for _ in 1..PORTS_TRIED_MAX {
            if last.is_ok() {
                break;
            }
            last = Self::start().await;
        }
        last
    }

    async fn start() -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let child = Command::new("redis-server")
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self {
            child,
            address,
            _directory: directory,
        };
        tokio::time::timeout(START_TIME_MAX, server.answers()).await??;
        Ok(server)
    }

    /// Waits until it answers; whoever else answers there would not be this process's child.
    async fn answers(&mut self) -> Result<(), Failure> {
        let client = redis::Client::open(format!("redis://{}/", self.address))?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("redis-server ended: {status}").into());
            }
            if client.get_multiplexed_async_connection().await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
