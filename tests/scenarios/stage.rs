//! A lease store in memory and in paused time, a ledger on any store, and workers whose clients can be paused and cut off.

use std::time::Duration;

use fence_client::testing::{ManualClock, TestKit};
use fence_client::{Fence, FenceClient, FenceToken, Lease, OwnerId};
use lease_core::machine::LeaseKey;
use lease_core::{Database, LeaseName};
use lease_store::{LeaseStore, StoreConfig, TokenFloor};
use reward_ledger::{Claim, ClaimBuilder, ClaimOutcome, RewardEventId};
use tokio::task::JoinHandle;

use crate::desk::{Desk, Place};

pub(crate) const LOCK: &str = "lock:reward:player-42";
pub(crate) const PLAYER: i64 = 42;
pub(crate) const GOLD: i64 = 500;
pub(crate) const TTL: Duration = Duration::from_secs(5);
/// How long a worker stands in the queue: longer than any lease of these scenarios.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// The reward that most scenarios are about.
pub(crate) fn rank_3() -> RewardEventId {
    RewardEventId::builder("season-2026-week-34", PLAYER, "rank-3")
        .build()
        .unwrap()
}

/// Another reward of the same player.
pub(crate) fn quest_9() -> RewardEventId {
    RewardEventId::builder("season-2026-week-34", PLAYER, "quest-9")
        .build()
        .unwrap()
}

/// The reward's lock, held under this token.
pub(crate) fn fence(token: u64) -> Fence {
    Fence::new(name(LOCK), FenceToken::new(token).unwrap())
}

/// 500 gold for `event`, with the token of `fence`.
pub(crate) fn gold(fence: Fence, event: RewardEventId) -> ClaimBuilder {
    Claim::builder(fence, PLAYER, event, GOLD).item("gold")
}

/// The answer to a claim.
pub(crate) async fn claim(ledger: &Desk, claim: ClaimBuilder) -> ClaimOutcome {
    ledger.claim(claim.build().unwrap()).await.unwrap()
}

pub(crate) fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

pub(crate) fn key(text: &str) -> LeaseKey {
    LeaseKey::new(Database::ZERO, name(text))
}

pub(crate) fn owner(text: &str) -> OwnerId {
    OwnerId::new(text).unwrap()
}

/// Work beside the test's own; whoever starts it waits for it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where these tests start tasks"
)]
pub(crate) fn in_background<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(work)
}

pub(crate) struct Stage {
    pub(crate) store: LeaseStore,
    pub(crate) ledger: Desk,
    pub(crate) clock: ManualClock,
}

impl Stage {
    /// For what is not about the ledger's store: that is in memory.
    pub(crate) async fn start() -> Self {
        Self::on(Place::Memory).await
    }

    /// With all protections on.
    pub(crate) async fn on(place: Place) -> Self {
        Self::with(place.ledger().await).await
    }

    pub(crate) async fn with(ledger: Desk) -> Self {
        let config = StoreConfig::in_memory().token_floor(TokenFloor::At(100));
        let store = LeaseStore::start(config).await.unwrap();
        Self {
            store,
            ledger,
            clock: ManualClock::new(),
        }
    }

    pub(crate) fn worker(&self, who: &str) -> Worker {
        let kit = TestKit::with_clock(&self.clock);
        let builder = FenceClient::builder().owner(owner(who)).test_kit(&kit);
        let client = builder.embedded(self.store.clone()).unwrap();
        Worker {
            client,
            kit,
            ledger: self.ledger.clone(),
        }
    }

    /// Owner and token of the lease as the store has it.
    pub(crate) async fn holder(&self) -> Option<(String, u64)> {
        let found = self.store.get(Database::ZERO, name(LOCK)).await.unwrap();
        found
            .lease
            .map(|lease| (lease.owner.to_string(), lease.token.get()))
    }
}

#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) client: FenceClient,
    pub(crate) kit: TestKit,
    pub(crate) ledger: Desk,
}

impl Worker {
    /// The lease, waited for if need be.
    pub(crate) async fn acquire(&self) -> Lease {
        self.client
            .lease(LOCK)
            .ttl(TTL)
            .wait(WAIT)
            .acquire()
            .await
            .unwrap()
    }

    /// Claims the reward with the token of `fence`.
    pub(crate) async fn claim(&self, fence: Fence) -> ClaimOutcome {
        claim(&self.ledger, gold(fence, rank_3())).await
    }
}
