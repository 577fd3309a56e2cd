//! An audit of a large ledger, in a process of its own, whose memory is then its own too.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use lease_core::{Fence, FenceToken};
use reward_ledger::{Claim, ClaimOutcome, Ledger, PostgresStore, RewardEventId, SledStore};
use tokio::task::JoinSet;

use crate::Error;
use crate::embedded::Flavour;
use crate::host::resident_bytes_at_most;
use crate::population::name;
use crate::stopwatch::Stopwatch;

/// Claims of one player, and of one batch.
const EVENTS_EACH: u32 = 200;
/// Batches at once while a ledger is filled.
const FILLERS: u32 = 4;
/// What tells a process that it is to audit, and what.
const CHILD: &str = "BENCH_AUDIT_OF";

/// Where a ledger is kept.
#[derive(Debug, Clone)]
pub enum Kept {
    /// In a folder.
    Sled(PathBuf),
    /// In a database.
    Postgres(String),
}

/// What an audit cost.
#[derive(Debug, Clone, Copy)]
pub struct Audit {
    /// How long it took, without opening the ledger.
    pub lasted: Duration,
    /// The most that its process held, opening included.
    pub bytes_at_most: u64,
}

impl Kept {
    fn to_text(&self) -> String {
        match self {
            Self::Sled(dir) => format!("sled:{}", dir.display()),
            Self::Postgres(url) => format!("postgres:{url}"),
        }
    }

    fn read(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            Some(("sled", dir)) => Ok(Self::Sled(dir.into())),
            Some(("postgres", url)) => Ok(Self::Postgres(url.to_owned())),
            _ => Err(format!("{CHILD}: no ledger is at {text}").into()),
        }
    }

    /// Opens it, on the current runtime.
    ///
    /// # Errors
    /// It does not open.
    pub async fn open(&self) -> Result<Ledger, Error> {
        Ok(match self {
            Self::Sled(dir) => Ledger::open(SledStore::open(dir)?),
            Self::Postgres(url) => Ledger::open(PostgresStore::open(url).await?),
        })
    }

    /// Grants `claims` rewards there.
    ///
    /// # Errors
    /// The ledger refuses.
    pub fn fill(&self, claims: u32) -> Result<(), Error> {
        Flavour::CurrentThread.runtime()?.block_on(async {
            let ledger = self.open().await?;
            fill(&ledger, claims, EVENTS_EACH).await?;
            Ok(ledger.close().await?)
        })
    }

    /// Audits it in a child of this process, which must call [`audit_if_asked`] first of all.
    ///
    /// # Errors
    /// The audit failed, or found anything but `claims` good claims.
    pub fn audit(&self, claims: u32) -> Result<Audit, Error> {
        let output = Command::new(std::env::current_exe()?)
            .env(CHILD, self.to_text())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let words: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
        match words.as_slice() {
            [found, lasted_us, bytes_at_most] if output.status.success() && *found == u64::from(claims) => {
                Ok(Audit {
                    lasted: Duration::from_micros(*lasted_us),
                    bytes_at_most: *bytes_at_most,
                })
            }
            _ => Err(format!("the audit of {claims} claims says {text:?}, {}", output.status).into()),
        }
    }
}

/// Audits, and says what that cost, if this process was started for it: then there is nothing else to do.
///
/// # Errors
/// The ledger does not open, or is not in order.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
pub fn audit_if_asked() -> Result<bool, Error> {
    let Ok(asked) = std::env::var(CHILD) else {
        return Ok(false);
    };
    let kept = Kept::read(&asked)?;
    Flavour::CurrentThread.runtime()?.block_on(async {
        let ledger = kept.open().await?;
        let watch = Stopwatch::start();
        let report = ledger.audit().await?;
        let lasted = watch.elapsed();
        if !report.is_clean() {
            return Err(format!("{:?}", report.violations).into());
        }
        ledger.close().await?;
        println!(
            "{} {} {}",
            report.claims,
            lasted.as_micros(),
            resident_bytes_at_most()
        );
        Ok(true)
    })
}

/// Grants `claims` rewards, `events_each` to a player under a lock of its own, in batches.
///
/// # Errors
/// The ledger refuses.
pub async fn fill(ledger: &Ledger, claims: u32, events_each: u32) -> Result<(), Error> {
    let mut fillers = JoinSet::new();
    for filler in 0..FILLERS {
        let ledger = ledger.clone();
        fillers.spawn(async move {
            for player in (0..claims.div_ceil(events_each)).filter(|player| player % FILLERS == filler) {
                let from = player * events_each;
                let events = from..claims.min(from + events_each);
                let batch = events
                    .map(|event| claim(player, event))
                    .collect::<Result<_, _>>()?;
                let told = ledger.claim_each(batch).await?;
                if !told.iter().all(|told| matches!(told, ClaimOutcome::Applied(_))) {
                    return Err(format!("not all were applied: {told:?}").into());
                }
            }
            Ok::<(), Error>(())
        });
    }
    while let Some(ended) = fillers.join_next().await {
        ended??;
    }
    Ok(())
}

fn claim(player: u32, number: u32) -> Result<Claim, Error> {
    let fence = Fence::new(name(u64::from(player))?, FenceToken::new(1)?);
    let player = i64::from(player);
    let event = RewardEventId::builder("season-2026-week-34", player, format!("rank-{number}")).build()?;
    let claim = Claim::builder(fence, player, event, 500_i64).item("gold");
    Ok(claim.attempt(format!("message-{number}")).build()?)
}
