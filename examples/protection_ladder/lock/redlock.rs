//! Redlock over several masters, by rslock.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use rslock::{Lock, LockError, LockManager};

use crate::Failure;

/// One try: who wants the lock asks again by itself.
const TRIES: u32 = 1;

/// A lock on a majority of masters.
#[derive(Clone)]
pub(crate) struct Redlock {
    manager: LockManager,
    key: String,
}

/// Without the connections.
impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Redlock {
    pub(crate) fn new(masters: &[SocketAddr], key: &str) -> Self {
        let urls = masters
            .iter()
            .map(|master| format!("redis://{master}/"))
            .collect();
        let mut manager = LockManager::new(urls);
        manager.set_retry(TRIES, Duration::ZERO);
        Self {
            manager,
            key: key.to_owned(),
        }
    }

    pub(super) async fn try_take(&self, ttl: Duration) -> Result<Option<Held>, Failure> {
        match self.manager.lock(self.key.as_bytes(), ttl).await {
            Ok(lock) => Ok(Some(Held {
                manager: self.manager.clone(),
                lock,
                ttl,
            })),
            Err(LockError::Unavailable | LockError::TtlExceeded) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The lock, held on a majority.
#[derive(Debug)]
pub(crate) struct Held {
    manager: LockManager,
    lock: Lock,
    ttl: Duration,
}

impl Held {
    pub(super) fn renewal(&self) -> Renewal {
        Renewal(Self {
            manager: self.manager.clone(),
            lock: Lock {
                resource: self.lock.resource.clone(),
                val: self.lock.val.clone(),
                validity_time: self.lock.validity_time,
                lock_manager: self.manager.clone(),
            },
            ttl: self.ttl,
        })
    }

    pub(super) async fn give_back(self) -> String {
        self.manager.unlock(&self.lock).await;
        "each master deletes the lock if it is still its own".to_owned()
    }
}

/// A renewal that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Renewal(Held);

impl Renewal {
    pub(super) async fn send(self) -> String {
        match self.0.manager.extend(&self.0.lock, self.0.ttl).await {
            Ok(_) => "extended on a majority".to_owned(),
            Err(error) => format!("not extended ({error})"),
        }
    }
}
