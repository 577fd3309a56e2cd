//! A PostgreSQL server of the tests' own: in a directory of its own, reached by a socket there, gone with its process.
//!
//! It runs what is installed (Debian: the package `postgresql`; `scripts/test` installs it). As root it runs as the
//! user `postgres`, since the server refuses root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::clock::monotonic_now;

/// How long a server may take to answer, on a busy machine.
const START_TIME_MAX: Duration = Duration::from_secs(60);
/// Between two looks whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Whom it runs as under root; Debian's package makes this user.
const USER: &str = "postgres";
/// Runs the server until the standard input ends, also because whoever holds it was killed; then nothing is left.
const KEEPER: &str = "dir=$1; shift; \"$@\" >\"$dir/log\" 2>&1 & server=$!; read -r _; kill -QUIT $server; wait $server; rm -rf \"$dir\"";

static SHARED: OnceCell<PostgresServer> = OnceCell::const_new();

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    dir: PathBuf,
    /// Its standard input is the leash.
    keeper: Child,
    /// Over TCP, where it listens there; its socket is named after it, too.
    port: Option<u16>,
    databases: AtomicU32,
}

impl PostgresServer {
    /// The one that all tests of a process share.
    ///
    /// # Panics
    /// Where it does not start; the message says what to install.
    ///
    /// # Cancel safety
    /// Safe.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
    pub async fn shared() -> &'static Self {
        SHARED
            .get_or_init(async || Self::start(&[]).await.expect("a PostgreSQL server"))
            .await
    }

    /// Starts one with these settings beside the usual ones.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    ///
    /// # Cancel safety
    /// Safe: a server that is half started ends with the call.
    pub async fn start(settings: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_with(settings, &[], None).await
    }

    /// Starts one that is also reached over TCP, on loopback, and speaks TLS there with this certificate and its key, both
    /// as PEM.
    ///
    /// # Errors
    /// As [`PostgresServer::start`].
    ///
    /// # Cancel safety
    /// As [`PostgresServer::start`].
    pub async fn start_with_tls(certificate: &str, key: &str) -> io::Result<Self> {
        let port = free_port()?;
        let number = port.to_string();
        let settings = [
            ("listen_addresses", "127.0.0.1"),
            ("port", &number),
            ("ssl", "on"),
            ("ssl_cert_file", "../server.pem"),
            ("ssl_key_file", "../server.key"),
        ];
        let files = [("server.pem", certificate), ("server.key", key)];
        Self::start_with(&settings, &files, Some(port)).await
    }

    async fn start_with(
        settings: &[(&str, &str)],
        files: &[(&str, &str)],
        port: Option<u16>,
    ) -> io::Result<Self> {
        let programs = programs()?;
        let dir = tempfile::Builder::new().prefix("ledger-postgres-").tempdir()?;
        let user = user_of(&dir)?;
        if let Some((uid, gid)) = user {
            chown(dir.path(), Some(uid), Some(gid))?;
        }
        let made = as_user(&programs.join("initdb"), user)
            .args([
                "--auth=trust",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
                "-U",
                USER,
                "-D",
            ])
            .arg(dir.path().join("data"))
            .current_dir(dir.path())
            .output()?;
        if !made.status.success() {
            return Err(io::Error::other(
                String::from_utf8_lossy(&made.stderr).into_owned(),
            ));
        }
        for (name, text) in files {
            let file = dir.path().join(name);
            fs::write(&file, text)?;
            // The server takes no key that others may read.
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
            if let Some((uid, gid)) = user {
                chown(&file, Some(uid), Some(gid))?;
            }
        }
        // The keeper takes it away.
        let dir = dir.keep();
        let mut command = as_user(Path::new("sh"), user);
        command
            .args(["-c", KEEPER, "sh"])
            .arg(&dir)
            .arg(programs.join("postgres"));
        command.arg("-D").arg(dir.join("data")).arg("-k").arg(&dir);
        let usual = [
            ("listen_addresses", ""),
            ("max_connections", "300"),
            ("shared_buffers", "64MB"),
        ];
        for (name, value) in usual.iter().chain(settings) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let keeper = command.current_dir(&dir).stdin(Stdio::piped()).spawn()?;
        let server = Self {
            dir,
            keeper,
            port,
            databases: AtomicU32::new(0),
        };
        server.wait_until_it_answers().await?;
        Ok(server)
    }

    /// A new, empty database; answers with its URL.
    ///
    /// # Panics
    /// Where it cannot be made.
    ///
    /// # Cancel safety
    /// Safe.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its database")]
    pub async fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let client = connect(&self.url(USER)).await.expect("the server answers");
        let make = format!("CREATE DATABASE {name} TEMPLATE template0");
        client.batch_execute(&make).await.expect("a database can be made");
        self.url(&name)
    }

    /// The URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let port = self.port.map_or_else(String::new, |port| format!(" port={port}"));
        format!("host={}{port} user={USER} dbname={database}", self.dir.display())
    }

    /// Its port over TCP; none where it has only a socket.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// The directory of its socket, as clients in any language take it for a host.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.dir
    }

    async fn wait_until_it_answers(&self) -> io::Result<()> {
        let until = monotonic_now() + START_TIME_MAX;
        let url = self.url(USER);
        loop {
            let error = match connect(&url).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if monotonic_now() > until {
                let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("it does not answer: {error:?}\n{log}")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It is gone either way.
        let _gone = self.keeper.wait();
    }
}

/// A plain session, for what a test does behind the ledger's back.
///
/// # Errors
/// The server's.
///
/// # Cancel safety
/// Safe.
#[expect(
    clippy::disallowed_methods,
    reason = "the session's bytes must be moved, and it ends with the session"
)]
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        let _ended = connection.await;
    });
    Ok(client)
}

/// A port that nobody had a moment ago. PostgreSQL chooses none itself.
fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Where the server's programs are: on the path, or where Debian keeps the newest.
fn programs() -> io::Result<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .find(|dir| dir.join("initdb").exists() && dir.join("postgres").exists());
    if let Some(dir) = on_path {
        return Ok(dir);
    }
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    versions
        .map(|version| version.path().join("bin"))
        .filter(|dir| dir.join("initdb").exists())
        .max_by_key(|dir| version_of(dir))
        .ok_or_else(|| {
            io::Error::other("PostgreSQL's server is not installed; on Debian: apt-get install postgresql")
        })
}

fn version_of(programs: &Path) -> u32 {
    let version = programs
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    version.and_then(|name| name.parse().ok()).unwrap_or(0)
}

/// User and group to run as; `None`: as we are.
fn user_of(dir: &TempDir) -> io::Result<Option<(u32, u32)>> {
    if fs::metadata(dir.path())?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let entry = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(USER)).then(|| (fields.nth(1), fields.next()))
    });
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    match entry.and_then(|(uid, gid)| Some((number(uid)?, number(gid)?))) {
        Some(user) => Ok(Some(user)),
        None => Err(io::Error::other(
            "root may not run PostgreSQL, and there is no user called postgres",
        )),
    }
}

fn as_user(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}
