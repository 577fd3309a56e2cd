//! The locks of the ladder, as one worker uses them.

mod leases;
mod one_redis;
mod redlock;

use std::net::SocketAddr;
use std::time::Duration;

use lease_core::Fence;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

pub(crate) use self::leases::Leases;
pub(crate) use self::one_redis::{OneRedis, Scripts};
pub(crate) use self::redlock::Redlock;
use crate::Failure;
use crate::timeline::{Lane, Timeline};

/// How long an answer is waited for, also one whose request is held on its way for a while.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A lock service, as one worker reaches it.
#[derive(Debug, Clone)]
pub(crate) enum LockService {
    OneRedis(OneRedis),
    Redlock(Redlock),
    Leases(Leases),
}

/// A lock that this worker was granted.
#[derive(Debug)]
pub(crate) enum Held {
    OneRedis(one_redis::Held),
    Redlock(redlock::Held),
    Leases(leases::Held),
}

/// Who asks, and where it is noted what a watchdog does meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) owner: String,
    pub(crate) lane: Lane,
    pub(crate) timeline: Timeline,
}

impl LockService {
    /// The lock, if it is free.
    pub(crate) async fn try_take(&self, ttl: Duration) -> Result<Option<Held>, Failure> {
        Ok(match self {
            Self::OneRedis(lock) => lock.try_take(ttl).await?.map(Held::OneRedis),
            Self::Redlock(lock) => lock.try_take(ttl).await?.map(Held::Redlock),
            Self::Leases(lock) => lock.try_take(ttl).await?.map(Held::Leases),
        })
    }

    /// The lock, waited for: in the store's queue, or by asking Redis again and again.
    pub(crate) async fn take(&self, ttl: Duration, ask_every: Duration) -> Result<Held, Failure> {
        if let Self::Leases(lock) = self {
            return Ok(Held::Leases(lock.take(ttl).await?));
        }
        loop {
            if let Some(held) = self.try_take(ttl).await? {
                return Ok(held);
            }
            tokio::time::sleep(ask_every).await;
        }
    }
}

impl Held {
    /// What the ledger is shown; nothing where a lock has no token.
    pub(crate) fn fence(&self) -> Option<Fence> {
        match self {
            Self::OneRedis(_) | Self::Redlock(_) => None,
            Self::Leases(held) => Some(held.fence()),
        }
    }

    /// How it is known.
    pub(crate) fn label(&self) -> String {
        self.fence()
            .map_or_else(|| "no token".to_owned(), |fence| format!("token {}", fence.token))
    }

    /// Makes a renewal ready to be sent.
    pub(crate) async fn renewal(&self) -> Result<Renewal, Failure> {
        Ok(match self {
            Self::OneRedis(held) => Renewal::OneRedis(held.renewal().await?),
            Self::Redlock(held) => Renewal::Redlock(held.renewal()),
            Self::Leases(held) => Renewal::Leases(held.renewal().await?),
        })
    }

    /// Gives it back, as the rung does it; what the service said to that.
    pub(crate) async fn give_back(self) -> Result<String, Failure> {
        match self {
            Self::OneRedis(held) => held.give_back().await,
            Self::Redlock(held) => Ok(held.give_back().await),
            Self::Leases(held) => Ok(held.give_back().await),
        }
    }
}

/// A renewal that is ready to be sent.
#[derive(Debug)]
pub(crate) enum Renewal {
    OneRedis(one_redis::Renewal),
    Redlock(redlock::Renewal),
    Leases(leases::Renewal),
}

impl Renewal {
    /// Sends it; what the service said to it.
    pub(crate) async fn send(self) -> Result<String, Failure> {
        match self {
            Self::OneRedis(renewal) => renewal.send().await,
            Self::Redlock(renewal) => Ok(renewal.send().await),
            Self::Leases(renewal) => renewal.send().await,
        }
    }
}

/// A connection of its own to a server that speaks Redis's protocol.
async fn connect(address: SocketAddr) -> Result<MultiplexedConnection, Failure> {
    let client = redis::Client::open(format!("redis://{address}/"))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWER_TIME_MAX))
        .set_response_timeout(Some(ANSWER_TIME_MAX));
    Ok(client
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}
