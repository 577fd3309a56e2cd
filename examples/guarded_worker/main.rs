//! A worker as it would run in production: take a message, hold its player's lease, do the work, grant the reward.
//!
//! `cargo run --release --example guarded_worker` runs alone, with a store in its own process. Against a server:
//! `cargo run --release` in one terminal, `... --example guarded_worker -- --server` in others, each with a `--dir` of
//! its own or none.
//!
//! What there is to see: a lease for each player, waited for; work that is dropped at a loss; a claim that carries the
//! token and is sent again under the same attempt id if its answer is lost; a duplicate message that gets the first
//! receipt; a refusal that shows what was granted instead; and a clean stop on Ctrl-C.

#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

mod job;
mod queue;
mod worker;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use fence_client::{FenceClient, OwnerId};
use lease_store::{LeaseStore, StoreConfig};
use reward_ledger::{AuditReport, Ledger, SledStore};
use tokio::sync::watch;
use tokio::task::JoinSet;

use queue::Queue;
use worker::{Tally, Worker};

/// What can go wrong in an example: it is shown, and ends it.
type Failure = Box<dyn Error + Send + Sync>;

/// Where a server listens unless it was told otherwise.
const SERVER: &str = "127.0.0.1:7420";
/// How long the releases of dropped leases may take at the end.
const SETTLE: Duration = Duration::from_secs(2);

/// Grants rewards from a queue under leases, each once.
#[derive(Debug, Parser)]
#[command(name = "guarded_worker")]
struct Arguments {
    /// The lease store's address; without it, one is started in this process.
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = SERVER, conflicts_with = "embedded")]
    server: Option<String>,
    /// Starts a lease store in this process. The default.
    #[arg(long)]
    embedded: bool,
    /// Rewards to grant. Every third message is delivered twice, as queues do.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,
    /// Workers beside each other.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    /// The ledger's directory; by default a temporary one.
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(End::Done | End::Stopped) => ExitCode::SUCCESS,
        Ok(End::Unfinished) => ExitCode::FAILURE,
        Err(error) => {
            println!("{}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// How a run ends.
enum End {
    /// Every message is done, and the ledger is sound.
    Done,
    /// Somebody pressed Ctrl-C; what was done is sound, and the rest is still in the queue.
    Stopped,
    /// Something is left over, or wrong.
    Unfinished,
}

async fn run(arguments: Arguments) -> Result<End, Failure> {
    let embedded = match &arguments.server {
        Some(_) => None,
        None => Some(LeaseStore::start(StoreConfig::in_memory()).await?),
    };
    let temporary = tempfile::tempdir()?;
    let dir = arguments
        .dir
        .clone()
        .unwrap_or_else(|| temporary.path().join("ledger"));
    let ledger = Ledger::open(SledStore::open(&dir)?);
    let queue = Arc::new(Queue::of_season(arguments.jobs)?);

    let (stop, stopping) = watch::channel(false);
    let workers = start_workers(&arguments, embedded.as_ref(), &ledger, &queue, stopping).await?;
    let tally = finish(workers, &stop).await?;
    let audit = ledger.audit().await?;
    println!("\n{tally}");
    println!(
        "ledger: {} rewards, {} gold in all, {}",
        audit.claims,
        audit.granted,
        soundness(&audit)
    );

    ledger.close().await?;
    if let Some(store) = embedded {
        store.shutdown().await?;
    }
    Ok(match () {
        () if !audit.is_clean() || tally.failed > 0 => End::Unfinished,
        () if queue.is_empty() => End::Done,
        () if *stop.borrow() => End::Stopped,
        () => End::Unfinished,
    })
}

/// The workers, and their clients for the end.
struct Workers {
    running: JoinSet<Tally>,
    clients: Vec<FenceClient>,
}

async fn start_workers(
    arguments: &Arguments,
    embedded: Option<&LeaseStore>,
    ledger: &Ledger,
    queue: &Arc<Queue>,
    stopping: watch::Receiver<bool>,
) -> Result<Workers, Failure> {
    let mut workers = Workers {
        running: JoinSet::new(),
        clients: Vec::new(),
    };
    for number in 1..=arguments.workers {
        let name = format!("worker-{number}");
        let client = connect(arguments, embedded, &name).await?;
        workers.clients.push(client.clone());
        let worker = Worker {
            name,
            client,
            ledger: ledger.clone(),
            queue: Arc::clone(queue),
        };
        workers.running.spawn(worker.run(stopping.clone()));
    }
    Ok(workers)
}

/// Waits until the queue is empty, or somebody presses Ctrl-C and the messages in hand are done.
async fn finish(mut workers: Workers, stop: &watch::Sender<bool>) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    loop {
        tokio::select! {
            biased;
            ended = workers.running.join_next() => match ended {
                Some(ended) => tally.add(&ended?),
                None => break,
            },
            pressed = tokio::signal::ctrl_c(), if !*stop.borrow() => {
                pressed?;
                println!("stopping: the messages in hand are finished first");
                stop.send_replace(true);
            }
        }
    }
    for client in workers.clients {
        client.settle(SETTLE).await;
    }
    Ok(tally)
}

async fn connect(
    arguments: &Arguments,
    embedded: Option<&LeaseStore>,
    name: &str,
) -> Result<FenceClient, Failure> {
    // Several processes may have a worker-1: an owner must be unique.
    let owner = OwnerId::new(format!("{name}@{}", std::process::id()))?;
    let builder = FenceClient::builder().owner(owner);
    match (&arguments.server, embedded) {
        (_, Some(store)) => Ok(builder.embedded(store.clone())?),
        (Some(server), None) => builder.connect(server).await.map_err(|error| {
            let advice = "`cargo run --release` starts one; without --server this example brings its own";
            format!("{}\n{advice}", chain(&error)).into()
        }),
        (None, None) => Err("neither a server nor an embedded store".into()),
    }
}

fn soundness(audit: &AuditReport) -> String {
    match audit.violations_found {
        0 => "every invariant holds".to_owned(),
        found => format!("{found} violations: {:?}", audit.violations),
    }
}

/// An error with what caused it.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
