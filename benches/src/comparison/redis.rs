//! A caller of Redis, as the lock libraries do it: `SET NX PX`, and scripts that compare the value first.

use std::net::SocketAddr;
use std::time::Duration;

use lease_core::wire::Reply;

use super::resp::{Connection, unexpected};
use super::work::{Caller, Held, TTL_MS};
use crate::Error;

/// Redis wakes nobody who wants a lock, so whoever wants one asks again: the lock libraries after 50 to 200 ms.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long `WAIT` waits for a replica.
const WAIT_MS: &str = "5000";

const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) \
                     else return 0 end";

/// How many replicas must have a change before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// None is asked.
    None,
    /// One, by `WAIT 1` in the same write as the change.
    One,
}

/// One caller.
#[derive(Debug)]
pub struct RedisCaller {
    connection: Connection,
    replicas: Replicas,
    owner: String,
    ttl_ms: String,
    release: String,
    renew: String,
}

impl RedisCaller {
    /// Connects, and loads the scripts.
    ///
    /// # Errors
    /// Nobody is there, or it refuses.
    pub async fn open(address: SocketAddr, replicas: Replicas, number: usize) -> Result<Self, Error> {
        let mut connection = Connection::open(address).await?;
        let (release, renew) = (
            load(&mut connection, RELEASE).await?,
            load(&mut connection, RENEW).await?,
        );
        Ok(Self {
            connection,
            replicas,
            owner: format!("owner:{number:08}"),
            ttl_ms: TTL_MS.to_string(),
            release,
            renew,
        })
    }

    /// Sends one change, and waits for as many replicas as are asked for if it changed something.
    async fn change(&mut self, command: &[&str]) -> Result<Reply, Error> {
        self.connection.add(command);
        if self.replicas == Replicas::One {
            self.connection.add(&["WAIT", "1", WAIT_MS]);
        }
        self.connection.send().await?;
        let reply = self.connection.receive().await?;
        if self.replicas == Replicas::One {
            match self.connection.receive().await? {
                Reply::Integer(1 | 2) => {}
                other => return Err(unexpected("WAIT", &other)),
            }
        }
        Ok(reply)
    }

    async fn try_set(&mut self, name: &str) -> Result<Reply, Error> {
        let (owner, ttl_ms) = (self.owner.clone(), self.ttl_ms.clone());
        self.change(&["SET", name, &owner, "NX", "PX", &ttl_ms]).await
    }

    async fn script(&mut self, arguments: &[&str]) -> Result<(), Error> {
        match self.change(arguments).await? {
            Reply::Integer(1) => Ok(()),
            other => Err(unexpected("a script", &other)),
        }
    }
}

async fn load(connection: &mut Connection, script: &str) -> Result<String, Error> {
    match connection.call(&["SCRIPT", "LOAD", script]).await? {
        Reply::Bulk(sha) => Ok(String::from_utf8_lossy(&sha).into_owned()),
        other => Err(unexpected("SCRIPT LOAD", &other)),
    }
}

impl Caller for RedisCaller {
    async fn set(&mut self, name: String) -> Result<(), Error> {
        match self.try_set(&name).await? {
            reply if reply == Reply::OK => Ok(()),
            other => Err(unexpected("SET", &other)),
        }
    }

    async fn acquire(&mut self, name: String) -> Result<Held, Error> {
        self.set(name.clone()).await?;
        Ok(Held { name, number: 0 })
    }

    async fn release(&mut self, held: Held) -> Result<(), Error> {
        let (sha, owner) = (self.release.clone(), self.owner.clone());
        self.script(&["EVALSHA", &sha, "1", &held.name, &owner]).await
    }

    async fn renew(&mut self, held: &Held) -> Result<(), Error> {
        let (sha, owner, ttl_ms) = (self.renew.clone(), self.owner.clone(), self.ttl_ms.clone());
        self.script(&["EVALSHA", &sha, "1", &held.name, &owner, &ttl_ms])
            .await
    }

    async fn look(&mut self, held: &Held) -> Result<(), Error> {
        match self.connection.call(&["GET", &held.name]).await? {
            Reply::Bulk(owner) if owner == self.owner.as_bytes() => Ok(()),
            other => Err(unexpected("GET", &other)),
        }
    }

    async fn acquire_in_turn(&mut self, name: String) -> Result<Held, Error> {
        loop {
            match self.try_set(&name).await? {
                Reply::Nil => tokio::time::sleep(ASK_AGAIN_AFTER).await,
                reply if reply == Reply::OK => return Ok(Held { name, number: 0 }),
                other => return Err(unexpected("SET", &other)),
            }
        }
    }

    async fn release_in_turn(&mut self, held: Held) -> Result<(), Error> {
        self.release(held).await
    }
}
