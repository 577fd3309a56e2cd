//! Publishers over a real store, towards an outside server with moods; time is paused and moves by itself.
#![expect(
    clippy::disallowed_methods,
    reason = "the clock of the tests is the paused one"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lease_core::{Fence, FenceToken, LeaseName};
use tokio::time::Instant;

use super::{
    Answer, MemoryTarget, Mood, PublishPolicy, PublishPolicyBuilder, Published, Publisher, Status, Target,
    TargetFuture, Territory,
};
use crate::clock::Clock;
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::store::{MemoryStore, OutboxQuery};
use crate::types::{Claim, Delivery, Doubt, Partition, Reason, UnixMillis};

const WINDOW: Duration = Duration::from_secs(3_600);

/// Wall time that is the paused time, and what it was moved by.
#[derive(Debug, Clone)]
struct PausedClock(Instant, Arc<AtomicU64>);

impl PausedClock {
    fn new() -> Self {
        Self(Instant::now(), Arc::default())
    }
}

impl Clock for PausedClock {
    fn now(&self) -> UnixMillis {
        let moved = Duration::from_secs(self.1.load(Ordering::SeqCst));
        UnixMillis::new(1_000_000).after(self.0.elapsed() + moved)
    }
}

fn ledger() -> Ledger {
    Ledger::builder(MemoryStore::new())
        .clock(PausedClock::new())
        .open()
}

fn policy() -> PublishPolicyBuilder {
    PublishPolicy::builder(WINDOW)
        .tries_max(5)
        .backoff(Duration::from_millis(100), Duration::from_secs(5))
}

fn publisher(ledger: &Ledger, target: &Arc<MemoryTarget>) -> Publisher {
    let policy = policy().build().unwrap();
    Publisher::start(
        ledger.clone(),
        Shared(Arc::clone(target)),
        policy,
        Territory::everything(),
    )
}

/// The target that the test keeps a hand on.
#[derive(Debug)]
struct Shared(Arc<MemoryTarget>);

impl Target for Shared {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Answer> {
        self.0.deliver(delivery)
    }

    fn status<'a>(&'a self, delivery: &'a Delivery) -> TargetFuture<'a, Status> {
        self.0.status(delivery)
    }
}

async fn claim(ledger: &Ledger, player: i64, event: &str) {
    let fence = Fence::new(LeaseName::new("lock").unwrap(), FenceToken::new(1).unwrap());
    let event = RewardEventId::parse(event).unwrap();
    let claim = Claim::builder(fence, player, event, 500)
        .item("gold")
        .build()
        .unwrap();
    assert!(ledger.claim(claim).await.unwrap().is_accepted());
}

async fn until(publisher: &Publisher, enough: impl FnMut(&Published) -> bool) -> Published {
    publisher.published_until(enough).await.unwrap()
}

async fn first_row(ledger: &Ledger) -> Delivery {
    let found = ledger.deliveries(OutboxQuery::All, None, 1).await.unwrap();
    found.deliveries.into_iter().next().unwrap()
}

/// S9: the ledger commits and the worker dies before the outside call: the item does arrive.
#[tokio::test(start_paused = true)]
async fn s9_what_was_claimed_before_a_publisher_ran_is_delivered_in_order() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    for event in ["a", "b", "c"] {
        for player in 1..=20 {
            claim(&ledger, player, event).await;
        }
    }
    let publisher = publisher(&ledger, &target);
    let published = until(&publisher, |published| published.delivered == 60).await;
    assert_eq!((published.again, published.dead, published.superseded), (0, 0, 0));
    let done = target.done();
    for player in 1..=20 {
        let of_player: Vec<_> = done
            .iter()
            .filter(|key| key.starts_with(&format!("grant/{player}/")))
            .map(|key| key.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(of_player, ["a", "b", "c"]);
    }
    let report = ledger.audit().await.unwrap();
    assert!(
        report.is_clean() && report.delivered == 60 && report.outbox_open == 0,
        "{report:?}"
    );
}

/// S8 and L03: the outside did the work and its answer was lost; one effect, learned by the status query.
#[tokio::test(start_paused = true)]
async fn s8_a_lost_answer_is_resolved_by_the_status_and_done_once() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::LosesAnswers);
    target.forget_keys();
    claim(&ledger, 42, "a").await;
    let publisher = publisher(&ledger, &target);
    until(&publisher, |published| published.again == 1).await;
    let published = until(&publisher, |published| published.delivered == 1).await;
    assert_eq!(published.again, 1);
    assert_eq!(
        (target.requests(), target.done_twice().len()),
        (1, 0),
        "it was asked, not sent again"
    );
}

/// The other way of S8: a server that tells no status, and remembers its keys.
#[tokio::test(start_paused = true)]
async fn s8_without_a_status_the_same_key_is_sent_again_and_done_once() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::LosesAnswers);
    target.tell_no_status();
    claim(&ledger, 42, "a").await;
    let publisher = publisher(&ledger, &target);
    until(&publisher, |published| published.again == 2).await;
    target.be(Mood::Well);
    until(&publisher, |published| published.delivered == 1).await;
    assert_eq!(target.requests(), 3);
    assert_eq!(target.done(), ["grant/42/a"]);
}

/// The negative control of both: a server that forgets keys and tells no status does it twice. So the horizon must lie
/// within the time that it remembers them.
#[tokio::test(start_paused = true)]
async fn a_server_without_keys_and_status_is_made_to_do_it_twice() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::LosesAnswers);
    target.tell_no_status();
    target.forget_keys();
    claim(&ledger, 42, "a").await;
    let publisher = publisher(&ledger, &target);
    until(&publisher, |published| published.again == 2).await;
    assert_eq!(target.done_twice(), ["grant/42/a"]);
}

/// L32: one message that always fails is given up after its tries, and the others flow; a person retries it.
#[tokio::test(start_paused = true)]
async fn l32_what_always_fails_is_dead_lettered_and_the_others_flow() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::Busy);
    claim(&ledger, 42, "a").await;
    claim(&ledger, 42, "b").await;
    let publisher = publisher(&ledger, &target);
    until(&publisher, |published| published.dead == 1).await;
    let row = first_row(&ledger).await;
    assert_eq!((row.progress.tries(), row.progress.doubt()), (5, Doubt::NotDone));
    target.be(Mood::Well);
    until(&publisher, |published| published.delivered == 1).await;
    assert_eq!(target.done(), ["grant/42/b"]);
    assert_eq!(
        ledger.standing().await.unwrap().outbox_dead,
        1,
        "listed, not dropped"
    );
    ledger.retry_delivery(row.id).await.unwrap();
    until(&publisher, |published| published.delivered == 2).await;
    assert_eq!(target.done(), ["grant/42/b", "grant/42/a"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_outside_refuses_for_good_is_dead_at_once() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::Refuses);
    claim(&ledger, 42, "a").await;
    let publisher = publisher(&ledger, &target);
    until(&publisher, |published| published.dead == 1).await;
    let row = first_row(&ledger).await;
    assert_eq!(
        (row.progress.tries(), row.progress.note().as_str()),
        (1, "no such item")
    );
}

/// Past the horizon nothing is sent any more: the key may be forgotten.
#[tokio::test(start_paused = true)]
async fn a_row_of_unknown_outcome_is_only_asked_about_past_the_horizon() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::LosesAnswers);
    target.tell_no_status();
    claim(&ledger, 42, "a").await;
    let policy = policy()
        .tries_max(100)
        .backoff(Duration::from_secs(600), Duration::from_secs(600))
        .poll_every(Duration::from_secs(20))
        .build()
        .unwrap();
    let publisher = Publisher::start(
        ledger.clone(),
        Shared(Arc::clone(&target)),
        policy,
        Territory::everything(),
    );
    until(&publisher, |published| published.dead == 1).await;
    let row = first_row(&ledger).await;
    assert_eq!(row.progress.doubt(), Doubt::Unknown);
    let requests_at_the_horizon = target.requests();
    assert!(requests_at_the_horizon < 100);
    assert_eq!(target.done(), ["grant/42/a"]);
}

/// L14: a publisher that stops for longer than its lease; another does its work, and the late verdict touches nothing.
#[tokio::test(start_paused = true)]
async fn l14_the_verdict_of_a_publisher_that_was_stopped_touches_nothing() {
    let clock = PausedClock::new();
    let ledger = Ledger::builder(MemoryStore::new()).clock(clock.clone()).open();
    let slow = Arc::new(MemoryTarget::new());
    slow.be(Mood::Silent);
    claim(&ledger, 42, "a").await;
    let stuck = policy()
        .request_timeout(Duration::from_secs(100))
        .lease_for(Duration::from_secs(200))
        .build()
        .unwrap();
    let first = Publisher::start(
        ledger.clone(),
        Shared(Arc::clone(&slow)),
        stuck,
        Territory::everything(),
    );
    while slow.requests() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The first one's own time stands, as that of a stopped process does; everybody else's goes on.
    clock.1.store(300, Ordering::SeqCst);
    let quick = Arc::new(MemoryTarget::new());
    let second = publisher(&ledger, &quick);
    until(&second, |published| published.delivered == 1).await;
    let late = until(&first, |published| published.superseded == 1).await;
    assert_eq!((late.delivered, late.dead), (0, 0));
    assert!(ledger.audit().await.unwrap().is_clean());
}

#[tokio::test(start_paused = true)]
async fn publishers_that_share_the_partitions_do_each_row_once() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    for player in 0..200 {
        claim(&ledger, player, "a").await;
    }
    let halves: (Vec<_>, Vec<_>) = Partition::all().partition(|partition| partition.get() % 2 == 0);
    let policy = policy().build().unwrap();
    let start = |territory| Publisher::start(ledger.clone(), Shared(Arc::clone(&target)), policy, territory);
    let even = start(Territory::Fixed(halves.0));
    let odd = start(Territory::Fixed(halves.1));
    let everything = start(Territory::everything());
    loop {
        let sum: u64 = [&even, &odd, &everything]
            .iter()
            .map(|p| p.published().delivered)
            .sum();
        if sum == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((target.requests(), target.done_twice().len()), (200, 0));
    assert_eq!(ledger.standing().await.unwrap().outbox_open, 0);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_is_stopped_settles_what_is_under_way() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    target.be(Mood::LosesAnswers);
    claim(&ledger, 42, "a").await;
    let publisher = publisher(&ledger, &target);
    while target.requests() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let published = publisher.stop().await;
    assert_eq!(published.again, 1, "its outcome is unknown, and that is written");
    assert_eq!(first_row(&ledger).await.progress.doubt(), Doubt::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_ends_with_its_ledger() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    let publisher = publisher(&ledger, &target);
    ledger.close().await.unwrap();
    assert_eq!(publisher.published_until(|_| false).await, None);
}

/// A reversal is told after its grant, under a key of its own.
#[tokio::test(start_paused = true)]
async fn a_reversal_is_delivered_after_its_grant() {
    let (ledger, target) = (ledger(), Arc::new(MemoryTarget::new()));
    claim(&ledger, 42, "a").await;
    let event = RewardEventId::parse("a").unwrap();
    let reason = Reason::new("a chargeback").unwrap();
    let _reversed = ledger.reverse(42, &event, reason).await.unwrap();
    let publisher = publisher(&ledger, &target);
    until(&publisher, |published| published.delivered == 2).await;
    assert_eq!(target.done(), ["grant/42/a", "reverse/42/a"]);
}
