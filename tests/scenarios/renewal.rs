//! S2: a renewal fails in the middle of the work. S3: a renewal's packet arrives after the lease has ended.

use std::time::Duration;

use fence_client::testing::Gate;
use fence_client::{Lease, LossReason};
use lease_core::machine::{Set, SetCondition, SetExpiry};
use lease_core::wire::{HistoryEvent, LeaseVerb, LossReason as EndReason, RenewManyCommand, RenewReply};
use lease_core::{Database, Ttl};
use lease_store::Stored;
use reward_ledger::ClaimOutcome;
use reward_ledger::testing::Protection;

use tokio::task::JoinHandle;

use crate::books::{applied, hold_exactly, stale};
use crate::desk::Place;
use crate::stage::{GOLD, LOCK, PLAYER, Stage, TTL, Worker, in_background, key, name, owner, rank_3};

/// What B saw and was told.
struct Next {
    granted_at: Duration,
    told: ClaimOutcome,
    lease: Lease,
}

/// B waits for the lease in the background, and pays as soon as it has it.
fn next_worker(stage: &Stage, b: &Worker) -> JoinHandle<Next> {
    let (b, clock) = (b.clone(), stage.clock.clone());
    in_background(async move {
        let lease = b.acquire().await;
        let granted_at = clock.elapsed();
        let told = b.claim(lease.fence()).await;
        Next {
            granted_at,
            told,
            lease,
        }
    })
}

/// Work that takes longer than the lease will stand.
async fn long_work() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn s02_the_holder_learns_of_the_loss_before_anybody_else_is_granted() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let lease = a.acquire().await;
        let next = next_worker(&stage, &b);

        let cut = async {
            tokio::time::sleep(TTL * 2).await;
            assert!(lease.is_valid(), "renewed, it stands longer than its ttl");
            a.kit.cut();
        };
        let (stopped, ()) = tokio::join!(lease.run(long_work()), cut);
        let lost_at = stage.clock.elapsed();
        assert_eq!(stopped.unwrap_err().reason, LossReason::DeadlinePassed);
        assert!(lease.renewal_failure().is_some(), "the holder can see why");
        assert!(
            stage.holder().await.is_some_and(|(who, _)| who == "a"),
            "and nobody else holds it yet"
        );

        let next = next.await.unwrap();
        assert!(
            lost_at < next.granted_at,
            "lost at {lost_at:?}, granted anew at {:?}",
            next.granted_at
        );
        let first = applied(next.told);
        let late = a.claim(lease.fence()).await;
        assert_eq!(
            stale(late),
            (lease.token().get(), next.lease.token().get(), Some(first))
        );
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Control: a holder whose clock and timers stand still is not told in time. That is what the deadline is for.
#[tokio::test(start_paused = true)]
async fn s02_without_its_deadline_the_holder_believes_on_while_another_is_granted() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let lease = a.acquire().await;
        let next = next_worker(&stage, &b);
        a.kit.cut();
        a.kit.pause();
        let next = next.await.unwrap();
        assert!(
            lease.is_valid() && next.lease.is_valid(),
            "two workers believe that they hold the lease"
        );
    }
}

/// Control: learning of the loss does not stop a write that is already under way.
#[tokio::test(start_paused = true)]
async fn s02_without_fencing_the_late_write_is_taken() {
    for place in Place::ALL {
        let stage = Stage::with(place.ledger_without(Protection::Fencing).await).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let lease = a.acquire().await;
        let next = next_worker(&stage, &b);
        a.kit.cut();
        lease.lost().await;
        applied(next.await.unwrap().told);
        assert!(a.claim(lease.fence()).await.is_accepted());
    }
}

/// The late packet arrives, and behind it, in the store's queue, the same once more, whose answer is seen.
async fn arrives(stage: &Stage, lease: &Lease, packet: Gate) -> RenewReply {
    packet.open();
    // The packet's task runs, and stands in the queue.
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    let leases = vec![(lease.name().clone(), lease.token())];
    let answered = stage
        .store
        .renew_many(Database::ZERO, RenewManyCommand { leases })
        .await
        .unwrap();
    answered.answers.into_iter().next().unwrap()
}

/// A's first renewal is slow on its way, and A sends no other. Gives A's lost lease and the gate before the packet.
async fn with_a_renewal_under_way(a: &Worker) -> (Lease, Gate) {
    let lease = a.acquire().await;
    let packet = a.kit.hold_next_request(LeaseVerb::RenewMany);
    packet.reached().await;
    a.kit.cut();
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    (lease, packet)
}

#[tokio::test(start_paused = true)]
async fn s03_a_renewal_that_arrives_after_the_end_is_refused_although_nobody_else_holds() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let (lease, packet) = with_a_renewal_under_way(&a).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(stage.holder().await, None);

        a.kit.heal();
        assert_eq!(
            arrives(&stage, &lease, packet).await,
            RenewReply::Lost {
                reason: EndReason::Expired
            }
        );
        assert_eq!(stage.holder().await, None, "it did not come back to life");
        assert!(!lease.is_valid());
        assert_eq!(ends_of(&stage, &lease), [EndReason::Expired]);

        let next = b.acquire().await;
        assert!(next.token() > lease.token());
        let first = applied(b.claim(next.fence()).await);
        assert_eq!(stale(a.claim(lease.fence()).await).2, Some(first));
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s03_a_renewal_that_arrives_after_the_next_grant_changes_nothing() {
    for place in Place::ALL {
        let stage = Stage::on(place).await;
        let (a, b) = (stage.worker("a"), stage.worker("b"));
        let (lease, packet) = with_a_renewal_under_way(&a).await;
        let next = b.acquire().await;
        assert_eq!(
            arrives(&stage, &lease, packet).await,
            RenewReply::Lost {
                reason: EndReason::Expired
            }
        );
        assert_eq!(stage.holder().await, Some(("b".to_owned(), next.token().get())));
        assert!(next.is_valid() && !lease.is_valid());
        assert_eq!(ends_of(&stage, &lease), [EndReason::Expired]);

        let first = applied(b.claim(next.fence()).await);
        assert_eq!(stale(a.claim(lease.fence()).await).2, Some(first));
        hold_exactly(&stage.ledger, &[(PLAYER, rank_3(), GOLD)]).await;
    }
}

/// Why the grants of this token ended, as the store remembers them; it was granted once.
fn ends_of(stage: &Stage, lease: &Lease) -> Vec<EndReason> {
    let history = stage
        .store
        .history(Database::ZERO, name(LOCK), None)
        .unwrap()
        .events;
    let of_token: Vec<_> = history
        .into_iter()
        .filter(|entry| entry.token == lease.token())
        .collect();
    let granted = of_token
        .iter()
        .filter(|entry| entry.event == HistoryEvent::Granted)
        .count();
    assert_eq!(granted, 1);
    of_token.into_iter().filter_map(|entry| entry.reason).collect()
}

/// Control: a lock that is extended by a bare `SET`, without a look at who holds it. The late packet takes it back.
#[tokio::test(start_paused = true)]
async fn s03_with_a_bare_set_as_renewal_the_late_packet_takes_the_lock_back() {
    let stage = Stage::start().await;
    let set = |who: &str, condition| {
        let (value, expiry) = (owner(who), SetExpiry::In(Ttl::from_duration(TTL).unwrap()));
        stage.store.set(Set {
            key: key(LOCK),
            value,
            expiry,
            condition,
        })
    };
    assert!(matches!(
        set("a", SetCondition::IfAbsent).await.unwrap(),
        Stored::Yes { .. }
    ));
    tokio::time::sleep(TTL + Duration::from_millis(1)).await;
    assert!(matches!(
        set("b", SetCondition::IfAbsent).await.unwrap(),
        Stored::Yes { .. }
    ));
    // A's renewal, sent in time and late on its way.
    assert!(matches!(
        set("a", SetCondition::Always).await.unwrap(),
        Stored::Yes { .. }
    ));
    let holder = stage.holder().await.unwrap();
    assert_eq!(holder.0, "a", "A has the lock that B was granted");
}
