//! Where a scenario's ledger is kept: in memory, on sled, or in a PostgreSQL server of the tests' own.
//!
//! Every scenario is written once and run on every [`Place`]. What takes no claim is not about the store, and so are the
//! cases of `cases.rs`, where lease and fence alone meet: those stand in memory ([`crate::stage::Stage::start`]).
//!
//! The ledger lives in real time, as if it were in another process.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use reward_ledger::testing::server::PostgresServer;
use reward_ledger::testing::{PostgresStage, Protection, Protections, Stage};
use reward_ledger::{
    AuditReport, Claim, ClaimError, ClaimOutcome, Expectations, Ledger, MemoryStore, OutsideRecords,
    PostgresConfig, PostgresStore, PublishPolicy, Publisher, Receipt, RewardEventId, SledConfig, SledStore,
    Target, Territory,
};

use crate::real_time::{self, in_real_time};

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Sled,
    Postgres,
}

impl Place {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Sled, Self::Postgres];
    /// Those that outlive their process.
    pub(crate) const DURABLE: [Self; 2] = [Self::Sled, Self::Postgres];

    /// A new ledger, as it is usually opened.
    pub(crate) async fn ledger(self) -> Desk {
        self.open(Opening::usual()).await
    }

    /// A new ledger that takes claims without a token, too.
    pub(crate) async fn ledger_taking_unfenced(self) -> Desk {
        self.open(Opening::usual().taking_unfenced()).await
    }

    /// A new ledger with one protection switched off, that takes claims without a token, too.
    pub(crate) async fn ledger_without(self, protection: Protection) -> Desk {
        self.open(Opening::usual().without(protection).taking_unfenced())
            .await
    }

    pub(crate) async fn open(self, opening: Opening) -> Desk {
        Home::new(self).await.open(opening).await
    }
}

/// Where rows are: a ledger is opened there, left, and opened again, also by another process.
#[derive(Debug)]
pub(crate) enum Home {
    Memory,
    Sled {
        dir: PathBuf,
        /// Takes it away again; whoever was only told of it does not.
        _owner: Option<tempfile::TempDir>,
    },
    Postgres(String),
}

impl Home {
    /// An empty one.
    pub(crate) async fn new(place: Place) -> Arc<Self> {
        Arc::new(match place {
            Place::Memory => Self::Memory,
            Place::Sled => {
                let dir = tempfile::tempdir().unwrap();
                Self::Sled {
                    dir: dir.path().to_owned(),
                    _owner: Some(dir),
                }
            }
            Place::Postgres => {
                Self::Postgres(in_real_time(async { PostgresServer::shared().await.database().await }).await)
            }
        })
    }

    /// In words that another process finds it by.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
            Self::Sled { dir, .. } => format!("sled:{}", dir.display()),
            Self::Postgres(url) => format!("postgres:{url}"),
        }
    }

    /// The one that another process has made.
    pub(crate) fn at(address: &str) -> Arc<Self> {
        Arc::new(match address.split_once(':').unwrap() {
            ("sled", dir) => Self::Sled {
                dir: dir.into(),
                _owner: None,
            },
            ("postgres", url) => Self::Postgres(url.to_owned()),
            (kind, _) => panic!("no store is called {kind}"),
        })
    }

    /// Opens it. In PostgreSQL several may have it open at once.
    pub(crate) async fn open(self: &Arc<Self>, opening: Opening) -> Desk {
        let home = Arc::clone(self);
        let ledger = in_real_time(async move { open(&home, opening).await }).await;
        Desk {
            ledger,
            home: Arc::clone(self),
        }
    }
}

async fn open(home: &Home, opening: Opening) -> Ledger {
    let Opening {
        protections,
        unfenced,
        hook,
    } = opening;
    let pass = move |point: Option<Point>| point.map_or(Ok(()), &hook);
    let builder = match home {
        Home::Memory => Ledger::builder(MemoryStore::with_protections(protections)),
        Home::Sled { dir, .. } => {
            let config = SledConfig::builder(dir)
                .protections(protections)
                .on_stage(move |stage| pass(Point::of_sled(stage)));
            Ledger::builder(SledStore::open_with(config.build().unwrap()).unwrap())
        }
        Home::Postgres(url) => {
            let config = PostgresConfig::builder(url)
                .protections(protections)
                .on_stage(move |stage| pass(Point::of_postgres(stage)));
            let opened = PostgresStore::open_with(config.build().unwrap()).await;
            Ledger::builder(opened.unwrap())
        }
    };
    match unfenced {
        Unfenced::Refused => builder.open(),
        Unfenced::Taken => builder.allow_unfenced().open(),
    }
}

/// A point of a transaction that each durable store passes, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Nothing was read yet.
    Undecided,
    /// It is decided, and nothing is written.
    Decided,
    /// All is written, and not durable yet.
    Written,
    /// It is durable, and nobody was told.
    Durable,
}

impl Point {
    pub(crate) const ALL: [Self; 4] = [Self::Undecided, Self::Decided, Self::Written, Self::Durable];

    fn of_sled(stage: Stage) -> Option<Self> {
        match stage {
            Stage::Deciding => Some(Self::Undecided),
            Stage::Applying => Some(Self::Decided),
            Stage::Syncing => Some(Self::Written),
            Stage::Answering => Some(Self::Durable),
            Stage::Idle | Stage::Closing | _ => None,
        }
    }

    fn of_postgres(stage: PostgresStage) -> Option<Self> {
        match stage {
            PostgresStage::BeforeTransaction => Some(Self::Undecided),
            PostgresStage::BeforeWrites => Some(Self::Decided),
            PostgresStage::BeforeCommit => Some(Self::Written),
            PostgresStage::AfterCommit => Some(Self::Durable),
            PostgresStage::BeforeLookUp | _ => None,
        }
    }
}

type Hook = Box<dyn Fn(Point) -> io::Result<()> + Send + Sync>;

#[derive(Debug, Clone, Copy)]
enum Unfenced {
    Refused,
    Taken,
}

/// How a ledger is opened.
pub(crate) struct Opening {
    protections: Protections,
    unfenced: Unfenced,
    hook: Hook,
}

impl Opening {
    pub(crate) fn usual() -> Self {
        Self {
            protections: Protections::ALL,
            unfenced: Unfenced::Refused,
            hook: Box::new(|_| Ok(())),
        }
    }

    pub(crate) fn without(mut self, protection: Protection) -> Self {
        self.protections = Protections::all_without(protection);
        self
    }

    pub(crate) fn taking_unfenced(mut self) -> Self {
        self.unfenced = Unfenced::Taken;
        self
    }

    /// Calls `hook` at each point of each transaction, on a thread of the store's. In memory there are none.
    pub(crate) fn at_points(
        mut self,
        hook: impl Fn(Point) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.hook = Box::new(hook);
        self
    }
}

/// An open ledger. A cheap handle: clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    ledger: Ledger,
    home: Arc<Home>,
}

impl Desk {
    /// A ledger that another worker process has open: another connection in PostgreSQL, this one elsewhere.
    pub(crate) async fn of_another_worker(&self, opening: Opening) -> Self {
        match *self.home {
            Home::Memory | Home::Sled { .. } => self.clone(),
            Home::Postgres(_) => self.home.open(opening).await,
        }
    }

    /// Whatever a ledger can be asked.
    pub(crate) async fn ask<T, F>(&self, question: impl FnOnce(Ledger) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send,
    {
        let ledger = self.ledger.clone();
        in_real_time(async move { question(ledger).await }).await
    }

    pub(crate) async fn claim(&self, claim: Claim) -> Result<ClaimOutcome, ClaimError> {
        self.ask(async move |ledger| ledger.claim(claim).await).await
    }

    pub(crate) async fn get(&self, player: i64, event: &RewardEventId) -> Option<Receipt> {
        let event = event.clone();
        self.ask(async move |ledger| ledger.get(player, &event).await)
            .await
            .unwrap()
    }

    pub(crate) async fn audit(&self) -> AuditReport {
        self.audit_against(Expectations::new()).await
    }

    pub(crate) async fn audit_against(&self, expectations: Expectations) -> AuditReport {
        self.ask(async move |ledger| ledger.audit_against(&expectations, |_| {}).await)
            .await
            .unwrap()
    }

    /// The audit against what the outside says that it did.
    pub(crate) async fn audit_with(&self, outside: OutsideRecords) -> AuditReport {
        let work = async move |ledger: Ledger| {
            let none = Expectations::new();
            ledger.audit_with(&none, Some(&outside), |_| {}, |_| {}).await
        };
        self.ask(work).await.unwrap()
    }

    /// A publisher of its outbox, in real time.
    pub(crate) fn publish(
        &self,
        target: impl Target,
        policy: PublishPolicy,
        territory: Territory,
    ) -> Publisher {
        let _entered = real_time::enter();
        Publisher::start(self.ledger.clone(), target, policy, territory)
    }

    /// As whoever goes in good order.
    pub(crate) async fn close(self) {
        self.ask(async |ledger| ledger.close().await).await.unwrap();
    }
}
