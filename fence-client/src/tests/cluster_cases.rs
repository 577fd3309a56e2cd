//! Several endpoints of one cluster, and changes of its leader.

use super::fake_server::{FakeServer, Mode};
use super::*;
use crate::release::Released;
use crate::{LossReason, OwnerId};

fn quick() -> ClientBuilder {
    FenceClient::builder()
        .connect_timeout(ms(500))
        .request_timeout(ms(300))
        .operation_timeout(ms(3_000))
        .backoff(ms(5), ms(40))
}

/// Two nodes of one cluster.
async fn two() -> (FakeServer, FakeServer) {
    let one = FakeServer::start(None).await;
    let other = FakeServer::beside(&one).await;
    (one, other)
}

fn list(servers: &[&FakeServer]) -> String {
    let addresses: Vec<_> = servers.iter().map(|server| server.address.as_str()).collect();
    addresses.join(",")
}

#[tokio::test]
async fn a_node_that_knows_no_leader_is_left_for_the_next_one() {
    let (one, other) = two().await;
    let client = quick().connect(&list(&[&one, &other])).await.unwrap();
    one.set(Mode::NoLeader);
    let lease = client.lease("l").try_acquire().await.unwrap();
    assert_eq!((one.acquires(), other.acquires()), (0, 1));
    assert_eq!(lease.release().await.unwrap(), Released::Now);
}

#[tokio::test]
async fn a_holder_whose_node_loses_its_leader_renews_at_the_next_one() {
    let (one, other) = two().await;
    let client = quick().connect(&list(&[&one, &other])).await.unwrap();
    let lease = client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    eventually("renewed", || one.store.seen(LeaseVerb::RenewMany) >= 1).await;
    let before = one.store.seen(LeaseVerb::RenewMany);
    one.set(Mode::NoLeader);
    eventually("renewed at the other", || {
        one.store.seen(LeaseVerb::RenewMany) >= before + 2
    })
    .await;
    assert!(lease.is_valid());
}

#[tokio::test]
async fn the_node_that_leads_is_preferred_and_a_wrong_hint_costs_nothing() {
    let (follower, leader) = two().await;
    follower.claim(1, Some(2), 5);
    leader.claim(2, Some(2), 5);
    let client = quick().connect(&list(&[&follower, &leader])).await.unwrap();
    for _ in 0..10_000 {
        let lease = client.lease("l").try_acquire().await.unwrap();
        lease.release().await.unwrap();
        if leader.acquires() > 0 {
            break;
        }
    }
    assert!(leader.acquires() > 0);
    // It says so still, and serves no more: any node serves.
    leader.set(Mode::NoLeader);
    let lease = client.lease("l").try_acquire().await.unwrap();
    assert!(lease.is_valid());
}

#[tokio::test]
async fn a_wait_at_a_node_that_falls_silent_goes_on_in_its_place_at_another() {
    let (silent, other) = two().await;
    let holder = quick().connect(&other.address).await.unwrap();
    let held = holder.lease("l").ttl(ms(60_000)).acquire().await.unwrap();
    let first = quick()
        .owner(OwnerId::new("first").unwrap())
        .connect(&list(&[&silent, &other]))
        .await
        .unwrap();
    let second = quick().connect(&other.address).await.unwrap();
    let waiting = |client: &FenceClient| client.lease("l").wait(ms(60_000)).acquire();
    let (first_waits, second_waits) = (waiting(&first), waiting(&second));
    tokio::pin!(first_waits, second_waits);
    tokio::select! {
        waited = &mut first_waits => panic!("{waited:?}"),
        () = eventually("the first waits", || silent.store.waiters() == 1) => {}
    }
    tokio::select! {
        waited = &mut second_waits => panic!("{waited:?}"),
        () = eventually("the second waits", || silent.store.waiters() == 2) => {}
    }
    let asked = other.acquires();
    silent.set(Mode::Silent);
    tokio::select! {
        waited = &mut first_waits => panic!("{waited:?}"),
        () = eventually("asked at the other", || other.acquires() > asked) => {}
    }
    held.release().await.unwrap();
    let granted = tokio::select! {
        biased;
        waited = &mut second_waits => panic!("out of turn: {waited:?}"),
        waited = &mut first_waits => waited.unwrap(),
    };
    assert_eq!(other.store.waiters(), 1, "no place was taken twice");
    granted.release().await.unwrap();
    drop(second_waits.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_leaders_loses_no_lease_and_no_place_in_the_queue() {
    let store = MachineStore::start();
    let (holder, waiter) = (Side::new(&store), Side::new(&store));
    let held = holder.client.lease("l").ttl(ms(3_000)).acquire().await.unwrap();
    let waiting = waiter.client.lease("l").ttl(ms(3_000)).wait(ms(60_000)).acquire();
    tokio::pin!(waiting);
    tokio::select! {
        waited = &mut waiting => panic!("{waited:?}"),
        () = eventually("queued", || store.waiters() == 1) => {}
    }
    for side in [&holder, &waiter] {
        side.kit.lose_leader();
    }
    tokio::select! {
        waited = &mut waiting => panic!("{waited:?}"),
        () = tokio::time::sleep(ms(1_500)) => {}
    }
    for side in [&holder, &waiter] {
        side.kit.elect_leader();
    }
    tokio::select! {
        waited = &mut waiting => panic!("{waited:?}"),
        () = tokio::time::sleep(ms(5_000)) => {}
    }
    assert!(held.is_valid());
    assert_eq!(store.waiters(), 1);
    held.release().await.unwrap();
    let next = waiting.await.unwrap();
    assert!(next.token() > held.token());
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_the_old_leader_granted_without_an_answer_is_the_same_grant_at_the_new_one() {
    let store = MachineStore::start();
    let side = Side::new(&store);
    let gate = side.kit.hold_next_answer(LeaseVerb::Acquire);
    let acquiring = side.client.lease("l").ttl(ms(10_000)).acquire();
    let change = async {
        gate.reached().await;
        let granted = store.holder_of("l");
        side.kit.lose_leader();
        gate.open();
        tokio::time::sleep(ms(400)).await;
        side.kit.elect_leader();
        granted
    };
    let (lease, granted) = tokio::join!(acquiring, change);
    assert_eq!(Some(lease.unwrap().token()), granted);
    assert_eq!(
        store.seen(LeaseVerb::Acquire),
        2,
        "the answer was lost, and asked for again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_without_a_leader_for_longer_than_the_lease_is_a_loss_in_time() {
    let store = MachineStore::start();
    let side = Side::new(&store);
    let lease = side.client.lease("l").ttl(ms(1_000)).acquire().await.unwrap();
    side.kit.lose_leader();
    assert_eq!(lease.lost().await, LossReason::DeadlinePassed);
    let failure = lease.renewal_failure().unwrap();
    assert!(
        failure.is_retryable() && !failure.may_have_applied(),
        "{failure:?}"
    );
    assert_eq!(
        store.holder_of("l"),
        Some(lease.token()),
        "the client gives up first"
    );
}
