//! How a node is started: its arguments, its environment, its limits. On free ports, unless a test says which.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::artifact;
use crate::node::{Exit, Node};

/// How a node is started.
#[derive(Debug, Clone)]
pub struct Launch {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    listen: Option<String>,
    admin: Option<String>,
    shell: Option<String>,
}

impl Launch {
    /// With its data in `directory`.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self::with(["--data-dir".as_ref(), directory.as_os_str()])
    }

    /// With nothing on disk.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with(["--memory".as_ref()])
    }

    /// As a settings file says, which names its addresses too.
    #[must_use]
    pub fn from_file(settings: &Path) -> Self {
        Self {
            listen: None,
            admin: None,
            ..Self::with(["--config".as_ref(), settings.as_os_str()])
        }
    }

    fn with<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Self {
        Self {
            arguments: arguments.into_iter().map(OsStr::to_owned).collect(),
            environment: Vec::new(),
            listen: Some("127.0.0.1:0".to_owned()),
            admin: Some("127.0.0.1:0".to_owned()),
            shell: None,
        }
    }

    /// With these arguments, too.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        self.arguments.extend(arguments);
        self
    }

    /// With an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// On this address for clients, instead of a free port of loopback.
    #[must_use]
    pub fn listen(mut self, address: &str) -> Self {
        self.listen = Some(address.to_owned());
        self
    }

    /// On this address for HTTP, instead of a free port of loopback.
    #[must_use]
    pub fn admin(mut self, address: &str) -> Self {
        self.admin = Some(address.to_owned());
        self
    }

    /// With no file longer than this, in KiB: longer writes fail (`EFBIG`) and do not kill.
    #[must_use]
    pub fn file_kib_max(self, kib: u32) -> Self {
        // Blocks of 512 bytes, as POSIX has it.
        let blocks = kib * 2;
        self.shell(&format!("trap '' XFSZ; ulimit -f {blocks}"))
    }

    /// With so many file descriptors.
    #[must_use]
    pub fn descriptors_max(self, count: u32) -> Self {
        self.shell(&format!("ulimit -n {count}"))
    }

    fn shell(mut self, setup: &str) -> Self {
        self.shell = Some(setup.to_owned());
        self
    }

    /// With the library of `tests/faults` loaded: what `order` says happens to the files under `directory`.
    #[must_use]
    pub fn faults(self, directory: &Path, order: &Path) -> Self {
        self.env("LD_PRELOAD", artifact::fault_library())
            .env("FAULTS_UNDER", directory)
            .env("FAULTS_ORDER", order)
    }

    /// Starts it and waits until it serves.
    #[must_use]
    pub fn start(self) -> Node {
        let mut node = self.spawn();
        node.wait_until_ready();
        node
    }

    /// Starts it and does not wait: it may serve later, or never.
    #[must_use]
    pub fn spawn(self) -> Node {
        Node::spawn(&mut self.command())
    }

    /// Starts it, and waits until it ends by itself.
    #[must_use]
    pub fn run_to_end(self) -> Exit {
        self.spawn().wait()
    }

    fn command(&self) -> Command {
        let binary = artifact::server_binary();
        let mut command = match &self.shell {
            None => Command::new(binary),
            Some(setup) => {
                let mut command = Command::new("sh");
                command
                    .args(["-c", &format!("{setup}; exec \"$0\" \"$@\"")])
                    .arg(binary);
                command
            }
        };
        // What the person who runs the tests has set for a server of theirs is not meant for these.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LEASE_STORE_") {
                command.env_remove(name);
            }
        }
        for (option, address) in [("--listen", &self.listen), ("--admin", &self.admin)] {
            command.args(address.iter().flat_map(|address| [option, address]));
        }
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
