//! One reward to grant, and how it is granted under a lease.

use std::time::Duration;

use fence_client::{AcquireError, FenceClient, Lease, Lost, ShortDurations as _};
use reward_ledger::{Claim, ClaimError, ClaimOutcome, InvalidClaim, Ledger, RewardEventId};
use thiserror::Error;

/// How long the lease lasts after its last renewal. A worker that dies is replaced after this.
const TTL: Duration = Duration::from_secs(3);
/// How long a worker stands in the queue for a player's lease.
const WAIT: Duration = Duration::from_secs(20);
/// How often one claim is sent at the most while its answer is unknown.
const CLAIM_ATTEMPTS_MAX: u32 = 5;

/// A message: grant this.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The message's id. It names the attempt, so that a second delivery is the same attempt.
    pub(crate) message: String,
    pub(crate) player: i64,
    pub(crate) event: RewardEventId,
    pub(crate) gold: i64,
}

/// A job was not finished. Its message goes back to the queue.
#[derive(Debug, Error)]
pub(crate) enum JobError {
    #[error("no lease")]
    Acquire(#[from] AcquireError),
    #[error("stopped in the middle of the work")]
    Lost(#[from] Lost),
    #[error("not a valid claim")]
    Invalid(#[from] InvalidClaim),
    #[error("the ledger gave no answer")]
    Claim(#[from] ClaimError),
}

impl JobError {
    /// Whether the same message can succeed later.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Acquire(error) => error.is_retryable(),
            // Somebody else holds the lease now, or nobody: another delivery finds out.
            Self::Lost(_) => true,
            Self::Invalid(_) => false,
            Self::Claim(error) => error.is_retryable(),
        }
    }
}

impl Job {
    /// Holds the player's lease, does the work, and grants the reward with the lease's token.
    pub(crate) async fn run(&self, client: &FenceClient, ledger: &Ledger) -> Result<ClaimOutcome, JobError> {
        let lock = format!("lock:reward:player-{}", self.player);
        let lease = client.lease(lock).ttl(TTL).wait(WAIT).acquire().await?;
        // Checked before each step, and dropped at the loss: nothing is computed for nothing.
        let gold = lease.run(self.work()).await?;
        // The write itself is not checked by the client: between its check and the write anything may pass. The ledger
        // compares the token.
        let outcome = self.claim(&lease, gold, ledger).await?;
        if let Err(error) = lease.release().await {
            // The reward is granted all the same, and the lease ends with its ttl.
            println!("    {}: not released: {error}", lease.name());
        }
        Ok(outcome)
    }

    /// What takes time in a real service: rankings are read, rewards are computed.
    async fn work(&self) -> i64 {
        tokio::time::sleep(20.millis()).await;
        self.gold
    }

    /// Claims the reward. As long as the answer is unknown the same claim is sent again, under the same attempt id.
    async fn claim(&self, lease: &Lease, gold: i64, ledger: &Ledger) -> Result<ClaimOutcome, JobError> {
        let claim = Claim::builder(lease.fence(), self.player, self.event.clone(), gold)
            .item("gold")
            .attempt(&self.message)
            .build()?;
        let mut attempt = 1;
        loop {
            match ledger.claim(claim.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) if attempt == CLAIM_ATTEMPTS_MAX || !error.is_retryable() => {
                    return Err(error.into());
                }
                Err(error) => println!("    {}: claimed again after: {error}", self.message),
            }
            attempt += 1;
            tokio::time::sleep(50.millis()).await;
        }
    }
}
