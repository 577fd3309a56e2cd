//! The server binary: arguments, signals, one line when it serves.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand};
use lease_core::limits::ISSUED_TOKEN_MAX;
use lease_store::{
    ClusterConfig, DEFAULT_NODE, Exposure, Server, ServerConfig, ServerError, StoreConfig, TokenFloor,
};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
struct ServeArgs {
    /// Where everything is kept; made if it is not there.
    #[arg(
        long,
        env = "LEASE_STORE_DATA_DIR",
        default_value = "./lease-data",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// Keeps everything in memory instead: a restart forgets every lease and every token. For tests.
    #[arg(
        long,
        env = "LEASE_STORE_MEMORY",
        conflicts_with = "data_dir",
        value_parser = BoolishValueParser::new()
    )]
    memory: bool,
    /// Where Redis clients are served.
    #[arg(
        long,
        env = "LEASE_STORE_LISTEN",
        default_value = "127.0.0.1:7420",
        value_name = "ADDRESS"
    )]
    listen: SocketAddr,
    /// Where health, metrics and state are served over HTTP.
    #[arg(
        long,
        env = "LEASE_STORE_ADMIN",
        default_value = "127.0.0.1:7421",
        value_name = "ADDRESS"
    )]
    admin: SocketAddr,
    /// The id of this node, from 1 up.
    #[arg(long, env = "LEASE_STORE_NODE_ID", default_value_t = DEFAULT_NODE, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    node_id: u64,
    /// The nodes of the cluster and where their peers reach them, the same list for all: 1=host:port,2=host:port,3=host:port.
    #[arg(
        long,
        env = "LEASE_STORE_CLUSTER",
        value_name = "LIST",
        requires = "peer_listen",
        conflicts_with = "memory"
    )]
    cluster: Option<ClusterConfig>,
    /// Where this node listens for its peers.
    #[arg(
        long,
        env = "LEASE_STORE_PEER_LISTEN",
        value_name = "ADDRESS",
        requires = "cluster"
    )]
    peer_listen: Option<SocketAddr>,
    /// A file with the password that clients must show (AUTH).
    #[arg(long, env = "LEASE_STORE_PASSWORD_FILE", value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Allows listeners off loopback without a password: whoever reaches them is trusted.
    #[arg(long, env = "LEASE_STORE_INSECURE", value_parser = BoolishValueParser::new())]
    insecure: bool,
    /// Fencing tokens start above this number at this start, instead of above what the wall clock says. It cannot be taken
    /// back: no later start goes below it.
    #[arg(long, env = "LEASE_STORE_TOKEN_FLOOR", value_name = "N",
          value_parser = clap::value_parser!(u64).range(..ISSUED_TOKEN_MAX))]
    token_floor: Option<u64>,
    /// Connections at once.
    #[arg(
        long,
        env = "LEASE_STORE_MAX_CONNECTIONS",
        default_value_t = 10_000,
        value_name = "N"
    )]
    max_connections: usize,
    /// Longest key or value of SET, in bytes.
    #[arg(
        long,
        env = "LEASE_STORE_MAX_VALUE",
        default_value_t = 1_048_576,
        value_name = "BYTES"
    )]
    max_value: usize,
    /// Databases that SELECT reaches.
    #[arg(long, env = "LEASE_STORE_DATABASES", default_value_t = 16, value_name = "N")]
    databases: u8,
    /// Threads that serve. On few cores one is the fastest; the log's disk has a thread of its own.
    #[arg(long, env = "LEASE_STORE_WORKERS", default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
}

impl ServeArgs {
    fn config(&self) -> ServerConfig {
        let store = if self.memory {
            StoreConfig::in_memory()
        } else {
            StoreConfig::in_directory(&self.data_dir)
        };
        let store = match (self.cluster.clone(), self.peer_listen) {
            (Some(cluster), Some(peer_listen)) => store.cluster(cluster.listening_at(peer_listen)),
            // The command line asks for both or none.
            _ => store,
        };
        let floor = self.token_floor.map_or(TokenFloor::WallClock, TokenFloor::At);
        let mut config = ServerConfig::new(
            store.node(self.node_id).token_floor(floor),
            self.listen,
            self.admin,
        );
        config.password_file.clone_from(&self.password_file);
        config.exposure = if self.insecure {
            Exposure::Insecure
        } else {
            Exposure::Protected
        };
        config.connections_max = self.max_connections;
        config.max_value = self.max_value;
        config.databases = self.databases;
        config
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
    let runtime = if args.workers == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(usize::from(args.workers))
            .enable_all()
            .build()
    };
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve(&args)),
        Err(error) => {
            tracing::error!(%error, "cannot start the runtime");
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

async fn serve(args: &ServeArgs) -> Result<(), ServerError> {
    if args.memory {
        tracing::warn!("--memory: a restart forgets every lease, every token and every request");
    }
    // Before anything serves, so that no signal finds nobody listening.
    let mut signals = Signals::new();
    let server = Server::start(args.config()).await?;
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
