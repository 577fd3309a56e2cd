//! An embedded store, and callers that each ask again as soon as they are answered.

use std::io;
use std::path::Path;
use std::time::Duration;

use lease_core::wire::{AcquireCommand, AcquireReply, ReleaseReply};
use lease_core::{Database, FenceToken, LeaseName, Metadata, OwnerId, Ttl};
use lease_store::{LeaseStore, StoreConfig};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::Error;
use crate::population::{name, owner};
use crate::samples::Samples;
use crate::stopwatch::Stopwatch;

/// How long leases last that are released at once.
const TTL: Duration = Duration::from_secs(60);
/// Names of callers lie above those of leases that only live.
const CALLERS_FROM: u64 = 1 << 36;

/// On which runtime of tokio the store and its callers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Everything on one thread, beside the log's own: what the server does unless told otherwise.
    CurrentThread,
    /// Two worker threads.
    MultiThread,
}

impl Flavour {
    /// Both, the default first.
    pub const BOTH: [Self; 2] = [Self::CurrentThread, Self::MultiThread];

    /// As tokio calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CurrentThread => "current_thread",
            Self::MultiThread => "multi_thread, 2 workers",
        }
    }

    /// A runtime.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn runtime(self) -> io::Result<Runtime> {
        match self {
            Self::CurrentThread => Builder::new_current_thread().enable_all().build(),
            Self::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        }
    }
}

/// A store and the runtime that it lives on.
#[derive(Debug)]
pub struct Embedded {
    runtime: Runtime,
    store: LeaseStore,
}

/// What one caller saw who asked alone.
#[derive(Debug, Default)]
pub struct OneCaller {
    /// Times of its acquires.
    pub acquire: Samples,
    /// Times of its releases.
    pub release: Samples,
}

impl Embedded {
    /// A store that forgets everything.
    ///
    /// # Errors
    /// It does not start.
    pub fn in_memory(flavour: Flavour) -> Result<Self, Error> {
        Self::start(flavour, StoreConfig::in_memory())
    }

    /// A store in a folder.
    ///
    /// # Errors
    /// It does not start.
    pub fn in_directory(flavour: Flavour, directory: &Path) -> Result<Self, Error> {
        Self::start(flavour, StoreConfig::in_directory(directory))
    }

    fn start(flavour: Flavour, config: StoreConfig) -> Result<Self, Error> {
        let runtime = flavour.runtime()?;
        let store = runtime.block_on(async { runtime.spawn(LeaseStore::start(config)).await })??;
        Ok(Self { runtime, store })
    }

    /// One caller that acquires and releases, one after the other, for about `time`.
    ///
    /// # Errors
    /// The store refuses.
    pub fn one_caller(&self, time: Duration) -> Result<OneCaller, Error> {
        let mut caller = Caller::new(self.store.clone(), 0)?;
        self.run(async move {
            let mut seen = OneCaller::default();
            let watch = Stopwatch::start();
            while watch.elapsed() < time {
                let (acquire, release) = caller.round().await?;
                seen.acquire.push(acquire);
                seen.release.push(release);
            }
            Ok(seen)
        })
    }

    /// One caller that acquires and releases so many times; answers with the time of all its acquires, and of all its
    /// releases.
    ///
    /// # Errors
    /// The store refuses.
    pub fn rounds(&self, rounds: u64) -> Result<(Duration, Duration), Error> {
        let mut caller = Caller::new(self.store.clone(), 0)?;
        self.run(async move {
            let (mut acquires, mut releases) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..rounds {
                let (acquire, release) = caller.round().await?;
                acquires += acquire;
                releases += release;
            }
            Ok((acquires, releases))
        })
    }

    /// `callers` at once, for about `time`; answers with commands per second, each durable before it was answered.
    ///
    /// # Errors
    /// The store refuses.
    pub fn rate(&self, callers: u32, time: Duration) -> Result<f64, Error> {
        let mut started = Vec::new();
        for n in 0..callers {
            started.push(Caller::new(self.store.clone(), u64::from(n))?);
        }
        self.run(async move {
            let watch = Stopwatch::start();
            let mut running = JoinSet::new();
            for caller in started {
                running.spawn(caller.commands_within(watch, time));
            }
            let mut commands = 0.0;
            while let Some(ended) = running.join_next().await {
                commands += f64::from(ended??);
            }
            Ok(commands / watch.elapsed().as_secs_f64())
        })
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &LeaseStore {
        &self.store
    }

    /// Stops the store and its runtime.
    ///
    /// # Errors
    /// The storage failed.
    pub fn stop(self) -> Result<(), Error> {
        Ok(self.runtime.block_on(self.store.shutdown())?)
    }

    /// Runs a task on the runtime, where a caller's tasks run, to its end.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.runtime.block_on(async { self.runtime.spawn(task).await })?
    }
}

/// One caller with a name of its own.
#[derive(Debug)]
pub(crate) struct Caller {
    store: LeaseStore,
    name: LeaseName,
    owner: OwnerId,
    ttl: Ttl,
    metadata: Option<Metadata>,
}

impl Caller {
    pub(crate) fn new(store: LeaseStore, n: u64) -> Result<Self, Error> {
        Ok(Self {
            store,
            name: name(CALLERS_FROM + n)?,
            owner: owner(CALLERS_FROM + n)?,
            ttl: Ttl::from_duration(TTL)?,
            metadata: None,
        })
    }

    pub(crate) fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Acquires, then releases; answers with the time of each.
    pub(crate) async fn round(&mut self) -> Result<(Duration, Duration), Error> {
        let watch = Stopwatch::start();
        let token = acquire(&self.store, self.command()).await?;
        let acquire = watch.elapsed();
        let watch = Stopwatch::start();
        let reply = self
            .store
            .release(Database::ZERO, self.name.clone(), token)
            .await?;
        let release = watch.elapsed();
        match reply {
            ReleaseReply::Released => Ok((acquire, release)),
            ReleaseReply::Lost { reason } => Err(format!("a lease was lost: {reason:?}").into()),
        }
    }

    /// Rounds until `watch` shows `time`; answers with the number of commands.
    async fn commands_within(mut self, watch: Stopwatch, time: Duration) -> Result<u32, Error> {
        let mut commands = 0;
        while watch.elapsed() < time {
            self.round().await?;
            commands += 2;
        }
        Ok(commands)
    }

    fn command(&self) -> AcquireCommand {
        AcquireCommand {
            metadata: self.metadata.clone(),
            ..plain_acquire(self.name.clone(), self.owner.clone(), self.ttl)
        }
    }
}

pub(crate) const fn plain_acquire(name: LeaseName, owner: OwnerId, ttl: Ttl) -> AcquireCommand {
    AcquireCommand {
        name,
        owner,
        ttl,
        wait_ms: 0,
        request: None,
        metadata: None,
    }
}

pub(crate) async fn acquire(store: &LeaseStore, command: AcquireCommand) -> Result<FenceToken, Error> {
    let reply = store.acquire(Database::ZERO, command).await?;
    let AcquireReply::Granted { token, .. } = reply else {
        return Err(format!("not granted: {reply:?}").into());
    };
    Ok(token)
}
