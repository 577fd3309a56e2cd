//! The server binary: arguments, signals, one line when it serves.

mod config_file;
mod settings;

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use lease_store::{Server, ServerError};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use self::config_file::ConfigFileError;
use self::settings::{Keeps, Resolved, Settings, SettingsError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Leases with linearizable fencing tokens, for every Redis client.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves until it is stopped by SIGINT or SIGTERM; what it does without a command, too.
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// A TOML file with a key for each option, without its dashes in front, and a section [cluster]. What is said here or in
    /// the environment holds, then what the file says, then the defaults
    #[arg(long, env = "LEASE_STORE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// Why the server does not start with what it was told.
#[derive(Debug, Error)]
enum SetupError {
    #[error(transparent)]
    File(#[from] ConfigFileError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
}

impl ServeArgs {
    /// The options and the environment first, then the file, then the defaults.
    fn resolve(self) -> Result<Resolved, SetupError> {
        let file = match &self.config {
            Some(path) => config_file::read(path)?,
            None => Settings::default(),
        };
        Ok(self.settings.over(file)?.resolve()?)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("LEASE_STORE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,openraft=error,lease_store=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let args = match cli.command {
        Some(Command::Serve(args)) => args,
        None => cli.serve,
    };
    let set_up = args.resolve().and_then(|resolved| {
        let runtime = runtime(resolved.workers).map_err(SetupError::Runtime)?;
        Ok((resolved, runtime))
    });
    let served = match set_up {
        Ok((resolved, runtime)) => runtime.block_on(serve(resolved)),
        Err(error) => {
            tracing::error!("{}", chain(&error));
            return ExitCode::FAILURE;
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn runtime(workers: u16) -> std::io::Result<tokio::runtime::Runtime> {
    if workers == 1 {
        return tokio::runtime::Builder::new_current_thread().enable_all().build();
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(workers))
        .enable_all()
        .build()
}

async fn serve(resolved: Resolved) -> Result<(), ServerError> {
    if resolved.keeps == Keeps::Nothing {
        tracing::warn!("--memory: a restart forgets every lease, every token and every request");
    }
    // Before anything serves, so that no signal finds nobody listening.
    let mut signals = Signals::new();
    let server = Server::start(resolved.config).await?;
    announce(&server);
    tokio::select! {
        biased;
        failed = server.failed() => {
            tracing::error!("{}", chain(&failed));
            // What can still be answered and closed is; the failure is what counts.
            let _ = server.shutdown().await;
            Err(failed)
        }
        name = signals.next() => {
            tracing::info!(signal = name, "stopping");
            server.shutdown().await
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the one line that tells scripts and people that it serves"
)]
fn announce(server: &Server) {
    println!("{}", server.ready());
    // A closed standard output is no reason to stop.
    let _ = std::io::stdout().flush();
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    fn new() -> Self {
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
        }
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            () = received(self.interrupt.as_mut()) => "SIGINT",
            () = received(self.terminate.as_mut()) => "SIGTERM",
        }
    }
}

fn listen(kind: SignalKind) -> Option<tokio::signal::unix::Signal> {
    signal(kind)
        .inspect_err(|error| tracing::warn!(%error, "a signal cannot be listened for"))
        .ok()
}

async fn received(signal: Option<&mut tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
