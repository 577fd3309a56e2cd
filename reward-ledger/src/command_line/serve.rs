//! `serve`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Common, Ended, Failure};
use crate::http::{Access, Service};
use crate::ledger::Ledger;
use crate::outbox::{HttpTarget, PublishPolicy, Publisher, Territory};
use crate::store::Health;

/// Bytes of a token at the least: 16 random ones as text are more.
const TOKEN_BYTES_MIN: usize = 16;

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of a command line, each of its own"
)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    common: Common,
    /// The address to listen on
    #[arg(long, env = "REWARD_LEDGER_LISTEN", default_value = "127.0.0.1:7430")]
    listen: SocketAddr,
    /// A file with the bearer token that callers must show
    #[arg(long, env = "REWARD_LEDGER_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Listen on other addresses than loopback without a token
    #[arg(long)]
    insecure: bool,
    /// Take claims that show no fence; the unique key protects them alone
    #[arg(long)]
    allow_unfenced: bool,
    /// Publish the outbox to the outside server at this URL
    #[arg(
        long,
        env = "REWARD_LEDGER_TARGET",
        hide_env_values = true,
        value_name = "URL"
    )]
    target: Option<String>,
    /// A file with the bearer token that is shown to the outside server
    #[arg(long, value_name = "FILE", requires = "target")]
    target_token_file: Option<PathBuf>,
    /// A file with certificates (PEM) of authorities that are trusted to vouch for the outside server, besides the system's
    #[arg(long, value_name = "FILE", requires = "target")]
    target_ca: Option<PathBuf>,
    /// Seconds for which the outside server remembers an idempotency key
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, requires = "target")]
    target_remembers: u64,
    /// Tries before a delivery is given up
    #[arg(long, default_value_t = 10, requires = "target")]
    target_tries: u32,
}

pub(super) async fn serve(args: ServeArgs) -> Result<Ended, Failure> {
    let access = match (&args.token_file, args.insecure) {
        (Some(file), _) => Access::Token(read_token(file)?),
        (None, true) => Access::Everybody,
        (None, false) => Access::LoopbackOnly,
    };
    // First the signals, so that none is missed from the ready line on.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut builder = args.common.store.open().await?;
    if args.allow_unfenced {
        builder = builder.allow_unfenced();
    }
    let ledger = builder.open();
    let service = Service::bind(ledger.clone(), args.listen, access).await?;
    let publisher = start_publisher(&args, &ledger)?;
    let address = service.address();
    args.common.format().say(
        &format!("ready http=http://{address}"),
        &json!({ "ready": { "http": format!("http://{address}") } }),
    )?;
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    service.run(stop).await;
    if let Some(publisher) = publisher {
        let _published = publisher.stop().await;
    }
    match ledger.health() {
        Health::Stopped(failure) => Err(format!("the ledger stopped at a storage error: {failure}").into()),
        Health::Serving | Health::Stalled | Health::Closed => {
            ledger.close().await?;
            Ok(Ended::Done)
        }
    }
}

fn start_publisher(args: &ServeArgs, ledger: &Ledger) -> Result<Option<Publisher>, Failure> {
    let Some(url) = &args.target else {
        return Ok(None);
    };
    let mut target = HttpTarget::builder(url);
    if let Some(file) = &args.target_token_file {
        target = target.bearer_token(read_token(file)?);
    }
    if let Some(file) = &args.target_ca {
        let pem = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        target = target.root_certificates(pem);
    }
    let policy = PublishPolicy::builder(Duration::from_secs(args.target_remembers))
        .tries_max(args.target_tries)
        .build()?;
    let territory = Territory::everything();
    Ok(Some(Publisher::start(
        ledger.clone(),
        target.build()?,
        policy,
        territory,
    )))
}

fn read_token(file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let token = text.trim_end_matches(['\r', '\n']);
    if token.len() < TOKEN_BYTES_MIN {
        return Err(format!("{}: a token has {TOKEN_BYTES_MIN} bytes or more", file.display()).into());
    }
    Ok(token.to_owned())
}
