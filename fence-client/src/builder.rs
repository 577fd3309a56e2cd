use std::sync::Arc;
use std::time::Duration;

use lease_core::{Database, OwnerId};

use crate::backoff::Backoff;
use crate::caller::Caller;
use crate::client::{Core, FenceClient};
use crate::clock::Clock;
use crate::config::Settings;
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::failover::Failover;
use crate::link::{Dialer, Pacing};
use crate::random::random_name;
use crate::tcp::Tcp;
#[cfg(any(test, feature = "test-util"))]
use crate::testing::TestKit;
use crate::transport::Transport;
use crate::unavailable::UnavailablePolicy;

/// Bytes of the host's name in the default owner at the most.
const HOST_BYTES_MAX: usize = 64;

/// The settings of a client. All have defaults; they are checked when the client is made.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    settings: Settings,
    #[cfg(any(test, feature = "test-util"))]
    kit: Option<TestKit>,
}

impl ClientBuilder {
    /// The password that the servers ask for. None by default.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.settings.greeting.password = Some(password.into());
        self
    }

    /// The user that the password is of. `default` by default.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.settings.greeting.user = Some(user.into());
        self
    }

    /// The database that all names of this client are in. 0 by default.
    pub const fn database(mut self, database: Database) -> Self {
        self.settings.greeting.database = Some(database);
        self
    }

    /// Who this client is in the store, unless a lease says otherwise. By default the host, the process and a random
    /// part: two clients must never share one.
    pub fn owner(mut self, owner: OwnerId) -> Self {
        self.settings.owner = Some(owner);
        self
    }

    /// Time to live of leases that name none. 10 s by default. Too small: a short outage loses the lease. Too large:
    /// others wait that long for a worker that died.
    pub const fn default_ttl(mut self, ttl: Duration) -> Self {
        self.settings.default_ttl = ttl;
        self
    }

    /// By how much the rates of two clocks may differ, in parts per million. 1,000 (0.1 %) by default. Too small: on
    /// worse clocks two may hold a lease at once. Too large: leases end earlier than need be.
    pub const fn clock_rate_error_ppm(mut self, ppm: u32) -> Self {
        self.settings.rate_error_ppm = ppm;
        self
    }

    /// How much earlier than need be a lease counts as lost, so that the work has stopped before another worker may
    /// begin. By default a 50th of the ttl, at least 10 ms and at most 500 ms. Too small: work overlaps. Too large:
    /// leases end earlier than need be; short ones are refused.
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.settings.margin = Some(margin);
        self
    }

    /// How long a server may take to accept a connection and answer its greeting. 1 s by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// How long one request waits for its answer before its connection is given up; for a renewal, a quarter of the
    /// ttl if that is less. 2 s by default. Too small: a busy server's answers are lost. Too large: a dead connection
    /// is noticed late.
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.settings.request_timeout = timeout;
        self
    }

    /// How long an operation with all its attempts takes at the most; an acquire may wait for its lease beside that.
    /// 5 s by default.
    pub const fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.settings.operation_timeout = timeout;
        self
    }

    /// Pauses between attempts: up to `base` after the first failure, doubled each time up to `cap`, each cut to a
    /// random part. 50 ms and 1 s by default.
    pub const fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.settings.backoff = Backoff { base, cap };
        self
    }

    /// Acquires that may wait at once, each over a connection of its own; more queue in the client. 64 by default.
    pub const fn waits_max(mut self, waits: usize) -> Self {
        self.settings.waits_max = waits;
        self
    }

    /// What [`crate::LeaseRequest::acquire_or_unfenced`] does while the store is unavailable. Closed by default.
    pub fn unavailable(mut self, policy: UnavailablePolicy) -> Self {
        self.settings.unavailable = policy;
        self
    }

    /// Puts a test kit between the client and the store.
    #[cfg(any(test, feature = "test-util"))]
    pub fn test_kit(mut self, kit: &TestKit) -> Self {
        self.kit = Some(kit.clone());
        self
    }

    /// A client of the servers at `endpoints` (`host:port`, several with commas between them), once one of them
    /// answers.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing was applied.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing remains.
    pub async fn connect(self, endpoints: &str) -> Result<FenceClient, ConnectError> {
        let client = self.connect_lazily(endpoints)?;
        client.reach().await?;
        Ok(client)
    }

    /// A client of the servers at `endpoints` that connects when it is first used, so that a service can start while
    /// the store is down.
    ///
    /// # Errors
    /// [`ConnectError`] if a setting is wrong, or outside of a tokio runtime.
    pub fn connect_lazily(self, endpoints: &str) -> Result<FenceClient, ConnectError> {
        within_a_runtime()?;
        let endpoints =
            Endpoint::parse_list(endpoints).map_err(|source| ConnectError::Endpoint { source })?;
        let clock = self.clock();
        let dialer = Dialer {
            failover: Failover::new(endpoints),
            greeting: self.settings.greeting.clone(),
            connect_timeout: self.settings.connect_timeout,
            clock: clock.clone(),
        };
        let pacing = Pacing::Backoff(self.settings.backoff);
        let tcp = Tcp::new(dialer, pacing, self.settings.waits_max.max(1));
        self.assemble(Arc::new(tcp), clock)
    }

    /// A client of a store in this process.
    ///
    /// # Errors
    /// [`ConnectError`] if a setting is wrong, or outside of a tokio runtime.
    #[cfg(any(test, feature = "embedded"))]
    pub fn embedded(self, store: lease_store::LeaseStore) -> Result<FenceClient, ConnectError> {
        let clock = self.clock();
        let embedded = crate::embedded::Embedded::new(store, self.settings.database(), clock.clone());
        self.assemble(Arc::new(embedded), clock)
    }

    /// The clock that the client asks.
    pub(crate) fn clock(&self) -> Clock {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(kit) = &self.kit {
            return kit.clock();
        }
        Clock::SYSTEM
    }

    pub(crate) fn assemble(
        self,
        transport: Arc<dyn Transport>,
        clock: Clock,
    ) -> Result<FenceClient, ConnectError> {
        let settings = self.settings;
        settings.check()?;
        within_a_runtime()?;
        #[cfg(any(test, feature = "test-util"))]
        let transport = match &self.kit {
            Some(kit) => kit.wrap(transport),
            None => transport,
        };
        let owner = match &settings.owner {
            Some(owner) => owner.clone(),
            None => default_owner()?,
        };
        let caller = Caller {
            transport,
            request_timeout: settings.request_timeout,
            operation_timeout: settings.operation_timeout,
            backoff: settings.backoff,
        };
        Ok(FenceClient::new(Core::start(settings, caller, clock, owner)))
    }
}

/// Tasks can be started.
fn within_a_runtime() -> Result<(), ConnectError> {
    tokio::runtime::Handle::try_current().map_or(Err(ConnectError::NoRuntime), |_| Ok(()))
}

/// `host:process:random`.
fn default_owner() -> Result<OwnerId, ConnectError> {
    let random = random_name().map_err(|_| ConnectError::NoRandomness)?;
    let mut host = host_name();
    host.truncate(host.floor_char_boundary(HOST_BYTES_MAX));
    let owner = format!("{host}:{}:{random}", std::process::id());
    OwnerId::new(owner).map_err(|invalid| ConnectError::Invalid { invalid })
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "host".to_owned())
}
