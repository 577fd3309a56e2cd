//! A real redis-server.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tests::Client;
use tests::clock::wait_until;

/// A redis-server process, which ends with this.
pub(crate) struct Redis {
    child: Child,
    pub(crate) address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Redis {
    /// Starts one, if there is one.
    pub(crate) fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        // A port that was free a moment ago: Redis has none of its own choice.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new("redis-server")
            .args([
                "--port",
                &address.port().to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                assert!(
                    std::env::var("CI").as_deref() != Ok("true"),
                    "CI skips nothing, and redis-server does not start: {error}"
                );
                skipped(&error);
                return None;
            }
        };
        let redis = Self {
            child,
            address,
            _directory: directory,
        };
        wait_until("redis-server serves", || {
            let mut client = Client::try_connect(address).ok()?;
            client.try_call(&["PING"]).ok().map(drop)
        });
        Some(redis)
    }
}

/// Past the capture of the test harness: a check that is left out must be seen.
fn skipped(why: &std::io::Error) {
    let text = format!("\n!!! SKIPPED: the comparison with Redis (redis-server does not start: {why})\n");
    let _ = std::io::stderr().write_all(text.as_bytes());
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
