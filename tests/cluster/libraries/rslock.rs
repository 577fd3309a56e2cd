//! rslock: the Redlock of redis-rs, with one endpoint in place of several masters.
//!
//! It waits half a second for an answer and then gives the lock up, so on a busy machine a round is begun anew.

use std::net::SocketAddr;
use std::time::Duration;

use rslock::{Lock, LockError, LockManager};

use super::{LONG, SHORT, key};

/// Rounds in which an answer may come too late, before that is a failure.
const ROUNDS: usize = 5;
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// One that asks so often before it gives up.
fn manager(address: SocketAddr, tries: u32) -> LockManager {
    let mut manager = LockManager::new(vec![format!("redis://{address}/")]);
    manager.set_retry(tries, RETRY_AFTER);
    manager
}

pub(super) async fn use_locks(address: SocketAddr) {
    for _ in 1..ROUNDS {
        if one_round(address).await.is_ok() {
            return;
        }
    }
    one_round(address).await.unwrap();
}

async fn one_round(address: SocketAddr) -> Result<(), LockError> {
    let (once, patient) = (manager(address, 1), manager(address, 500));
    let key = key();
    let held = once.lock(key.as_bytes(), LONG).await?;
    assert!(matches!(
        once.lock(key.as_bytes(), LONG).await,
        Err(LockError::Unavailable)
    ));
    let extended = once.extend(&held, 2 * LONG).await?;
    assert!(extended.validity_time > held.validity_time);
    assert_eq!(extended.val, held.val);
    once.unlock(&extended).await;

    // Taken for a moment, and lost.
    let short = once.lock(key.as_bytes(), SHORT).await?;
    let next = patient.lock(key.as_bytes(), LONG).await?;
    assert!(once.extend(&short, LONG).await.is_err(), "it was lost");
    once.unlock(&short).await;
    assert!(
        once.lock(key.as_bytes(), LONG).await.is_err(),
        "a late release takes nothing away"
    );
    once.unlock(&next).await;
    let last = once.lock(key.as_bytes(), LONG).await?;
    once.unlock(&last).await;
    Ok(())
}

/// Locks that are held while the leader dies: of one alone the answer might come too late.
pub(super) struct Held {
    manager: LockManager,
    locks: Vec<Lock>,
}

impl Held {
    pub(super) async fn take(address: SocketAddr) -> Self {
        let manager = manager(address, 500);
        let mut locks = Vec::new();
        for _ in 0..ROUNDS {
            locks.push(manager.lock(key().as_bytes(), LONG).await.unwrap());
        }
        Self { manager, locks }
    }

    /// They are held still, and can be extended and given back.
    pub(super) async fn goes_on(self) {
        let Self { manager, locks } = self;
        let mut once = manager.clone();
        once.set_retry(1, RETRY_AFTER);
        let mut extended = 0;
        for lock in locks {
            assert!(once.lock(&lock.resource, LONG).await.is_err(), "somebody has it");
            extended += usize::from(once.extend(&lock, 2 * LONG).await.is_ok());
            once.unlock(&lock).await;
            let next = manager.lock(&lock.resource, LONG).await.unwrap();
            manager.unlock(&next).await;
        }
        assert!(extended > 0, "none could be extended");
    }
}
