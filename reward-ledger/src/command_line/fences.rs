//! `fence get|reset`.

use clap::{Args, Subcommand};
use lease_core::{FenceToken, LeaseName};
use serde_json::Value;

use super::{Common, Ended, Failure, with_ledger};
use crate::json;
use crate::types::FenceState;

#[derive(Debug, Subcommand)]
pub(super) enum FenceCommand {
    /// Show the highest token that was seen of a resource
    Get(GetArgs),
    /// Set it, also to a lower one: for an issuer that has lost its counter
    Reset(ResetArgs),
}

#[derive(Debug, Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    common: Common,
    /// The resource
    resource: String,
}

#[derive(Debug, Args)]
pub(super) struct ResetArgs {
    #[command(flatten)]
    common: Common,
    /// The resource
    resource: String,
    /// The highest token seen from now on; none unless said
    #[arg(long)]
    to: Option<u64>,
    /// Why. Every token from there up is taken then, also one that was superseded
    #[arg(long)]
    reason: String,
}

pub(super) async fn fence(command: FenceCommand) -> Result<Ended, Failure> {
    match command {
        FenceCommand::Get(args) => {
            let resource = LeaseName::new(&args.resource)?;
            let format = args.common.format();
            with_ledger(&args.common, async |ledger| {
                match ledger.fence(&resource).await? {
                    Some(state) => {
                        format.say(&in_words(&state), &json::fence_state(&resource, &state))?;
                        Ok(Ended::Done)
                    }
                    None => {
                        format.say("no claim has shown a token of it", &Value::Null)?;
                        Ok(Ended::Refused)
                    }
                }
            })
            .await
        }
        FenceCommand::Reset(args) => {
            let resource = LeaseName::new(&args.resource)?;
            let to = args.to.map(FenceToken::new).transpose()?;
            let format = args.common.format();
            with_ledger(&args.common, async |ledger| {
                let state = ledger.reset_fence(&resource, to, &args.reason).await?;
                format.say(&in_words(&state), &json::fence_state(&resource, &state))?;
                Ok(Ended::Done)
            })
            .await
        }
    }
}

fn in_words(state: &FenceState) -> String {
    let seen = state
        .seen
        .map_or_else(|| "none".to_owned(), |token| token.get().to_string());
    match &state.last_reset {
        Some(reset) => format!("{seen}; reset at {}: {}", reset.at, reset.reason),
        None => seen,
    }
}
