//! One node: a server process of its own, which never outlives the test that started it.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{Deadline, SOON};
use crate::output::Output;
use crate::resp::Client;

/// A server process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Node {
    child: Child,
    stdout: Output,
    stderr: Output,
    ready: Option<Ready>,
}

/// What the line says that a node prints when it serves.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The whole line.
    pub line: String,
    /// Where clients are served.
    pub resp: SocketAddr,
    /// Where HTTP is served.
    pub admin: SocketAddr,
}

impl Ready {
    fn find(text: &str) -> Option<Self> {
        let line = text
            .split_inclusive('\n')
            .find(|line| line.starts_with("ready ") && line.ends_with('\n'))?;
        let line = line.trim_end();
        let field = |name: &str| {
            line.split(' ')
                .find_map(|word| word.strip_prefix(name)?.parse().ok())
        };
        Some(Self {
            resp: field("resp=")?,
            admin: field("admin=http://")?,
            line: line.to_owned(),
        })
    }
}

/// How a process ended.
#[derive(Debug)]
pub struct Exit {
    /// Its exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// All it wrote to its standard output.
    pub stdout: String,
    /// All it wrote to its standard error.
    pub stderr: String,
}

impl Exit {
    /// It ended as it should after an order to stop.
    #[track_caller]
    pub fn expect_clean(&self) {
        assert_eq!(self.code, Some(0), "{self:#?}");
    }

    /// It ended with an error code, and every one of `words` is in what it said.
    #[track_caller]
    pub fn expect_failure(&self, words: &[&str]) {
        assert!(self.code.is_some_and(|code| code != 0), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not said: {self:#?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
    }
}

impl Node {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let spawned = command.spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("harness: cannot start {command:?}: {error}"));
        let stdout = child.stdout.take().map(Output::follow).unwrap_or_default();
        let stderr = child.stderr.take().map(Output::follow).unwrap_or_default();
        Self {
            child,
            stdout,
            stderr,
            ready: None,
        }
    }

    /// Waits until it serves.
    pub fn wait_until_ready(&mut self) {
        self.ready = self.stdout.wait_for(Deadline::after(SOON), Ready::find);
        let is_ready = self.ready.is_some();
        assert!(
            is_ready,
            "the node does not serve; it says:\n{}{}",
            self.stdout.text(),
            self.stderr.text()
        );
    }

    /// What it said when it was ready.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        let ready = self.ready.as_ref();
        ready.unwrap_or_else(|| panic!("harness: this node was not waited for"))
    }

    /// Where clients are served.
    #[must_use]
    pub fn resp(&self) -> SocketAddr {
        self.ready().resp
    }

    /// Where HTTP is served.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.ready().admin
    }

    /// A new client of it.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::connect(self.resp())
    }

    /// The id of its process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// What it writes to its standard output.
    #[must_use]
    pub const fn stdout(&self) -> &Output {
        &self.stdout
    }

    /// What it writes to its standard error.
    #[must_use]
    pub const fn stderr(&self) -> &Output {
        &self.stderr
    }

    /// Bytes of memory that it has resident.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process_id()))
            .unwrap_or_else(|error| panic!("harness: no status of the process: {error}"));
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("harness: no resident memory in {status}")) * 1_024
    }

    /// Sends a signal. The process is this one's child and was not waited for, so its id is still its own.
    pub fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let sent = process.map(|process| kill_process(process, signal));
        assert!(
            matches!(sent, Some(Ok(()))),
            "harness: cannot send {signal:?}: {sent:?}"
        );
    }

    /// Waits until it ends by itself.
    #[must_use]
    pub fn wait(mut self) -> Exit {
        let deadline = Deadline::after(SOON);
        // Both end when the process does, and these waits have a deadline.
        let ended = self.stdout.wait_for_end(deadline) && self.stderr.wait_for_end(deadline);
        assert!(
            ended,
            "the process goes on; it says:\n{}{}",
            self.stdout.text(),
            self.stderr.text()
        );
        self.reap()
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.reap();
    }

    /// Asks it to stop, and expects that it does so cleanly.
    #[track_caller]
    pub fn stop(self) {
        self.signal(Signal::TERM);
        self.wait().expect_clean();
    }

    fn reap(&mut self) -> Exit {
        let status = self
            .child
            .wait()
            .unwrap_or_else(|error| panic!("harness: cannot wait for the process: {error}"));
        let deadline = Deadline::after(SOON);
        let _ = self.stdout.wait_for_end(deadline) && self.stderr.wait_for_end(deadline);
        Exit {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Already gone: nothing is sent to anybody, the standard library knows that it has waited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
