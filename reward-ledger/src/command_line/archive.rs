//! `export` and `import`.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::output::say_progress;
use super::{Common, Ended, Failure, with_ledger};
use crate::archive::{self, Exporter};

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    common: Common,
    /// The file to write, which must not be there yet; the standard output unless said
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(flatten)]
    common: Common,
    /// The file to read; the standard input unless said
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

pub(super) async fn export(args: ExportArgs) -> Result<Ended, Failure> {
    with_ledger(&args.common, async |ledger| {
        let mut exporter = Exporter::new(ledger.clone());
        let mut file = match &args.to {
            Some(path) => Some(File::create_new(path)?),
            None => None,
        };
        while let Some(text) = exporter.next().await? {
            match &mut file {
                Some(file) => file.write_all(text.as_bytes())?,
                None => io::stdout().lock().write_all(text.as_bytes())?,
            }
        }
        if let Some(file) = &file {
            file.sync_all()?;
        }
        say_progress(&format!("{} rows", exporter.lines()));
        Ok(Ended::Done)
    })
    .await
}

pub(super) async fn import(args: ImportArgs) -> Result<Ended, Failure> {
    let format = args.common.format();
    with_ledger(&args.common, async |ledger| {
        let progress = |rows: u64| {
            if rows.is_multiple_of(PROGRESS_ROWS) {
                say_progress(&format!("{rows} rows"));
            }
        };
        let rows = match &args.from {
            Some(path) => archive::import(ledger, BufReader::new(File::open(path)?), progress).await?,
            None => archive::import(ledger, BufReader::new(io::stdin()), progress).await?,
        };
        format.say(
            &format!("{rows} rows are in"),
            &json!({ "rows": rows.to_string() }),
        )?;
        Ok(Ended::Done)
    })
    .await
}

/// Rows between two lines of progress.
const PROGRESS_ROWS: u64 = 25_600;
