//! `claim` and `get`.

use clap::Args;
use lease_core::{Fence, FenceToken, LeaseName};
use serde_json::{Value, json};

use super::{Common, Ended, Failure, with_ledger};
use crate::core::ClaimOutcome;
use crate::event_id::RewardEventId;
use crate::json;
use crate::types::Claim;

#[derive(Debug, Args)]
pub(super) struct ClaimArgs {
    #[command(flatten)]
    common: Common,
    /// The name of the lease whose token is shown
    #[arg(long)]
    resource: String,
    /// Its fencing token
    #[arg(long, env = "FENCE_TOKEN")]
    fence_token: u64,
    /// Who is rewarded
    #[arg(long, allow_negative_numbers = true)]
    player: i64,
    /// What for, such as season-2026-week-34:player-42:rank-3
    #[arg(long)]
    event: String,
    /// With what
    #[arg(long, default_value = "")]
    item: String,
    /// With how much
    #[arg(long)]
    amount: i64,
    /// Which try this is: the same for each repetition of the same request
    #[arg(long)]
    attempt: String,
    /// Take an event id that looks random. Whoever makes a fresh one for each try is paid for each try
    #[arg(long)]
    allow_random_event_id: bool,
}

#[derive(Debug, Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    common: Common,
    /// Who was rewarded
    #[arg(allow_negative_numbers = true)]
    player: i64,
    /// What for
    event: String,
}

pub(super) async fn claim(args: ClaimArgs) -> Result<Ended, Failure> {
    let event = if args.allow_random_event_id {
        RewardEventId::parse_allowing_random_look(&args.event)?
    } else {
        RewardEventId::parse(&args.event)?
    };
    let fence = Fence::new(
        LeaseName::new(&args.resource)?,
        FenceToken::new(args.fence_token)?,
    );
    let claim = Claim::builder(fence, args.player, event, args.amount)
        .item(&args.item)
        .attempt(&args.attempt)
        .build()?;
    let format = args.common.format();
    with_ledger(&args.common, async |ledger| {
        let outcome = ledger.claim(claim).await?;
        let (kind, words) = in_words(&outcome);
        format.say(
            &words,
            &json!({ "outcome": kind, "answer": json::refused_outcome(&outcome) }),
        )?;
        Ok(if outcome.is_accepted() {
            Ended::Done
        } else {
            Ended::Refused
        })
    })
    .await
}

fn in_words(outcome: &ClaimOutcome) -> (&'static str, String) {
    match outcome {
        ClaimOutcome::Applied(receipt) => ("applied", format!("applied: {receipt}")),
        ClaimOutcome::Replayed(receipt) => ("replayed", format!("replayed: {receipt}")),
        ClaimOutcome::Stale {
            presented,
            seen,
            applied,
        } => {
            let applied = applied.as_ref();
            let applied = applied.map_or_else(|| "nobody was granted it".to_owned(), ToString::to_string);
            (
                "stale-token",
                format!("stale: token {presented} is below {seen}; {applied}"),
            )
        }
        ClaimOutcome::Conflict { fields, .. } => {
            let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
            (
                "conflict",
                format!("conflict: what differs is {}", names.join(", ")),
            )
        }
    }
}

pub(super) async fn get(args: GetArgs) -> Result<Ended, Failure> {
    let event = RewardEventId::parse_allowing_random_look(&args.event)?;
    let format = args.common.format();
    with_ledger(&args.common, async |ledger| {
        let Some(record) = ledger.record(args.player, &event).await? else {
            format.say("there is no such claim", &Value::Null)?;
            return Ok(Ended::Refused);
        };
        let mut words = format!("{}; {}", record.receipt, record.progress.state().name());
        if let Some(reversal) = &record.reversal {
            words.push_str(&format!("; taken back: {}", reversal.reason));
        }
        format.say(&words, &json::claim_record(&record))?;
        Ok(Ended::Done)
    })
    .await
}
