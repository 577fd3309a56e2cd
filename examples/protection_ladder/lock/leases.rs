//! The lease store, by its own client.

use std::net::SocketAddr;
use std::time::Duration;

use fence_client::{AcquireError, FenceClient, Lease, OwnerId, Released};
use lease_core::Fence;
use redis::aio::MultiplexedConnection;

use super::{Asker, connect};
use crate::Failure;

/// How long a worker stands in the queue: longer than any lease of the ladder lives.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Leases of one name, for one worker.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    client: FenceClient,
    server: SocketAddr,
    name: String,
}

impl Leases {
    /// Connects; the client lives on the runtime that this runs on, and stops with it.
    pub(crate) async fn connect(server: SocketAddr, name: &str, asker: &Asker) -> Result<Self, Failure> {
        let client = FenceClient::builder()
            .owner(OwnerId::new(&asker.owner)?)
            .connect(&server.to_string())
            .await?;
        Ok(Self {
            client,
            server,
            name: name.to_owned(),
        })
    }

    pub(super) async fn take(&self, ttl: Duration) -> Result<Held, Failure> {
        loop {
            let request = self.client.lease(&self.name).ttl(ttl).wait(WAIT_MAX);
            if let Some(held) = self.granted(request.acquire().await)? {
                return Ok(held);
            }
        }
    }

    pub(super) async fn try_take(&self, ttl: Duration) -> Result<Option<Held>, Failure> {
        let request = self.client.lease(&self.name).ttl(ttl);
        self.granted(request.try_acquire().await)
    }

    fn granted(&self, answer: Result<Lease, AcquireError>) -> Result<Option<Held>, Failure> {
        match answer {
            Ok(lease) => Ok(Some(Held {
                lease,
                server: self.server,
            })),
            // On a busy machine a grant can come too late to be of use; the client has given it back.
            Err(AcquireError::Held { .. } | AcquireError::AnsweredTooLate { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A lease.
#[derive(Debug)]
pub(crate) struct Held {
    lease: Lease,
    server: SocketAddr,
}

impl Held {
    pub(super) fn fence(&self) -> Fence {
        self.lease.fence()
    }

    pub(super) async fn renewal(&self) -> Result<Renewal, Failure> {
        Ok(Renewal {
            connection: connect(self.server).await?,
            fence: self.fence(),
        })
    }

    pub(super) async fn give_back(self) -> String {
        match self.lease.release().await {
            Ok(Released::Now) => "the lease is released".to_owned(),
            Ok(_) => "the lease was released before".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

/// A renewal that is ready to be sent, beside those of the client's watchdog.
#[derive(Debug)]
pub(crate) struct Renewal {
    connection: MultiplexedConnection,
    fence: Fence,
}

impl Renewal {
    pub(super) async fn send(mut self) -> Result<String, Failure> {
        let answer: Vec<redis::Value> = redis::cmd("LEASE.RENEW")
            .arg(self.fence.resource.as_bytes())
            .arg(self.fence.token.get())
            .query_async(&mut self.connection)
            .await?;
        let words: Vec<String> = answer
            .into_iter()
            .map(|value| redis::from_redis_value(value).unwrap_or_else(|_| "?".to_owned()))
            .collect();
        Ok(words.join(", "))
    }
}
