//! A caller of a store in this process.

use std::path::Path;

use lease_core::wire::{AcquireCommand, AcquireReply, ReleaseReply, RenewCommand, RenewReply};
use lease_core::{Database, FenceToken, LeaseName, OwnerId, Ttl};
use lease_store::{LeaseStore, StoreConfig};

use super::work::{Caller, Held, TTL_MS};
use crate::Error;

/// How long a caller stands in a queue: longer than any turn.
const WAIT_MS: u64 = 600_000;

/// One caller.
#[derive(Debug)]
pub struct EmbeddedCaller {
    store: LeaseStore,
    owner: OwnerId,
    ttl: Ttl,
}

/// Starts a store: in a folder, or in memory without one.
///
/// # Errors
/// It does not start.
pub async fn start(directory: Option<&Path>) -> Result<LeaseStore, Error> {
    let config = directory.map_or_else(StoreConfig::in_memory, StoreConfig::in_directory);
    Ok(LeaseStore::start(config).await?)
}

impl EmbeddedCaller {
    /// A caller of this store.
    ///
    /// # Errors
    /// None that this program can meet: its names are valid.
    pub fn new(store: LeaseStore, number: usize) -> Result<Self, Error> {
        Ok(Self {
            store,
            owner: OwnerId::new(format!("owner:{number:08}"))?,
            ttl: Ttl::from_millis(TTL_MS)?,
        })
    }

    async fn ask(&self, name: String, wait_ms: u64) -> Result<Held, Error> {
        let command = AcquireCommand {
            name: LeaseName::new(&name)?,
            owner: self.owner.clone(),
            ttl: self.ttl,
            wait_ms,
            request: None,
            metadata: None,
        };
        match self.store.acquire(Database::ZERO, command).await? {
            AcquireReply::Granted { token, .. } => Ok(Held {
                name,
                number: token.get(),
            }),
            other => Err(format!("not granted: {other:?}").into()),
        }
    }
}

impl Caller for EmbeddedCaller {
    async fn set(&mut self, _: String) -> Result<(), Error> {
        Err("an embedded store has no SET".into())
    }

    async fn acquire(&mut self, name: String) -> Result<Held, Error> {
        self.ask(name, 0).await
    }

    async fn release(&mut self, held: Held) -> Result<(), Error> {
        let (name, token) = (LeaseName::new(&held.name)?, FenceToken::new(held.number)?);
        match self.store.release(Database::ZERO, name, token).await? {
            ReleaseReply::Released => Ok(()),
            lost @ ReleaseReply::Lost { .. } => Err(format!("not released: {lost:?}").into()),
        }
    }

    async fn renew(&mut self, held: &Held) -> Result<(), Error> {
        let command = RenewCommand {
            name: LeaseName::new(&held.name)?,
            token: FenceToken::new(held.number)?,
            ttl: Some(self.ttl),
        };
        match self.store.renew(Database::ZERO, command).await? {
            RenewReply::Renewed { .. } => Ok(()),
            lost @ RenewReply::Lost { .. } => Err(format!("not renewed: {lost:?}").into()),
        }
    }

    async fn look(&mut self, held: &Held) -> Result<(), Error> {
        let reply = self
            .store
            .get(Database::ZERO, LeaseName::new(&held.name)?)
            .await?;
        match reply.lease.map(|lease| lease.token.get()) {
            Some(token) if token == held.number => Ok(()),
            other => Err(format!("held by {other:?}").into()),
        }
    }

    async fn acquire_in_turn(&mut self, name: String) -> Result<Held, Error> {
        self.ask(name, WAIT_MS).await
    }

    async fn release_in_turn(&mut self, held: Held) -> Result<(), Error> {
        self.release(held).await
    }
}
