//! Publishers that share the partitions by leases of the real store.

use std::sync::Arc;
use std::time::Duration;

use fence_client::FenceClient;
use lease_store::{LeaseStore, StoreConfig};
use reward_ledger::{
    Answer, Claim, Clock, Delivery, LeaseGuard, Ledger, MemoryStore, MemoryTarget, Partition, PublishPolicy,
    Published, Publisher, RewardEventId, Status, Target, TargetFuture, Territory, UnixMillis,
};
use tests::clock::SOON;

use crate::books::applied;
use crate::desk::{Desk, Opening, Place};
use crate::outside_server::OutsideServer;
use crate::real_time::in_real_time;
use crate::stage::{GOLD, Stage, fence};

/// Enough of them that each partition has some.
const PLAYERS: i64 = 64;

fn partitions() -> usize {
    Partition::all().count()
}

/// The wall clock, which goes with the paused one.
#[derive(Debug)]
struct PausedWall(tokio::time::Instant);

impl PausedWall {
    #[expect(clippy::disallowed_methods, reason = "the paused time is this clock")]
    fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for PausedWall {
    fn now(&self) -> UnixMillis {
        UnixMillis::new(1_000_000).after(self.0.elapsed())
    }
}

/// A target that the test keeps a hand on.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<MemoryTarget>);

impl Target for Seen {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Answer> {
        self.0.deliver(delivery)
    }

    fn status<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Status> {
        self.0.status(delivery)
    }
}

fn policy() -> PublishPolicy {
    let hour = Duration::from_secs(3_600);
    PublishPolicy::builder(hour).build().unwrap()
}

fn reward(player: i64, rank: i64) -> Claim {
    let event = RewardEventId::builder("season-2026-week-34", player, format!("rank-{rank}"));
    let claim = Claim::builder(fence(101), player, event.build().unwrap(), GOLD);
    claim.item("gold").build().unwrap()
}

fn all() -> u64 {
    u64::try_from(PLAYERS).unwrap()
}

async fn guard(client: FenceClient, partitions_max: usize) -> LeaseGuard {
    let guard = LeaseGuard::start(client, "rewards", partitions_max);
    let held = tokio::time::timeout(SOON, guard.wait_until_held(partitions_max)).await;
    held.unwrap();
    guard
}

async fn until(publisher: &Publisher, enough: impl FnMut(&Published) -> bool) {
    let waited = tokio::time::timeout(SOON, publisher.published_until(enough)).await;
    let waited = waited.unwrap_or_else(|_| panic!("{:?}", publisher.published()));
    waited.unwrap();
}

/// A ledger in memory whose clock is the paused one, and a publisher of A's on it that has done the first reward of everybody.
async fn first_half(a: Territory) -> (Ledger, Publisher) {
    let ledger = Ledger::builder(MemoryStore::new())
        .clock(PausedWall::new())
        .open();
    let of_a = Publisher::start(ledger.clone(), Seen::default(), policy(), a);
    for player in 0..PLAYERS {
        applied(ledger.claim(reward(player, 1)).await.unwrap());
    }
    until(&of_a, |published| published.delivered == all()).await;
    (ledger, of_a)
}

/// L14, of whole partitions: whoever stopped for longer than its leases live is given no rows any more, although it believes
/// that it holds them, and its successor does all.
#[tokio::test(start_paused = true)]
async fn l14_a_publisher_whose_leases_have_moved_on_is_given_nothing_more() {
    let stage = Stage::start().await;
    let (a, b) = (stage.worker("a"), stage.worker("b"));
    let of_a = guard(a.client.clone(), partitions()).await;
    let (ledger, of_a) = first_half(Territory::Guarded(of_a)).await;

    a.kit.pause();
    let of_b = guard(b.client.clone(), partitions()).await;
    let of_b = Publisher::start(
        ledger.clone(),
        Seen::default(),
        policy(),
        Territory::Guarded(of_b),
    );
    // It has shown its tokens.
    until(&of_b, |published| published.idle_rounds > 0).await;
    let rounds_of_a = of_a.published().idle_rounds;
    for player in 0..PLAYERS {
        applied(ledger.claim(reward(player, 2)).await.unwrap());
    }
    until(&of_b, |published| published.delivered == all()).await;
    until(&of_a, |published| published.idle_rounds > rounds_of_a).await;
    assert_eq!(of_a.published().delivered, all(), "nothing of the second half");
    let report = ledger.audit().await.unwrap();
    assert!(report.is_clean() && report.outbox_open == 0, "{report:?}");
}

/// Control: the leases have moved on in the same way, and nobody shows their tokens to the ledger.
#[tokio::test(start_paused = true)]
async fn l14_without_tokens_the_publisher_that_stopped_goes_on_in_its_successors_partitions() {
    let stage = Stage::start().await;
    let (a, b) = (stage.worker("a"), stage.worker("b"));
    let of_a = guard(a.client.clone(), partitions()).await;
    let (ledger, publisher_of_a) = first_half(Territory::everything()).await;
    a.kit.pause();
    let of_b = guard(b.client.clone(), partitions()).await;
    assert_eq!(
        (of_a.partitions().len(), of_b.partitions().len()),
        (partitions(), partitions())
    );
    for player in 0..PLAYERS {
        applied(ledger.claim(reward(player, 2)).await.unwrap());
    }
    until(&publisher_of_a, |published| published.delivered == 2 * all()).await;
}

/// A publisher over HTTP, in real time, with so many leases of `store`.
async fn publisher(ledger: &Desk, store: &LeaseStore, items: &OutsideServer, leases: usize) -> Publisher {
    let store = store.clone();
    let guard = in_real_time(async move {
        let client = FenceClient::builder().embedded(store).unwrap();
        guard(client, leases).await
    });
    ledger.publish(items.target(), policy(), Territory::Guarded(guard.await))
}

/// Waits until both have delivered so many together; what either did.
async fn together(a: &Publisher, b: &Publisher, count: u64) -> (u64, u64) {
    let enough = async {
        loop {
            let (by_a, by_b) = (a.published().delivered, b.published().delivered);
            if by_a + by_b >= count {
                return (by_a, by_b);
            }
            tokio::select! {
                _more = a.published_until(|published| published.delivered > by_a) => {}
                _more = b.published_until(|published| published.delivered > by_b) => {}
            }
        }
    };
    tokio::time::timeout(SOON, enough).await.unwrap()
}

async fn claim_all(ledger: &Desk, rank: i64) {
    for player in 0..PLAYERS {
        applied(ledger.claim(reward(player, rank)).await.unwrap());
    }
}

/// Two publishers, of two worker processes where the store has such, share the partitions; one stops, and a third takes over
/// what it leaves. Everything is done once.
#[tokio::test]
async fn publishers_share_the_partitions_by_leases_and_another_takes_over_what_one_leaves() {
    for place in Place::DURABLE {
        let (ledger, items) = (place.ledger().await, OutsideServer::of_items().await);
        let other = ledger.of_another_worker(Opening::usual()).await;
        let store = in_real_time(LeaseStore::start(StoreConfig::in_memory()))
            .await
            .unwrap();
        let half = partitions() / 2;
        let a = publisher(&ledger, &store, &items, half).await;
        let b = publisher(&other, &store, &items, half).await;
        claim_all(&ledger, 1).await;
        let (by_a, by_b) = together(&a, &b, all()).await;
        assert!(by_a > 0 && by_b > 0, "{place:?}: {by_a} and {by_b}");

        a.stop().await;
        let c = publisher(&other, &store, &items, half).await;
        claim_all(&ledger, 2).await;
        let (_, by_c) = together(&b, &c, by_b + all()).await;
        assert_eq!(by_c, by_a, "{place:?}: the players of A");
        let report = ledger.audit_with(items.books()).await;
        assert!(
            report.is_clean() && report.outbox_open == 0,
            "{place:?}: {report:?}"
        );
        assert_eq!(report.delivered, 2 * all());
    }
}
