//! The command line `reward-ledger`: arguments, one call of the ledger, words for people or JSON for programs.
//!
//! Exit codes: 0 done (also a replay), 1 it could not be done, 2 bad arguments, 3 refused by the ledger (stale, conflict, not
//! found), 4 an audit found violations.

mod archive;
mod audit;
mod claims;
mod fences;
mod opening;
mod outbox;
mod output;
mod secrets;
mod serve;

use std::error::Error;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use self::opening::StoreAddress;
use self::output::{Format, say_error, say_progress};
use crate::ledger::Ledger;

/// What help says of the whole.
const AFTER_HELP: &str = "\
Exit codes:
  0  done, also a repeated claim
  1  it could not be done
  2  bad arguments
  3  refused by the ledger: stale, in conflict, not found
  4  an audit found violations

REWARD_LEDGER_LOG says what is logged to the error output, such as warn or reward_ledger=debug.";

/// A ledger of rewards that refuses stale fencing tokens.
#[derive(Debug, Parser)]
#[command(name = "reward-ledger", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Where the ledger is, and how answers are written.
#[derive(Debug, Args)]
struct Common {
    /// Where the ledger is kept: sled:DIR, postgres://USER@HOST/DATABASE, or memory: to try things out
    #[arg(
        long,
        env = "REWARD_LEDGER_STORE",
        hide_env_values = true,
        value_name = "STORE"
    )]
    store: StoreAddress,
    /// Write JSON for programs instead of words for people
    #[arg(long)]
    json: bool,
}

impl Common {
    const fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Words }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the ledger over HTTP until SIGINT or SIGTERM
    Serve(serve::ServeArgs),
    /// Grant a reward once, or say why not
    Claim(claims::ClaimArgs),
    /// Show a player's claim with its delivery and reversal
    Get(claims::GetArgs),
    /// Check the whole ledger against its invariants
    Audit(audit::AuditArgs),
    /// List, retry and discard what could not be delivered
    #[command(subcommand)]
    Outbox(outbox::OutboxCommand),
    /// Write the whole ledger as lines of JSON
    Export(archive::ExportArgs),
    /// Put the lines of an export into a ledger, of whatever store
    Import(archive::ImportArgs),
    /// Show and reset fences
    #[command(subcommand)]
    Fence(fences::FenceCommand),
}

/// How a command ended that could be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    Refused,
    Violated,
}

/// Arguments that the parser of arguments could not judge.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BadArguments(&'static str);

type Failure = Box<dyn Error + Send + Sync>;

/// Runs the command that the process was started with.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and the version.
        Err(asked) if !asked.use_stderr() => asked.exit(),
        Err(error) => {
            let shown = error.render().to_string();
            say_progress(secrets::hide(&shown, std::env::args()).trim_end());
            return ExitCode::from(2);
        }
    };
    let filter = EnvFilter::try_from_env("REWARD_LEDGER_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,reward_ledger=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(cli.command)),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Refused) => ExitCode::from(3),
        Ok(Ended::Violated) => ExitCode::from(4),
        Err(error) => {
            say_error(&*error);
            match error.is::<BadArguments>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

async fn carry_out(command: Command) -> Result<Ended, Failure> {
    match command {
        Command::Serve(args) => serve::serve(args).await,
        Command::Claim(args) => claims::claim(args).await,
        Command::Get(args) => claims::get(args).await,
        Command::Audit(args) => audit::audit(args).await,
        Command::Outbox(command) => outbox::outbox(command).await,
        Command::Export(args) => archive::export(args).await,
        Command::Import(args) => archive::import(args).await,
        Command::Fence(command) => fences::fence(command).await,
    }
}

/// Opens the ledger, does the work, closes it.
async fn with_ledger(
    common: &Common,
    work: impl AsyncFnOnce(&Ledger) -> Result<Ended, Failure>,
) -> Result<Ended, Failure> {
    let ledger = common.store.open().await?.open();
    let ended = work(&ledger).await;
    let closed = ledger.close().await;
    let ended = ended?;
    closed?;
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Every command at every depth, with the words that lead to it.
    fn visit(command: &clap::Command, words: &str, seen: &mut Vec<String>) {
        assert!(command.get_about().is_some(), "{words} says nothing of itself");
        for argument in command.get_arguments() {
            let name = argument.get_id();
            assert!(argument.get_help().is_some(), "{words} says nothing of {name}");
            assert!(!argument.is_hide_set(), "{words} hides {name}");
        }
        for inner in command.get_subcommands() {
            let words = format!("{words} {}", inner.get_name());
            visit(inner, &words, seen);
            if inner.get_subcommands().next().is_none() {
                let named = |name: &str| inner.get_arguments().any(|argument| argument.get_id() == name);
                if !words.contains(" help") {
                    assert!(
                        named("store") && named("json"),
                        "{words} takes no --store or no --json"
                    );
                    seen.push(words);
                }
            }
        }
    }

    #[test]
    fn every_command_explains_itself_and_all_its_arguments() {
        let mut command = Cli::command();
        // Adds help and version; panics where the definition does not hold together.
        command.build();
        let mut seen = Vec::new();
        visit(&command, "reward-ledger", &mut seen);
        assert_eq!(
            seen,
            [
                "reward-ledger serve",
                "reward-ledger claim",
                "reward-ledger get",
                "reward-ledger audit",
                "reward-ledger outbox list",
                "reward-ledger outbox retry",
                "reward-ledger outbox discard",
                "reward-ledger export",
                "reward-ledger import",
                "reward-ledger fence get",
                "reward-ledger fence reset",
            ]
        );
    }
}
