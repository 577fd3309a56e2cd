//! A lock in one Redis, in the ways that services use it.

use std::net::SocketAddr;
use std::time::Duration;

use redis::Script;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use super::{Asker, connect};
use crate::Failure;

/// Deletes the lock if it is still the asker's.
const DELETE_OWN: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
/// Extends the lock if it is still the asker's.
const EXTEND_OWN: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
/// A watchdog extends after each part of the time to live.
const WATCHDOG_PART: u32 = 3;

/// Whether the lock is looked at before it is deleted or extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scripts {
    /// `DEL`, and a bare `SET` to extend.
    Blind,
    /// By scripts that compare the owner first.
    Compare,
    /// The same, and a task that extends.
    CompareAndWatch,
}

/// A lock in one Redis.
#[derive(Debug, Clone)]
pub(crate) struct OneRedis {
    pub(crate) server: SocketAddr,
    pub(crate) key: String,
    pub(crate) scripts: Scripts,
    pub(crate) asker: Asker,
}

impl OneRedis {
    /// `SET key owner NX PX ttl`
    pub(super) async fn try_take(&self, ttl: Duration) -> Result<Option<Held>, Failure> {
        let mut connection = connect(self.server).await?;
        let taken: Option<String> = redis::cmd("SET")
            .arg(&self.key)
            .arg(&self.asker.owner)
            .arg("NX")
            .arg("PX")
            .arg(millis(ttl))
            .query_async(&mut connection)
            .await?;
        if taken.is_none() {
            return Ok(None);
        }
        let mut watchdog = JoinSet::new();
        if self.scripts == Scripts::CompareAndWatch {
            watchdog.spawn(watch(self.clone(), ttl));
        }
        Ok(Some(Held {
            lock: self.clone(),
            ttl,
            _watchdog: watchdog,
        }))
    }
}

/// Extends the lock until it is told that it is not its own any more. As most of them, it tells nobody.
async fn watch(lock: OneRedis, ttl: Duration) {
    let mut reached = true;
    loop {
        tokio::time::sleep(ttl / WATCHDOG_PART).await;
        let extended = async {
            let mut connection = connect(lock.server).await?;
            extend_own(&lock, &mut connection, ttl).await
        };
        match extended.await {
            Ok(true) => reached = true,
            Ok(false) => {
                lock.asker.timeline.note(
                    lock.asker.lane,
                    "its watchdog hears that the lock is gone, and ends",
                );
                return;
            }
            Err(_) if reached => {
                reached = false;
                lock.asker.timeline.note(
                    lock.asker.lane,
                    "its watchdog cannot extend the lock, and logs that",
                );
            }
            Err(_) => {}
        }
    }
}

async fn extend_own(
    lock: &OneRedis,
    connection: &mut MultiplexedConnection,
    ttl: Duration,
) -> Result<bool, Failure> {
    let script = Script::new(EXTEND_OWN);
    let mut call = script.key(&lock.key);
    call.arg(&lock.asker.owner).arg(millis(ttl));
    let extended: i64 = call.invoke_async(connection).await?;
    Ok(extended == 1)
}

/// The lock, held.
#[derive(Debug)]
pub(crate) struct Held {
    lock: OneRedis,
    ttl: Duration,
    /// Ends with the hold.
    _watchdog: JoinSet<()>,
}

impl Held {
    pub(super) async fn renewal(&self) -> Result<Renewal, Failure> {
        Ok(Renewal {
            lock: self.lock.clone(),
            ttl: self.ttl,
            connection: connect(self.lock.server).await?,
        })
    }

    pub(super) async fn give_back(self) -> Result<String, Failure> {
        let mut connection = connect(self.lock.server).await?;
        let deleted: i64 = if self.lock.scripts == Scripts::Blind {
            redis::cmd("DEL")
                .arg(&self.lock.key)
                .query_async(&mut connection)
                .await?
        } else {
            let script = Script::new(DELETE_OWN);
            let mut call = script.key(&self.lock.key);
            call.arg(&self.lock.asker.owner);
            call.invoke_async(&mut connection).await?
        };
        Ok(match (deleted, self.lock.scripts) {
            (1, _) => "the lock is deleted",
            (_, Scripts::Blind) => "there is no lock",
            (_, Scripts::Compare | Scripts::CompareAndWatch) => "not its own, left as it is",
        }
        .to_owned())
    }
}

/// A renewal that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Renewal {
    lock: OneRedis,
    ttl: Duration,
    connection: MultiplexedConnection,
}

impl Renewal {
    pub(super) async fn send(mut self) -> Result<String, Failure> {
        if self.lock.scripts == Scripts::Blind {
            let answer: String = redis::cmd("SET")
                .arg(&self.lock.key)
                .arg(&self.lock.asker.owner)
                .arg("PX")
                .arg(millis(self.ttl))
                .query_async(&mut self.connection)
                .await?;
            return Ok(format!("{answer}, a bare SET takes the lock from whoever has it"));
        }
        let extended = extend_own(&self.lock, &mut self.connection, self.ttl).await?;
        Ok(if extended {
            "extended"
        } else {
            "0, the lock is not its own"
        }
        .to_owned())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
