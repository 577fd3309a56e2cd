//! `audit`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;

use super::output::{Format, say_progress};
use super::{Common, Ended, Failure, with_ledger};
use crate::audit::Expectations;
use crate::event_id::RewardEventId;
use crate::json::{self, BadField, Fields};

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    #[command(flatten)]
    common: Common,
    /// Amounts that the ledger must show: lines of JSON, {"kind": .., "amount": ..} or {"reward_event_id": .., "amount": ..}
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    /// What the outside server says it did: lines of JSON, {"idempotency_key": ..}, one for each effect
    #[arg(long, value_name = "FILE")]
    outside: Option<PathBuf>,
}

pub(super) async fn audit(args: AuditArgs) -> Result<Ended, Failure> {
    let expectations = match &args.expected {
        Some(file) => read_expectations(file)?,
        None => Expectations::new(),
    };
    let outside = match &args.outside {
        Some(file) => Some(read_outside(file)?),
        None => None,
    };
    let format = args.common.format();
    with_ledger(&args.common, async |ledger| {
        let found = |violation: &crate::audit::Violation| {
            if format == Format::Words {
                say_progress(&format!("{}: {violation}", violation.check()));
            }
        };
        let mut rows = 0_u64;
        let progress = |seen: u64| {
            if seen / PROGRESS_ROWS > rows / PROGRESS_ROWS {
                say_progress(&format!("{seen} rows"));
            }
            rows = seen;
        };
        let report = ledger
            .audit_with(&expectations, outside.as_ref(), found, progress)
            .await?;
        let words = format!(
            "{} claims of {} players, {} reversals, {} deliveries open, {} dead: {}",
            report.claims,
            report.players,
            report.reversals,
            report.outbox_open,
            report.outbox_dead,
            match report.violations_found {
                0 => "no violation".to_owned(),
                1 => "1 violation".to_owned(),
                more => format!("{more} violations"),
            }
        );
        format.say(&words, &json::audit_report(&report))?;
        Ok(if report.is_clean() {
            Ended::Done
        } else {
            Ended::Violated
        })
    })
    .await
}

/// Rows between two lines of progress: some a second.
const PROGRESS_ROWS: u64 = 100_000;

fn read_expectations(file: &Path) -> Result<Expectations, Failure> {
    let mut expectations = Expectations::new();
    for_each_line(file, |mut fields| {
        let amount = fields.amount()?;
        let checked = match fields.maybe_text("kind")? {
            Some(kind) => std::mem::take(&mut expectations).kind(kind, amount),
            None => {
                let event = RewardEventId::parse_allowing_random_look(fields.text("reward_event_id")?)
                    .map_err(|error| BadField::new("reward_event_id", error.to_string()))?;
                std::mem::take(&mut expectations).event(event, amount)
            }
        };
        expectations = checked.map_err(|error| BadField::new("amount", error.to_string()))?;
        fields.end()
    })?;
    Ok(expectations)
}

fn read_outside(file: &Path) -> Result<crate::audit::OutsideRecords, Failure> {
    let mut outside = crate::audit::OutsideRecords::new();
    for_each_line(file, |mut fields| {
        outside.effect(&fields.text("idempotency_key")?);
        Ok(())
    })?;
    Ok(outside)
}

fn for_each_line(file: &Path, mut take: impl FnMut(Fields) -> Result<(), BadField>) -> Result<(), Failure> {
    let reader = BufReader::new(File::open(file)?);
    for (index, line) in reader.lines().enumerate() {
        let taken = Fields::parse(line?.as_bytes()).and_then(&mut take);
        taken.map_err(|bad| format!("{} line {}: {bad}", file.display(), index + 1))?;
    }
    Ok(())
}
