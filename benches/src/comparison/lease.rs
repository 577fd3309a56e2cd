//! A caller of a lease-store server over RESP.

use std::net::SocketAddr;

use lease_core::FenceToken;
use lease_core::wire::{AcquireReply, GetReply, LeaderReply, ReleaseReply, RenewReply, Reply};

use super::resp::{Connection, unexpected};
use super::work::{Caller, Held, TTL_MS};
use crate::Error;

/// How long a caller stands in a queue: longer than any turn.
const WAIT_MS: &str = "600000";

/// One caller.
#[derive(Debug)]
pub struct LeaseCaller {
    connection: Connection,
    owner: String,
    ttl_ms: String,
}

impl LeaseCaller {
    /// Connects.
    ///
    /// # Errors
    /// Nobody is there.
    pub async fn open(address: SocketAddr, number: usize) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::open(address).await?,
            owner: format!("owner:{number:08}"),
            ttl_ms: TTL_MS.to_string(),
        })
    }

    fn granted(name: String, reply: Reply) -> Result<Held, Error> {
        match AcquireReply::from_reply(reply)? {
            AcquireReply::Granted { token, .. } => Ok(Held {
                name,
                number: token.get(),
            }),
            other => Err(format!("not granted: {other:?}").into()),
        }
    }
}

/// The node at this address leads.
///
/// # Errors
/// Nobody is there, or it refuses.
pub async fn leads(address: SocketAddr) -> Result<bool, Error> {
    let mut connection = Connection::open(address).await?;
    let reply = LeaderReply::from_reply(connection.call(&["LEASE.LEADER"]).await?)?;
    Ok(reply.leader == Some(reply.node))
}

impl Caller for LeaseCaller {
    async fn set(&mut self, name: String) -> Result<(), Error> {
        let command = ["SET", &name, &self.owner, "NX", "PX", &self.ttl_ms];
        match self.connection.call(&command).await? {
            reply if reply == Reply::OK => Ok(()),
            other => Err(unexpected("SET", &other)),
        }
    }

    async fn acquire(&mut self, name: String) -> Result<Held, Error> {
        let command = ["LEASE.ACQUIRE", &name, &self.owner, &self.ttl_ms];
        let reply = self.connection.call(&command).await?;
        Self::granted(name, reply)
    }

    async fn release(&mut self, held: Held) -> Result<(), Error> {
        let command = ["LEASE.RELEASE", &held.name, &held.number.to_string()];
        match ReleaseReply::from_reply(self.connection.call(&command).await?)? {
            ReleaseReply::Released => Ok(()),
            lost @ ReleaseReply::Lost { .. } => Err(format!("not released: {lost:?}").into()),
        }
    }

    async fn renew(&mut self, held: &Held) -> Result<(), Error> {
        let token = held.number.to_string();
        let command = ["LEASE.RENEW", &held.name, &token, &self.ttl_ms];
        match RenewReply::from_reply(self.connection.call(&command).await?)? {
            RenewReply::Renewed { .. } => Ok(()),
            lost @ RenewReply::Lost { .. } => Err(format!("not renewed: {lost:?}").into()),
        }
    }

    async fn look(&mut self, held: &Held) -> Result<(), Error> {
        let reply = GetReply::from_reply(self.connection.call(&["LEASE.GET", &held.name]).await?)?;
        let token = reply.lease.map(|lease| lease.token);
        match token.map(FenceToken::get) {
            Some(token) if token == held.number => Ok(()),
            other => Err(format!("held by {other:?}").into()),
        }
    }

    async fn acquire_in_turn(&mut self, name: String) -> Result<Held, Error> {
        let command = ["LEASE.ACQUIRE", &name, &self.owner, &self.ttl_ms, "WAIT", WAIT_MS];
        let reply = self.connection.call(&command).await?;
        // One answer for each wait, and it is the grant: nobody is woken in vain.
        Self::granted(name, reply)
    }

    async fn release_in_turn(&mut self, held: Held) -> Result<(), Error> {
        self.release(held).await
    }
}
