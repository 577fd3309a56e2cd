//! The servers that are compared: processes of their own, killed when the run ends.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Error;
use crate::stopwatch::Stopwatch;

/// How long a server may take until it serves.
pub const READY_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of what a server said is shown when it fails, in bytes.
const SHOWN_BYTES_MAX: usize = 2_000;

/// A server process. Dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    child: Child,
    said: PathBuf,
}

impl Process {
    /// Starts `program`; what it says goes to a file in `directory`, which is made.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, arguments: &[OsString], directory: &Path) -> Result<Self, Error> {
        fs::create_dir_all(directory)?;
        let said = directory.join("said.txt");
        let out = File::create(&said)?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            // What the person at the keyboard has set for servers of theirs is not meant for these.
            let text = name.to_string_lossy();
            if text.starts_with("LEASE_STORE_") || text.starts_with("ETCD_") {
                command.env_remove(name);
            }
        }
        let child = command
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn();
        let child = child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self { child, said })
    }

    /// All it said so far.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// An error if it has ended, with the end of what it said.
    ///
    /// # Errors
    /// It has ended.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let said = self.said();
                let from = said.floor_char_boundary(said.len().saturating_sub(SHOWN_BYTES_MAX));
                let end = said.get(from..).unwrap_or_default();
                Err(format!("a server ended ({status}); it said: {end}").into())
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks until `look` has an answer.
///
/// # Errors
/// It has none in time, or one of `processes` ended.
pub async fn wait_until<T>(
    what: &str,
    processes: &mut [Process],
    mut look: impl AsyncFnMut(&[Process]) -> Option<T>,
) -> Result<T, Error> {
    let watch = Stopwatch::start();
    while watch.elapsed() < READY_WITHIN {
        for process in processes.iter_mut() {
            process.check()?;
        }
        if let Some(answer) = look(processes).await {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(format!("not within {READY_WITHIN:?}: {what}").into())
}

/// An address of loopback that is free now.
///
/// # Errors
/// None is.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A program by its name, as a shell finds it.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
