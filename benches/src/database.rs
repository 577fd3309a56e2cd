//! A PostgreSQL server of the run's own, with its data on a disk.

use reward_ledger::testing::server::PostgresServer;

use crate::Error;
use crate::embedded::Flavour;
use crate::scratch::on_a_disk;

/// The server, and the file system that it keeps its data on. It ends with this.
#[derive(Debug)]
pub struct Database {
    server: PostgresServer,
    file_system: String,
}

impl Database {
    /// Starts one below the system's folder for temporary files (`TMPDIR`), with the settings of the tests: `fsync` and
    /// `synchronous_commit` on, 64 MB of shared buffers.
    ///
    /// # Errors
    /// PostgreSQL is not installed or does not start, or that folder is in memory.
    pub fn start() -> Result<Self, Error> {
        let server = Flavour::CurrentThread
            .runtime()?
            .block_on(PostgresServer::start(&[]))?;
        let file_system = on_a_disk(server.socket_dir())
            .map_err(|in_memory| format!("{in_memory}: name a folder on a disk by TMPDIR"))?;
        Ok(Self { server, file_system })
    }

    /// A new, empty database, as a URL.
    ///
    /// # Errors
    /// The operating system gives no runtime.
    pub fn create(&self) -> Result<String, Error> {
        Ok(Flavour::CurrentThread.runtime()?.block_on(self.server.database()))
    }

    /// The name of the file system, such as `ext4`.
    #[must_use]
    pub fn file_system(&self) -> &str {
        &self.file_system
    }
}
