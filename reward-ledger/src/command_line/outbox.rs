//! `outbox list|retry|discard`.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::output::Format;
use super::{Common, Ended, Failure, with_ledger};
use crate::json;
use crate::limits::QUERY_ROWS_MAX;
use crate::store::{Amended, OutboxQuery};
use crate::types::{ClaimId, Delivery, Reason};

#[derive(Debug, Subcommand)]
pub(super) enum OutboxCommand {
    /// List dead letters, or all rows
    List(ListArgs),
    /// Have a dead or discarded row tried again with all its tries, before what its player is still to be told
    Retry(RetryArgs),
    /// Give a dead row up for good; it stays on record with the reason
    Discard(DiscardArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    common: Common,
    /// All rows, not only those that were given up
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    common: Common,
    /// The row's number
    delivery: u64,
}

#[derive(Debug, Args)]
pub(super) struct DiscardArgs {
    #[command(flatten)]
    common: Common,
    /// The row's number
    delivery: u64,
    /// Why
    #[arg(long)]
    reason: String,
}

pub(super) async fn outbox(command: OutboxCommand) -> Result<Ended, Failure> {
    match command {
        OutboxCommand::List(args) => list(args).await,
        OutboxCommand::Retry(args) => {
            let format = args.common.format();
            with_ledger(&args.common, async |ledger| {
                answer(format, &ledger.retry_delivery(ClaimId::new(args.delivery)).await?)
            })
            .await
        }
        OutboxCommand::Discard(args) => {
            let reason = Reason::new(&args.reason)?;
            let format = args.common.format();
            with_ledger(&args.common, async |ledger| {
                let id = ClaimId::new(args.delivery);
                answer(format, &ledger.discard_delivery(id, reason).await?)
            })
            .await
        }
    }
}

async fn list(args: ListArgs) -> Result<Ended, Failure> {
    let query = if args.all {
        OutboxQuery::All
    } else {
        OutboxQuery::Dead
    };
    let format = args.common.format();
    with_ledger(&args.common, async |ledger| {
        let mut after = None;
        loop {
            let found = ledger.deliveries(query, after, QUERY_ROWS_MAX).await?;
            for delivery in &found.deliveries {
                format.say(&in_words(delivery), &json::delivery(delivery))?;
            }
            after = found.next;
            if after.is_none() {
                return Ok(Ended::Done);
            }
        }
    })
    .await
}

fn answer(format: Format, amended: &Amended) -> Result<Ended, Failure> {
    let (words, json, ended) = match amended {
        Amended::Done(delivery) => (in_words(delivery), json::delivery(delivery), Ended::Done),
        Amended::Refused(delivery) => (
            format!("not for such a row: {}", in_words(delivery)),
            json::delivery(delivery),
            Ended::Refused,
        ),
        Amended::TakenBack(delivery) => (
            format!(
                "it was taken back, and the outside may know that: {}",
                in_words(delivery)
            ),
            json::delivery(delivery),
            Ended::Refused,
        ),
        Amended::NotFound => ("there is no such row".to_owned(), Value::Null, Ended::Refused),
    };
    format.say(&words, &json)?;
    Ok(ended)
}

fn in_words(delivery: &Delivery) -> String {
    let progress = &delivery.progress;
    let words = format!(
        "{} {} {} after {} tries, {}",
        delivery.id,
        delivery.idempotency_key(),
        progress.state().name(),
        progress.tries(),
        progress.doubt().name(),
    );
    match progress.note().as_str() {
        "" => words,
        note => format!("{words}: {note}"),
    }
}
