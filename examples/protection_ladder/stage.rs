//! What one rung has to meet one scenario with: a lock service, books, ways to be cut, an outside.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lease_store::{Server, ServerConfig, StoreConfig, TokenFloor};
use reward_ledger::{HttpTarget, PublishPolicy, Publisher, RewardEventId, Territory};

use crate::Failure;
use crate::books::{Books, Checked, PLAYER, Published, Table};
use crate::link::Link;
use crate::lock::{Asker, Leases, LockService, OneRedis, Redlock, Scripts};
use crate::outside::OutsideServer;
use crate::rung::Rung;
use crate::scenario::Scenario;
use crate::servers::Servers;
use crate::timeline::{Lane, Timeline};
use crate::times::Times;

/// Tokens start above this, so that they are short to read. By default they start at the milliseconds since 2026.
const TOKEN_FLOOR: TokenFloor = TokenFloor::At(100);
/// How long the outside servers remember a key, as far as the publisher goes: longer than any run.
const DEDUP_WINDOW: Duration = Duration::from_secs(3_600);
/// The publisher's patience with one request. A lost answer never comes, so this only says how long the ladder takes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// One stage.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) rung: Rung,
    pub(crate) times: Times,
    pub(crate) timeline: Timeline,
    pub(crate) books: Books,
    pub(crate) outside: OutsideServer,
    lock: String,
    /// The lock servers: three masters or one Redis, or the lease store.
    servers: Vec<SocketAddr>,
    /// Worker A's ways to them.
    links: Vec<Link>,
    lease_server: Option<Server>,
    /// What was done at least once, for the drawing: counts are taken from the books.
    done: Mutex<BTreeSet<String>>,
}

impl Stage {
    pub(crate) async fn set(
        rung: Rung,
        scenario: Scenario,
        times: Times,
        servers: &Servers,
    ) -> Result<Self, Failure> {
        static STAGES: AtomicU64 = AtomicU64::new(0);
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let lease_server = if rung < Rung::PublishedSql {
            None
        } else {
            Some(start_lease_server().await?)
        };
        let at = match &lease_server {
            Some(server) => vec![server.ready().resp],
            None if rung == Rung::Redlock => servers.masters()?,
            None => servers.masters()?.into_iter().take(1).collect(),
        };
        let mut links = Vec::new();
        for server in &at {
            links.push(Link::to(*server).await?);
        }
        let books = match rung {
            Rung::PlainLock | Rung::OwnDelete | Rung::LongerTtl | Rung::Watchdog | Rung::Redlock => {
                Books::Table(Table::default())
            }
            Rung::PublishedSql => {
                Books::Published(Published::create(&servers.database()?, &format!("stage_{number}")).await?)
            }
            Rung::CheckedToken | Rung::UniqueKey | Rung::Receipts | Rung::Outbox => {
                Books::Checked(Checked::open(rung)?)
            }
        };
        let what = if scenario == Scenario::S14 {
            "charge"
        } else {
            "item"
        };
        let lost = u64::from(scenario == Scenario::S8);
        Ok(Self {
            rung,
            times,
            timeline: Timeline::start(),
            books,
            outside: OutsideServer::start(what, lost).await?,
            lock: format!("lock:reward:player-{PLAYER}:{number}"),
            servers: at,
            links,
            lease_server,
            done: Mutex::default(),
        })
    }

    /// How long this rung's locks live.
    pub(crate) fn ttl(&self) -> Duration {
        if self.rung == Rung::LongerTtl {
            self.times.long_ttl()
        } else {
            self.times.ttl()
        }
    }

    /// The lock service, as a worker reaches it: A over its links, everybody else directly. To be called on the worker's
    /// own runtime.
    pub(crate) async fn lock_service(&self, lane: Lane) -> Result<LockService, Failure> {
        let asker = Asker {
            owner: format!("worker-{}", lane.name().to_lowercase()),
            lane,
            timeline: self.timeline.clone(),
        };
        let at: Vec<SocketAddr> = match lane {
            Lane::A => self.links.iter().map(Link::address).collect(),
            Lane::B | Lane::C | Lane::Books | Lane::Outside => self.servers.clone(),
        };
        let first = *at.first().ok_or("a stage has a lock server")?;
        let one_redis = |scripts| {
            LockService::OneRedis(OneRedis {
                server: first,
                key: self.lock.clone(),
                scripts,
                asker: asker.clone(),
            })
        };
        Ok(match self.rung {
            Rung::PlainLock => one_redis(Scripts::Blind),
            Rung::OwnDelete | Rung::LongerTtl => one_redis(Scripts::Compare),
            Rung::Watchdog => one_redis(Scripts::CompareAndWatch),
            Rung::Redlock => LockService::Redlock(Redlock::new(&at, &self.lock)),
            Rung::PublishedSql | Rung::CheckedToken | Rung::UniqueKey | Rung::Receipts | Rung::Outbox => {
                LockService::Leases(Leases::connect(first, &self.lock, &asker).await?)
            }
        })
    }

    /// Notes that something was done now; whether it had been done before.
    pub(crate) fn was_done(&self, what: &str) -> bool {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        !done.insert(what.to_owned())
    }

    pub(crate) fn each_link(&self, what: fn(&Link)) {
        self.links.iter().for_each(what);
    }

    /// A publisher for the outbox, where the rung has one.
    pub(crate) fn publisher(&self) -> Result<Option<Publisher>, Failure> {
        let Books::Checked(books) = &self.books else {
            return Ok(None);
        };
        if self.rung < Rung::Outbox {
            return Ok(None);
        }
        let policy = PublishPolicy::builder(DEDUP_WINDOW)
            .request_timeout(REQUEST_TIMEOUT)
            .poll_every(POLL_EVERY)
            .build()?;
        let target = HttpTarget::builder(self.outside.url()).build()?;
        let ledger = books.ledger().clone();
        Ok(Some(Publisher::start(
            ledger,
            target,
            policy,
            Territory::everything(),
        )))
    }

    /// Ends what has to be ended in an orderly way.
    pub(crate) async fn strike(self) -> Result<(), Failure> {
        if let Books::Checked(books) = &self.books {
            books.ledger().close().await?;
        }
        drop(self.links);
        if let Some(server) = self.lease_server {
            server.shutdown().await?;
        }
        Ok(())
    }
}

async fn start_lease_server() -> Result<Server, Failure> {
    let store = StoreConfig::in_memory().token_floor(TOKEN_FLOOR);
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Ok(Server::start(ServerConfig::new(store, anywhere, anywhere)).await?)
}

/// The reward that most scenarios are about.
pub(crate) fn rank_3() -> Result<RewardEventId, Failure> {
    Ok(RewardEventId::builder("season-2026-week-34", PLAYER, "rank-3").build()?)
}

/// Another reward of the same player.
pub(crate) fn quest_9() -> Result<RewardEventId, Failure> {
    Ok(RewardEventId::builder("season-2026-week-34", PLAYER, "quest-9").build()?)
}
