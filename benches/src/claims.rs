//! A ledger, and callers that claim one reward after another.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lease_core::{Fence, FenceToken};
use reward_ledger::{Claim, ClaimOutcome, Ledger, PostgresStore, RewardEventId, SledStore};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::Error;
use crate::embedded::Flavour;
use crate::population::name;
use crate::stopwatch::Stopwatch;

/// A ledger and the runtime that its callers run on.
#[derive(Debug)]
pub struct Claims {
    runtime: Runtime,
    ledger: Ledger,
    /// Numbers the rewards: each is granted once.
    next: Arc<AtomicU32>,
}

impl Claims {
    /// A ledger in a folder. Its writer is a thread of its own.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn on_sled(directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            runtime: Flavour::CurrentThread.runtime()?,
            ledger: Ledger::open(SledStore::open(directory)?),
            next: Arc::default(),
        })
    }

    /// A ledger in a database.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn on_postgres(url: &str) -> Result<Self, Error> {
        let runtime = Flavour::CurrentThread.runtime()?;
        let store = runtime.block_on(PostgresStore::open(url))?;
        Ok(Self {
            runtime,
            ledger: Ledger::open(store),
            next: Arc::default(),
        })
    }

    /// `callers` at once, each with a lease of its own, for about `time`; answers with claims per second, each durable
    /// before it was answered.
    ///
    /// # Errors
    /// The ledger refuses.
    pub fn rate(&self, callers: u32, time: Duration) -> Result<f64, Error> {
        let watch = Stopwatch::start();
        let callers = (0..callers).map(|caller| {
            let (ledger, next) = (self.ledger.clone(), Arc::clone(&self.next));
            async move {
                let mut claims = 0_u32;
                while watch.elapsed() < time {
                    apply(&ledger, claim(caller, next.fetch_add(1, Ordering::Relaxed))?).await?;
                    claims += 1;
                }
                Ok::<u32, Error>(claims)
            }
        });
        let callers: Vec<_> = callers.collect();
        self.runtime.block_on(async move {
            let mut running: JoinSet<Result<u32, Error>> = callers.into_iter().collect();
            let mut claims = 0.0;
            while let Some(ended) = running.join_next().await {
                claims += f64::from(ended??);
            }
            Ok(claims / watch.elapsed().as_secs_f64())
        })
    }

    /// Closes the ledger.
    ///
    /// # Errors
    /// The storage failed.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.runtime.block_on(self.ledger.close())?)
    }
}

async fn apply(ledger: &Ledger, claim: Claim) -> Result<(), Error> {
    let outcome = ledger.claim(claim).await?;
    if !matches!(outcome, ClaimOutcome::Applied(_)) {
        return Err(format!("not applied: {outcome:?}").into());
    }
    Ok(())
}

fn claim(caller: u32, n: u32) -> Result<Claim, Error> {
    let player = i64::from(caller);
    let fence = Fence::new(name(u64::from(caller))?, FenceToken::new(1)?);
    let event = RewardEventId::builder("season-2026-week-34", player, format!("rank-{n}")).build()?;
    let claim = Claim::builder(fence, player, event, 500_i64)
        .item("gold")
        .attempt(format!("message-{n}"));
    Ok(claim.build()?)
}
